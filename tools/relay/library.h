/* SPDX-License-Identifier: GPL-2.0 */
/* Which librdkafka the relay has, and what that lacks. */
#ifndef RELAY_LIBRARY_H
#define RELAY_LIBRARY_H

#include <stdbool.h>

#define RELAY_LIBRARY_TEXT	512

/*
 * Describe a librdkafka: the numbers are those of RD_KAFKA_VERSION, of the library that the
 * relay was built for and of the one that runs. Returns whether it lacks something.
 */
bool relay_library_describe(int built, int runs, char text[RELAY_LIBRARY_TEXT]);

/* Log it. */
void relay_say_library(void);

#endif /* RELAY_LIBRARY_H */
