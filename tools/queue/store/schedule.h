/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Schedules on disk: what "every" has set, and when to look at each.
 *
 * A schedule has a record, a body for its jobs, an entry by name, and at most one entry in the
 * index of times, which says when to look at it. It has none while it waits for the end of its
 * last job: then the end of that job adds an entry of time 0, whether the schedule waits or
 * not. So the change of the job need not read the schedule.
 */
#ifndef QUEUE_STORE_SCHEDULE_H
#define QUEUE_STORE_SCHEDULE_H

#include "queue/store/config.h"
#include "queue/store/record.h"

/**
 * struct schedule_record - the record of a schedule
 * @id: its id, from the numbers of jobs.
 * @tube: number of the tube of its jobs.
 * @pri: their priority.
 * @ttr_ns: their time to run.
 * @body_len: length of their body.
 * @interval_ns: time between them.
 * @next_ns: the first of its times that no job was put for, on the wall clock.
 * @at_ns: its entry in the index of times; 0: it waits for the end of its last job.
 * @missed: times before @next_ns that the next job is put for, too.
 * @last: id of its last job; 0: none.
 * @name_len: length of @name.
 * @name: its name, NUL-terminated.
 */
struct schedule_record {
	uint64_t id;
	uint32_t tube;
	uint32_t pri;
	uint64_t ttr_ns;
	uint32_t body_len;
	uint64_t interval_ns;
	uint64_t next_ns;
	uint64_t at_ns;
	uint64_t missed;
	uint64_t last;
	uint8_t name_len;
	char name[JOB_KEY_MAX + 1];
};

/* The number of times from @next_ns up to @now_ns. */
uint64_t schedule_passed(const struct schedule_record *record, uint64_t now_ns);

/* --- reads; they return as store_get() --------------------------------------------------- */

int store_get_schedule(struct store *store, uint64_t id, struct schedule_record *record);
int store_find_schedule(struct store *store, uint32_t tube, const char *name, uint64_t *id);

/* As store_get_body(). */
int store_get_schedule_body(struct store *store, uint64_t id, const void **body, size_t *len);

/* Call @each for the entries of the index of times, in order, until it returns false. */
int store_walk_schedules(struct store *store,
			 bool (*each)(void *context, uint64_t at_ns, uint64_t id),
			 void *context);

/*
 * Call @each for the schedules of a tube in the order of their names, of those after the name
 * @after only, until it returns false.
 */
int store_list_schedules(struct store *store, uint32_t tube, const char *after,
			 bool (*each)(void *context, uint64_t id), void *context);

/* --- changes, as those of batch.h -------------------------------------------------------- */

/* Add a schedule; its id and its name must be new. The first change of its command. */
void store_put_schedule(struct store *store, const struct schedule_record *record,
			const void *body);

/* Write its record, and move its entry in the index of times from @old_at_ns. */
void store_move_schedule(struct store *store, uint64_t old_at_ns,
			 const struct schedule_record *record);

void store_replace_schedule_body(struct store *store, uint64_t id, const void *body,
				 size_t len);
void store_delete_schedule(struct store *store, const struct schedule_record *record);

/* Its last job has ended: add an entry of time 0. */
void store_wake_schedule(struct store *store, uint64_t id);

/* Delete an entry of the index of times that is not, or not only, that of the record. */
void store_drop_schedule_time(struct store *store, uint64_t at_ns, uint64_t id);


/* --- for store/ and integrity/ --- */

size_t store_encode_schedule(uint8_t *value, const struct schedule_record *record);
bool store_decode_schedule(uint64_t id, const void *value, size_t len,
			   struct schedule_record *record);
size_t store_key_schedule_name(uint8_t *key, uint32_t tube, const char *name, size_t len);
size_t store_key_schedule_time(uint8_t *key, uint64_t at_ns, uint64_t id);
bool store_decode_schedule_time(const void *key, size_t key_len, uint64_t *at_ns,
				uint64_t *id);
/* For repairs. Write all of a schedule but its body, which is intact. */
void store_keep_schedule(struct store *store, const struct schedule_record *record);

#endif /* QUEUE_STORE_SCHEDULE_H */
