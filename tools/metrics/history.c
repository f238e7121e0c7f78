// SPDX-License-Identifier: GPL-2.0
/* The last ten minutes of a few numbers, in steps of ten seconds. */
#include <inttypes.h>
#include <string.h>

#include "metrics/history.h"

static uint64_t step_of(uint64_t now_s)
{
	return now_s / HISTORY_STEP_S + 1;
}

/* Begin a step: those that were passed over have no value. */
static void begin_step(struct history *history, uint64_t step)
{
	uint64_t i = history->step + 1;
	unsigned int series;

	if (!history->step || step - history->step >= HISTORY_STEPS) {
		memset(history->value, 0xff, sizeof(history->value));
		i = step;
	}
	for (; i <= step; i++)
		for (series = 0; series < HISTORY_SERIES; series++)
			history->value[series][i % HISTORY_STEPS] = HISTORY_NONE;
	history->step = step;
}

void history_note(struct history *history, uint64_t now_s, unsigned int series, uint64_t value,
		  bool sum)
{
	uint64_t step = step_of(now_s);
	uint32_t *at;

	if (step > history->step)
		begin_step(history, step);
	at = &history->value[series][history->step % HISTORY_STEPS];
	if (sum && *at != HISTORY_NONE)
		value += *at;
	*at = value < HISTORY_NONE ? value : HISTORY_NONE - 1;
}

static uint32_t value_at(const struct history *history, unsigned int series, uint64_t step)
{
	if (!history->step || step > history->step || step + HISTORY_STEPS <= history->step)
		return HISTORY_NONE;
	return history->value[series][step % HISTORY_STEPS];
}

void history_write(const struct history *history, uint64_t now_s, unsigned int series, FILE *out)
{
	uint64_t last = step_of(now_s), step;
	uint64_t first = last > HISTORY_STEPS ? last - HISTORY_STEPS + 1 : 1;
	uint32_t value;

	fputc('[', out);
	for (step = first; step <= last; step++) {
		value = value_at(history, series, step);
		if (value == HISTORY_NONE)
			fputs("null", out);
		else
			fprintf(out, "%" PRIu32, value);
		if (step < last)
			fputc(',', out);
	}
	fputc(']', out);
}
