/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Drawing wheels as text.
 */
#ifndef _TWHEELCTL_DRAW_H
#define _TWHEELCTL_DRAW_H

#include <stdbool.h>
#include <stdio.h>

#include "wheels.h"

/**
 * struct draw_style - how to draw
 * @ascii: keep to ASCII.
 * @all: draw empty levels too.
 */
struct draw_style {
	bool ascii;
	bool all;
};

bool draw_needs_ascii(void);
void draw_wheels(const struct wheels *wheels, const struct draw_style *style,
		 FILE *out);

#endif /* _TWHEELCTL_DRAW_H */
