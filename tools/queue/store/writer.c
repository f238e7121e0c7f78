// SPDX-License-Identifier: GPL-2.0
/*
 * Batches on their way to RocksDB.
 *
 *	queue's thread                                sync thread
 *	  changes -> batch --take--> [ b | b | b ] --drain--> RocksDB: memtable, buffer of
 *	             (store->batch)       |                   the log; then written, synced
 *	                                  +--drain, if the queue's thread has to read
 *	                                     what one of them has changed
 *
 * RocksDB makes writers wait: a short while when compactions are behind, for the disk while
 * another thread writes the log, and for minutes when the disk is full. So the sync thread
 * passes the batches on, and the queue's thread serves those who need no disk meanwhile.
 * store_writer_is_behind() tells it to take no more jobs. A caller that does not ask waits in
 * store_writer_take() when there are too many bytes.
 *
 * The two threads write one at a time (@writing), so batches are written in the order in
 * which they were taken. store_writer_try() is for a queue's thread that would rather leave it
 * to the other than wait: RocksDB says so where it would wait for compactions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue/store/fault.h"
#include "queue/store/space.h"
#include "queue/store/state.h"
#include "queue/store/writer.h"

/*
 * When so much waits, no more puts are taken: what comes next, such as a delete, is committed
 * behind it.
 */
#define BYTES_BEHIND		(256u << 10)
/* When so much waits, who adds more has to wait. */
#define BYTES_MOST		(2u << 20)

/**
 * struct store_taken - a batch that was taken
 * @changes: what it changes.
 * @bytes: its length.
 * @deletes: it deletes jobs.
 * @entry: link in the list, which it leaves when it is written.
 */
struct store_taken {
	rocksdb_writebatch_t *changes;
	size_t bytes;
	bool deletes;
	STAILQ_ENTRY(store_taken) entry;
};

/* RocksDB goes on by itself after a lack of space, but not after the end of a quota. */
static bool is_full(const char *error)
{
	return store_is_no_space(error) && !store_is_quota(error);
}

/*
 * After RocksDB had no room for a table it refuses writes until it has room again. A refused
 * write is not in the log, so it can be retried. After any other error it is unknown what is
 * on disk: end the process.
 */
static void write_batch(struct store *store, struct store_taken *taken)
{
	unsigned int tries = 0;
	char *error = NULL;

	store_space_add(store, taken->bytes);
	for (;;) {
		rocksdb_write(store->db, store->write_options, taken->changes, &error);
		if (!error)
			break;
		if (!is_full(error))
			store_die(store, "cannot write", error);
		rocksdb_free(error);
		error = NULL;
		store_space_retry(store, ++tries);
	}
	/* After the write: before it, RocksDB has no deletes to compact. */
	if (taken->deletes)
		store->space.deleted = true;
}

/* Like write_batch(), but returns false where that would wait. */
static bool try_batch(struct store *store, struct store_taken *taken)
{
	char *error = NULL;

	rocksdb_write(store->db, store->write_at_once, taken->changes, &error);
	if (error) {
		if (!is_full(error) && !strstr(error, "stall"))
			store_die(store, "cannot write", error);
		rocksdb_free(error);
		return false;
	}
	store_space_added(store, taken->bytes);
	if (taken->deletes)
		store->space.deleted = true;
	return true;
}

static struct store_taken *first_taken(struct store_writer *writer)
{
	struct store_taken *taken;

	pthread_mutex_lock(&writer->lock);
	taken = STAILQ_FIRST(&writer->taken);
	pthread_mutex_unlock(&writer->lock);
	return taken;
}

/* The first of the list was written, or the store closes. */
static void end_first(struct store_writer *writer)
{
	struct store_taken *taken;

	pthread_mutex_lock(&writer->lock);
	taken = STAILQ_FIRST(&writer->taken);
	STAILQ_REMOVE_HEAD(&writer->taken, entry);
	pthread_mutex_unlock(&writer->lock);
	writer->bytes -= taken->bytes;
	rocksdb_writebatch_destroy(taken->changes);
	free(taken);
}

void store_writer_drain(struct store *store)
{
	struct store_writer *writer = &store->writer;
	struct store_taken *taken;

	pthread_mutex_lock(&writer->writing);
	while ((taken = first_taken(writer))) {
		write_batch(store, taken);
		end_first(writer);
	}
	pthread_mutex_unlock(&writer->writing);
}

bool store_writer_try(struct store *store)
{
	struct store_writer *writer = &store->writer;
	struct store_taken *taken;

	if (pthread_mutex_trylock(&writer->writing))
		return false;
	while ((taken = first_taken(writer)) && try_batch(store, taken))
		end_first(writer);
	pthread_mutex_unlock(&writer->writing);
	return !taken;
}

bool store_writer_is_idle(const struct store *store)
{
	return !store->writer.bytes;
}

size_t store_batch_bytes(const struct store *store)
{
	size_t bytes;

	rocksdb_writebatch_data(store->batch, &bytes);
	return bytes;
}

void store_writer_take(struct store *store)
{
	struct store_taken *taken = malloc(sizeof(*taken));
	struct store_writer *writer = &store->writer;

	if (!taken)
		abort();
	*taken = (struct store_taken){
		.changes = store->batch,
		.bytes = store_batch_bytes(store),
		.deletes = store->deletes,
	};
	store->batch = rocksdb_writebatch_create();
	writer->bytes += taken->bytes;
	pthread_mutex_lock(&writer->lock);
	STAILQ_INSERT_TAIL(&writer->taken, taken, entry);
	pthread_mutex_unlock(&writer->lock);
	if (writer->bytes >= BYTES_MOST || !store->syncer.running)
		store_writer_drain(store);
}

bool store_writer_is_behind(const struct store *store)
{
	return store_batch_bytes(store) + store->writer.bytes >= BYTES_BEHIND;
}

void store_writer_init(struct store *store)
{
	pthread_mutex_init(&store->writer.lock, NULL);
	pthread_mutex_init(&store->writer.writing, NULL);
	STAILQ_INIT(&store->writer.taken);
}

/* What was not written was not committed either: opening has failed. */
void store_writer_destroy(struct store *store)
{
	while (first_taken(&store->writer))
		end_first(&store->writer);
	pthread_mutex_destroy(&store->writer.lock);
	pthread_mutex_destroy(&store->writer.writing);
}
