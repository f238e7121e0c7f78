/* SPDX-License-Identifier: GPL-2.0 */
/* The relay's loop. */
#ifndef RELAY_LOOP_H
#define RELAY_LOOP_H

#include "relay/options.h"

/* Relay until a signal or a fatal error ends it. Returns the exit status. */
int relay_run(const struct relay_options *options);

#endif /* RELAY_LOOP_H */
