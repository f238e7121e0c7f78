// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel as JSON.
 */
#include "twheelctl/wheel_json.h"

static json_t *json_numbers(const __u64 *values, size_t nr)
{
	json_t *array = json_array();

	for (size_t i = 0; i < nr; i++)
		json_array_append_new(array, json_integer(values[i]));
	return array;
}

static json_t *json_level(const struct wheel *wheel, unsigned int nr)
{
	const struct level *level = &wheel->level[nr];

	return json_pack("{s:i, s:i, s:o, s:o, s:I, s:o}", "level", nr,
			 "position", wheel_position(wheel, nr),
			 "occupied", json_sprintf("%016llx", level->occupied),
			 "crowded", json_sprintf("%016llx", level->crowded),
			 "armed", (json_int_t)level->armed,
			 "count", json_numbers(level->count, WHEEL_SLOTS));
}

static json_t *json_levels(const struct wheel *wheel, bool all)
{
	json_t *levels = json_array();

	for (unsigned int i = 0; i < WHEEL_LEVELS; i++)
		if (all || wheel->level[i].occupied)
			json_array_append_new(levels, json_level(wheel, i));
	return levels;
}

/* Make an object of a wheel. @all_levels: with those that have no events. */
json_t *wheel_json(const struct wheel *wheel, bool all_levels)
{
	json_t *next = wheel->next ? json_integer(wheel->next) : json_null();

	return json_pack("{s:i,s:s,s:s,s:b,s:I,s:I,s:I,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o}",
			 "cpu", wheel->cpu, "clock", wheel->clock, "kind", wheel->kind,
			 "online", !!wheel->online,
			 "tick_ns", (json_int_t)wheel->tick_ns,
			 "clk", (json_int_t)wheel->clk,
			 "now", (json_int_t)wheel->now,
			 "next", next,
			 "armed", (json_int_t)wheel->armed,
			 "gap", (json_int_t)wheel->gap,
			 "interrupts", (json_int_t)wheel->interrupts,
			 "expired", (json_int_t)wheel->expired,
			 "postponed", (json_int_t)wheel->postponed,
			 "cascaded", (json_int_t)wheel->cascaded,
			 "lateness", json_numbers(wheel->lateness, WHEEL_LATENESS),
			 "levels", json_levels(wheel, all_levels));
}
