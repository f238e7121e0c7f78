// SPDX-License-Identifier: GPL-2.0
/*
 * Draws wheels as text.
 *
 *	cpu0 monotonic: 1000 armed, next in 35.3ms; clk 123456, 17 interrupts, ...
 *	level  slot      armed
 *	    0  65.5us       12  |   >  . :                  ...  |
 *	    1  2.10ms      988  |>..::+##+:.                ...  |
 *
 * A row is a level, and a cell is one of its 64 slots. It is darker if the slot has more
 * events, on a logarithmic scale up to the fullest slot of the wheel. The mark stands
 * before the current slot of the level, which comes next; the slots before the mark come
 * after the last slot.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "twheelctl/draw.h"
#include "common/number.h"

#define NR_SHADES	4

/**
 * struct brush - the characters of a drawing
 * @mark: stands before the current slot of the level.
 * @edge: the beginning and the end of a row.
 * @shades: an empty slot, and slots with few to many events.
 */
struct brush {
	const char *mark;
	const char *edge;
	const char *shades[1 + NR_SHADES];
};

static const struct brush ascii_brush = {
	">", "|", { " ", ".", ":", "+", "#" }
};

static const struct brush unicode_brush = {
	"▸", "│", { " ", "░", "▒", "▓", "█" }
};

/*
 * Returns whether the locale's character set is not UTF-8.
 *
 * The environment decides: a small system may lack locale data but have a terminal that
 * shows UTF-8.
 */
bool draw_needs_ascii(void)
{
	static const char * const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return !strcasestr(value, "utf-8") &&
			       !strcasestr(value, "utf8");
	}
	return true;
}

static unsigned int slots_per_cell(const struct draw_style *style)
{
	return style->fold ? style->fold : 1;
}

/* The number of events in the slots of a cell, which begin at @slot. */
static __u64 cell_count(const struct level *level, unsigned int slot,
			unsigned int slots)
{
	__u64 count = 0;

	for (unsigned int i = 0; i < slots; i++)
		count += level->count[slot + i];
	return count;
}

static __u64 fullest_cell(const struct wheel *wheel, unsigned int slots)
{
	__u64 most = 0;

	for (unsigned int i = 0; i < WHEEL_LEVELS; i++) {
		for (unsigned int slot = 0; slot < WHEEL_SLOTS; slot += slots) {
			__u64 count = cell_count(&wheel->level[i], slot, slots);

			most = count > most ? count : most;
		}
	}
	return most;
}

static unsigned int shade_of(__u64 count, __u64 most)
{
	if (!count)
		return 0;
	if (count >= most)
		return NR_SHADES;
	return 1 + (unsigned int)((NR_SHADES - 1) * log(count) / log(most));
}

static void draw_level(const struct wheel *wheel, unsigned int nr, __u64 most,
		       const struct draw_style *style, FILE *out)
{
	const struct brush *brush = style->ascii ? &ascii_brush : &unicode_brush;
	const struct level *level = &wheel->level[nr];
	double span_ns = ldexp(wheel->tick_ns, WHEEL_SPAN_BITS * nr);
	unsigned int slots = slots_per_cell(style);
	char text[NUMBER_TEXT];

	fprintf(out, "%7u  %-7s %9llu  %s", nr, duration_format(text, span_ns),
		level->armed, brush->edge);
	for (unsigned int slot = 0; slot < WHEEL_SLOTS; slot += slots) {
		__u64 count = cell_count(level, slot, slots);

		if (wheel_position(wheel, nr) / slots == slot / slots)
			fputs(brush->mark, out);
		fputs(brush->shades[shade_of(count, most)], out);
	}
	fprintf(out, "%s\n", brush->edge);
}

static void draw_levels(const struct wheel *wheel,
			const struct draw_style *style, FILE *out)
{
	__u64 most = fullest_cell(wheel, slots_per_cell(style));

	fputs("  level  slot        armed\n", out);
	for (unsigned int i = 0; i < WHEEL_LEVELS; i++)
		if (style->all || wheel->level[i].armed)
			draw_level(wheel, i, most, style, out);
}

static void draw_head(const struct wheel *wheel, FILE *out)
{
	char text[NUMBER_TEXT];

	fprintf(out, "cpu%u %s", wheel->cpu, wheel->clock);
	if (strcmp(wheel->kind, WHEEL_PLAIN))
		fprintf(out, " %s", wheel->kind);
	fprintf(out, ": %llu armed, ", wheel->armed);
	if (!wheel->next)
		fputs("nothing next", out);
	else if (wheel->next <= wheel->now)
		fputs("next is due", out);
	else
		fprintf(out, "next in %s",
			duration_format(text, (double)(wheel->next - wheel->now) *
					      wheel->tick_ns));
	fprintf(out, "; clk %llu, %llu interrupts, %llu expired, %llu cascaded",
		wheel->clk, wheel->interrupts, wheel->expired, wheel->cascaded);
	if (wheel->postponed)
		fprintf(out, ", %llu postponed", wheel->postponed);
	if (wheel->gap)
		fprintf(out, ", %llu before clk, since the clock was set back",
			wheel->gap);
	fprintf(out, "%s\n", wheel->online ? "" : ", offline");
}

/*
 * Draw all wheels.
 *
 * A wheel without events is one line, unless @style asks for empty levels.
 */
void draw_wheels(const struct wheels *wheels, const struct draw_style *style,
		 FILE *out)
{
	for (size_t i = 0; i < wheels->nr; i++) {
		const struct wheel *wheel = &wheels->wheel[i];

		draw_head(wheel, out);
		if (style->all || wheel->armed)
			draw_levels(wheel, style, out);
	}
}
