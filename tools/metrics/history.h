/* SPDX-License-Identifier: GPL-2.0 */
/* The last ten minutes of a few numbers, in steps of ten seconds. */
#ifndef METRICS_HISTORY_H
#define METRICS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define HISTORY_STEP_S	10
#define HISTORY_STEPS	60
#define HISTORY_SERIES	3

/* In a step in which nothing was noted. */
#define HISTORY_NONE	UINT32_MAX

/**
 * struct history - a ring of steps; zeros are an empty one
 * @step: the last step that has something: the time in s divided by HISTORY_STEP_S, plus 1.
 * @value: by series: the value of each step, at its number modulo HISTORY_STEPS.
 */
struct history {
	uint64_t step;
	uint32_t value[HISTORY_SERIES][HISTORY_STEPS];
};

/*
 * Note @value for the step of the time @now_s, which does not go back. It is the last value of
 * the step; or, with @sum, it is added to the sum of the step.
 */
void history_note(struct history *history, uint64_t now_s, unsigned int series, uint64_t value,
		  bool sum);

/* Write a series as an array of JSON, the oldest step first; null for a step without value. */
void history_write(const struct history *history, uint64_t now_s, unsigned int series, FILE *out);

#endif /* METRICS_HISTORY_H */
