/* SPDX-License-Identifier: GPL-2.0 */
/* Salvage: copy the readable data of a damaged store. The first step of a repair. */
#ifndef QUEUE_INTEGRITY_SALVAGE_H
#define QUEUE_INTEGRITY_SALVAGE_H

#include "queue/store/config.h"

/* Copy the readable data, and replace db/ by the copy. Returns 0 or a negative errno. */
int store_salvage(struct store *store);

#endif /* QUEUE_INTEGRITY_SALVAGE_H */
