// SPDX-License-Identifier: GPL-2.0
/* Which librdkafka the relay has, and what that lacks. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>

#include "common/log.h"
#include "relay/library.h"

/* From this version on: leader epochs (rd_kafka_message_leader_epoch()), and seek (#4230). */
#define VERSION_EPOCHS	0x02010000

#define VERSION_SIZE	16

/* Major, minor and revision are a byte each. */
static const char *format_version(int version, char text[VERSION_SIZE])
{
	snprintf(text, VERSION_SIZE, "%d.%d.%d", version >> 24 & 255, version >> 16 & 255,
		 version >> 8 & 255);
	return text;
}

bool relay_library_describe(int built, int runs, char text[RELAY_LIBRARY_TEXT])
{
	/* What the library has, but the headers at the build had not, is not used. */
	bool lacks = built < VERSION_EPOCHS || runs < VERSION_EPOCHS;
	char builder[VERSION_SIZE], runner[VERSION_SIZE], built_for[64] = "";

	if (built >> 8 != runs >> 8)
		snprintf(built_for, sizeof(built_for), " (built for %s)",
			 format_version(built, builder));
	if (lacks)
		snprintf(text, RELAY_LIBRARY_TEXT,
			 "librdkafka %s%s lacks what 2.1 has: leader epochs, so only timestamps show that a topic lost its end in an unclean election; and a seek that waits for its answer (librdkafka#4230)",
			 format_version(runs, runner), built_for);
	else
		snprintf(text, RELAY_LIBRARY_TEXT, "librdkafka %s%s",
			 format_version(runs, runner), built_for);
	return lacks;
}

void relay_say_library(void)
{
	char text[RELAY_LIBRARY_TEXT];
	bool lacks = relay_library_describe(RD_KAFKA_VERSION, rd_kafka_version(), text);

	log_say(lacks ? LOG_NOTICE : LOG_INFO, "%s", text);
}
