// SPDX-License-Identifier: GPL-2.0
/* Names of tubes, keys and schedules. */
#include <string.h>

#include "common/text.h"
#include "queue/store/name.h"
#include "queue/store/record.h"

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Has a name only letters, digits, and bytes of @others? */
static bool has_only(const char *name, size_t len, const char *others)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!is_letter(name[i]) && !text_is_digit(name[i]) &&
		    (!name[i] || !strchr(others, name[i])))
			return false;
	return true;
}

bool name_is_tube(const char *name, size_t len)
{
	return len && len <= TUBE_NAME_MAX && *name != '-' && has_only(name, len, "-+/;.$_()");
}

bool name_is_key(const char *key, size_t len)
{
	return len && len <= JOB_KEY_MAX && has_only(key, len, NAME_KEY_BYTES);
}
