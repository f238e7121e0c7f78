// SPDX-License-Identifier: GPL-2.0
/* Which librdkafka the relay has, and what that lacks. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>

#include "common/log.h"
#include "relay/library.h"

/* From this version on: leader epochs (rd_kafka_message_leader_epoch()), and seek (#4230). */
#define VERSION_EPOCHS	0x02010000

/* Major, minor and revision of a version: a byte each. */
#define VERSION_FORMAT		"%d.%d.%d"
#define VERSION_OF(version)	(version) >> 24 & 255, (version) >> 16 & 255, (version) >> 8 & 255

bool relay_library_describe(int built, int runs, char text[RELAY_LIBRARY_TEXT])
{
	char builder[64] = "";

	/* What the library has, but its headers had not, is not used. */
	if (built >> 8 != runs >> 8)
		snprintf(builder, sizeof(builder), " (built for " VERSION_FORMAT ")",
			 VERSION_OF(built));
	if (built >= VERSION_EPOCHS && runs >= VERSION_EPOCHS) {
		snprintf(text, RELAY_LIBRARY_TEXT, "librdkafka " VERSION_FORMAT "%s",
			 VERSION_OF(runs), builder);
		return false;
	}
	snprintf(text, RELAY_LIBRARY_TEXT,
		 "librdkafka " VERSION_FORMAT "%s lacks what 2.1 has: leader epochs, so only "
		 "timestamps show that a topic lost its end in an unclean election; and a seek "
		 "that waits for its answer (librdkafka#4230)", VERSION_OF(runs), builder);
	return true;
}

void relay_say_library(void)
{
	char text[RELAY_LIBRARY_TEXT];
	bool lacks = relay_library_describe(RD_KAFKA_VERSION, rd_kafka_version(), text);

	log_say(lacks ? LOG_NOTICE : LOG_INFO, "%s", text);
}
