/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A view: the store as it was at one moment. It costs little: compactions keep the versions of
 * entries that it sees, and no files.
 */
#ifndef QUEUE_STORE_VIEW_H
#define QUEUE_STORE_VIEW_H

#include "queue/store/config.h"
#include "queue/store/record.h"

struct store_view;

/* The store as it is now, with all earlier changes. Returns NULL if there is no memory. */
struct store_view *store_view_open(struct store *store);
void store_view_close(struct store_view *view);

/*
 * Call @each for the jobs of the tube of @from in an index, in order, from @from on, until it
 * returns false. @same: the job has this place now, too. Returns 0, -EBADMSG or -EIO.
 */
int store_view_walk(struct store_view *view, const struct job_place *from,
		    bool (*each)(void *context, const struct job_place *place, bool same),
		    void *context);

/* Had the job a reserved mark? If that is damaged, it had one: a purge keeps what was reserved. */
bool store_view_is_marked(struct store_view *view, uint64_t id);

#endif /* QUEUE_STORE_VIEW_H */
