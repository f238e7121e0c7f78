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
#include <err.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "twheelctl/draw.h"
#include "common/color.h"
#include "common/number.h"

#define NR_SHADES	4

/* The width of a drawing without its cells: level, slot, armed, two edges and the mark. */
#define FRAME_COLUMNS	31

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

unsigned int draw_fold(unsigned int columns)
{
	unsigned int fold = 1;

	while (fold < WHEEL_SLOTS && FRAME_COLUMNS + WHEEL_SLOTS / fold > columns)
		fold *= 2;
	return fold;
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

/* One colour for all cells that follow each other. */
static void draw_cells(const struct wheel *wheel, unsigned int nr, __u64 most,
		       const struct draw_style *style, FILE *out)
{
	const struct brush *brush = style->ascii ? &ascii_brush : &unicode_brush;
	unsigned int slots = slots_per_cell(style);
	enum color now = COLOR_END;

	for (unsigned int slot = 0; slot < WHEEL_SLOTS; slot += slots) {
		__u64 count = cell_count(&wheel->level[nr], slot, slots);
		enum color wanted = count ? COLOR_CELL : COLOR_END;

		if (wheel_position(wheel, nr) / slots == slot / slots) {
			fprintf(out, "%s%s%s", color(COLOR_MARK), brush->mark, color(COLOR_END));
			now = COLOR_END;
		}
		if (wanted != now)
			fputs(color(wanted), out);
		now = wanted;
		fputs(brush->shades[shade_of(count, most)], out);
	}
	if (now != COLOR_END)
		fputs(color(COLOR_END), out);
}

static void draw_level(const struct wheel *wheel, unsigned int nr, __u64 most,
		       const struct draw_style *style, FILE *out)
{
	const char *edge = style->ascii ? ascii_brush.edge : unicode_brush.edge;
	double span_ns = ldexp(wheel->tick_ns, WHEEL_SPAN_BITS * nr);
	char text[NUMBER_TEXT];

	fprintf(out, "%7u  %-7s %9llu  %s", nr, duration_format(text, span_ns),
		wheel->level[nr].armed, edge);
	draw_cells(wheel, nr, most, style, out);
	fprintf(out, "%s\n", edge);
}

void draw_levels(const struct wheel *wheel, const struct draw_style *style, FILE *out)
{
	__u64 most = fullest_cell(wheel, slots_per_cell(style));

	if (!style->all && !wheel->armed)
		return;
	fputs("  level  slot        armed\n", out);
	for (unsigned int i = 0; i < WHEEL_LEVELS; i++)
		if (style->all || wheel->level[i].armed)
			draw_level(wheel, i, most, style, out);
}

static void write_head(const struct wheel *wheel, FILE *out)
{
	char text[NUMBER_TEXT];

	fprintf(out, "%scpu%u %s", color(COLOR_TITLE), wheel->cpu, wheel->clock);
	if (strcmp(wheel->kind, WHEEL_PLAIN))
		fprintf(out, " %s", wheel->kind);
	fprintf(out, "%s: %llu armed, ", color(COLOR_END), wheel->armed);
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
	if (!wheel->online)
		fprintf(out, ", %soffline%s", color(COLOR_ALARM), color(COLOR_END));
}

/* The number of characters of a word, of which colours are none. */
static size_t word_columns(const char *word, size_t len)
{
	size_t columns = 0;
	bool in_color = false;

	for (size_t i = 0; i < len; i++) {
		in_color = in_color || word[i] == '\033';
		columns += !in_color;
		in_color = in_color && word[i] != 'm';
	}
	return columns;
}

/* Writes the words of a text in lines of at most @columns; the first is not indented. */
static void write_words(const char *text, size_t columns, FILE *out)
{
	size_t used = 0, len, wide;

	for (; *text; text += len + (text[len] == ' ')) {
		len = strcspn(text, " ");
		wide = word_columns(text, len);
		if (used && used + 1 + wide > columns) {
			fputs("\n   ", out);
			used = 3;
		}
		fprintf(out, "%s%.*s", used ? " " : "", (int)len, text);
		used += wide + (used != 0);
	}
	fputc('\n', out);
}

static void draw_head(const struct wheel *wheel, const struct draw_style *style, FILE *out)
{
	char *text = NULL;
	size_t len;
	FILE *head = open_memstream(&text, &len);

	if (!head)
		errx(EXIT_FAILURE, "out of memory for a line");
	write_head(wheel, head);
	if (fclose(head) || !text)
		errx(EXIT_FAILURE, "out of memory for a line");
	write_words(text, style->columns ? style->columns : SIZE_MAX, out);
	free(text);
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

		draw_head(wheel, style, out);
		draw_levels(wheel, style, out);
	}
}

void draw_legend(const struct draw_style *style, FILE *out)
{
	const struct brush *brush = style->ascii ? &ascii_brush : &unicode_brush;

	fprintf(out, "%s%s%s the current slot; few to many events: %s", color(COLOR_MARK),
		brush->mark, color(COLOR_END), color(COLOR_CELL));
	for (unsigned int i = 1; i <= NR_SHADES; i++)
		fputs(brush->shades[i], out);
	fprintf(out, "%s\n", color(COLOR_END));
}
