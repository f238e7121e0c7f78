// SPDX-License-Identifier: GPL-2.0
/* Which librdkafka there is, and what it lacks. */
#include <string.h>

#include "relay/library.h"
#include "test/device/harness.h"

static char text[RELAY_LIBRARY_TEXT];

TEST(a_version_is_named)
{
	ASSERT(!relay_library_describe(0x020800ff, 0x020800ff, text));
	ASSERT(!strcmp(text, "librdkafka 2.8.0"));
	ASSERT(!relay_library_describe(0x020100ff, 0x020f01ff, text));
	ASSERT(!strcmp(text, "librdkafka 2.15.1 (built for 2.1.0)"));
}

TEST(what_it_lacks_below_2_1_is_named)
{
	ASSERT(relay_library_describe(0x020002ff, 0x020002ff, text));
	ASSERT(strstr(text, "librdkafka 2.0.2 lacks"));
	ASSERT(strstr(text, "leader epochs"));
	ASSERT(strstr(text, "#4230"));
}

TEST(what_it_was_not_built_for_it_lacks)
{
	ASSERT(relay_library_describe(0x020002ff, 0x020800ff, text));
	ASSERT(strstr(text, "librdkafka 2.8.0 (built for 2.0.2) lacks"));
	ASSERT(relay_library_describe(0x020800ff, 0x020002ff, text));
}
