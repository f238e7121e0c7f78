/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Draws wheels as text.
 */
#ifndef _TWHEELCTL_DRAW_H
#define _TWHEELCTL_DRAW_H

#include <stdbool.h>
#include <stdio.h>

#include "twheelctl/wheels.h"

/**
 * struct draw_style - how to draw
 * @ascii: draw with ASCII characters.
 * @all: draw empty levels too.
 * @fold: the number of slots in a cell, a power of two; 0 means 1.
 * @columns: the length of the longest line of words; 0: any.
 */
struct draw_style {
	bool ascii;
	bool all;
	unsigned int fold;
	unsigned int columns;
};

bool draw_needs_ascii(void);

/* How many slots a cell must have, so that a drawing is not wider than @columns. */
unsigned int draw_fold(unsigned int columns);

void draw_wheels(const struct wheels *wheels, const struct draw_style *style,
		 FILE *out);

/* The levels of a wheel without the line above them; nothing if it has no events. */
void draw_levels(const struct wheel *wheel, const struct draw_style *style, FILE *out);

/* A line that says what the characters mean. */
void draw_legend(const struct draw_style *style, FILE *out);

#endif /* _TWHEELCTL_DRAW_H */
