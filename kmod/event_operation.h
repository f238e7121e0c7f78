/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations, which are events that watch keys: WATCH, SIGNAL and COMPLETE.
 *
 * event_operation.c tells which events have an operation.
 */
#ifndef TWHEEL_EVENT_OPERATION_H
#define TWHEEL_EVENT_OPERATION_H

#include "batch.h"
#include "watch.h"

struct event_operation *event_operation_create(u32 quorum, u64 interval_ns);
void event_operation_free(struct event_operation *operation);
void event_set_operation(struct event *event, struct event_operation *operation);
void event_free_operation(struct context *context, struct event *event);
void event_free_watches(struct context *context, struct event *event);

/**
 * batch_free_event() - free an event
 * @batch: the batch.
 * @event: an event that is on no wheel and in no queue.
 *
 * Empty pages are freed at the end of the batch.
 */
static inline void batch_free_event(struct context_batch *batch, struct event *event)
{
	if (event->node.flags & EVENT_OPERATION) {
		base_release(&batch->hold);
		event_free_operation(batch->context, event);
	}
	event_free(event);
}

int context_watch(struct context_batch *batch, struct twheel_cmd *cmd);
int context_signal(struct context_batch *batch, struct twheel_cmd *cmd);
unsigned int context_unlinks(struct context *context, const struct twheel_cmd *cmd,
			     u64 value, unsigned int max);
int context_complete(struct context_batch *batch, struct twheel_cmd *cmd);

void event_operations_destroy(struct context *context);
int event_operations_init(void);
void event_operations_exit(void);

#endif /* TWHEEL_EVENT_OPERATION_H */
