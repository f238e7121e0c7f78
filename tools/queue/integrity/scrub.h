/* SPDX-License-Identifier: GPL-2.0 */
/* The scrub thread: reads a store in the background to find damage. */
#ifndef QUEUE_INTEGRITY_SCRUB_H
#define QUEUE_INTEGRITY_SCRUB_H

#include "queue/store/config.h"

/* Returns 0 or a negative errno. */
int store_scrub_start(struct store *store);
void store_scrub_stop(struct store *store);

#endif /* QUEUE_INTEGRITY_SCRUB_H */
