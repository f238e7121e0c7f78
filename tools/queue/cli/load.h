/* SPDX-License-Identifier: GPL-2.0 */
/* Load of jobs that were dumped. */
#ifndef QUEUE_CLI_LOAD_H
#define QUEUE_CLI_LOAD_H

#include <stdio.h>
#include "queue/store/config.h"

/*
 * Put the jobs of @in, from where it is, into a store. Jobs keep their ids, which must be free.
 * If a line is wrong, changes nothing, and returns -EINVAL. Returns 0; -ENOSPC, there is no room
 * for all; or another negative errno. Logs what is wrong.
 */
int store_load(const struct store_config *config, FILE *in);

#endif /* QUEUE_CLI_LOAD_H */
