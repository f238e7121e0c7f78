/* SPDX-License-Identifier: GPL-2.0 */
/* Shared functions of the store's tests: a directory for each test, and short helpers. */
#ifndef QUEUE_TEST_STORE_LIB_H
#define QUEUE_TEST_STORE_LIB_H

#include <dirent.h>

#include "queue/store/config.h"
#include "queue/store/record.h"
#include "test/device/harness.h"

/* The directory of this test, new and empty; the next test removes it. */
const char *test_dir(void);
void remove_tree(const char *path);

/* RocksDB's files in the directory, and the path of one of them. */
DIR *list_files(void);
void path_of(char *path, size_t size, const struct dirent *entry);

/* A configuration for the store in @dir that logs to log_text. */
struct store_config test_config(const char *dir);
extern char log_text[1 << 16];

/* Open the store of the test, and create it if need be; an error ends the test. */
struct store *open_store(void);

struct job_record make_job(uint64_t id, enum job_state state, uint32_t tube, uint32_t pri,
			   uint64_t order);
void put_tube(struct store *store, uint32_t tube, const char *name);
/* Put a job with a body that follows from its id, and check that body. */
void put_job(struct store *store, struct job_record *job);
void see_body(struct store *store, const struct job_record *job);
/* Write what no store writes to an entry. */
void put_garbage(struct store *store, const void *key, size_t len);
/* Delete an entry alone. */
void lose(struct store *store, const void *key, size_t len);
/* Read the ids of an index from @from on; returns their number. */
size_t walk_ids(struct store *store, struct job_place from, uint64_t *ids, size_t nr,
		bool back);
/*
 * Run it in a process of its own; returns that process' status. Call it before this process opens a
 * store: RocksDB's threads do not survive a fork.
 */
int in_child(void (*run)(void));

#endif /* QUEUE_TEST_STORE_LIB_H */
