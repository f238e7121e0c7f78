/* SPDX-License-Identifier: GPL-2.0 */
/* Tubes: finding, making and freeing them, and their pauses. */
#ifndef QUEUE_JOBS_TUBE_H
#define QUEUE_JOBS_TUBE_H

#include "queue/jobs/state.h"

void tubes_init(struct queue *queue);
void tubes_destroy(struct queue *queue);

/* Load the tubes of the disk, and count their jobs. Returns 0 or a negative errno. */
int tubes_load(struct queue *queue);

/* A tube, or NULL. */
struct tube *tube_find(struct queue *queue, const char *name);
struct tube *tube_by_number(struct queue *queue, uint32_t number);

/* The tube of this name, made if there is none; NULL: there are too many tubes. */
struct tube *tube_get(struct queue *queue, const char *name);

/* Free the tube if nothing refers to it. */
void tube_put(struct queue *queue, struct tube *tube);

/* A job or a policy is coming: give the tube a number, and write it to disk. */
void tube_keep(struct queue *queue, struct tube *tube);

/* Write its policy to disk. */
void tube_save(struct queue *queue, struct tube *tube);

/* Are the jobs and the schedules, of all tubes or of one, as many as the limit? */
bool queue_is_full(const struct queue *queue);
bool tube_is_full(const struct queue *queue, const struct tube *tube);

/* Is there no room for one more job or schedule of the tube? Counts it, and logs why at times. */
bool tube_refuses(struct queue *queue, const struct tube *tube);

/* The same of the disk. */
bool queue_lacks_disk(struct queue *queue);

/* A put is refused for want of memory for its body. Counts it, and logs it at times. */
void queue_lacks_memory(struct queue *queue);

/* Pause it for @pause_ns; 0 ends its pause. */
void tube_pause(struct queue *queue, struct tube *tube, uint64_t pause_ns);

/* The alarm of the pause of tube @number has fired. */
void tube_alarm(struct queue *queue, uint32_t number);

/* All tubes in the order of their names. */
struct tube *tube_first(struct queue *queue);
struct tube *tube_next(struct tube *tube);

/* The first tube whose name is after @name, which need not be one. */
struct tube *tube_after(struct queue *queue, const char *name);

#endif /* QUEUE_JOBS_TUBE_H */
