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
 */
struct draw_style {
	bool ascii;
	bool all;
	unsigned int fold;
};

/* The width of a drawing with a cell for each slot. */
#define DRAW_COLUMNS	96

bool draw_needs_ascii(void);
void draw_wheels(const struct wheels *wheels, const struct draw_style *style,
		 FILE *out);

#endif /* _TWHEELCTL_DRAW_H */
