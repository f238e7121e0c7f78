// SPDX-License-Identifier: GPL-2.0
/*
 * Generates a schedule from a seed.
 *
 * Each event of the schedule is added once. Of ten events, five expire, two are modified,
 * two are cancelled, and one has a modify or a cancel that comes after its end. All are
 * added in the first quarter of the span. Three of four are due in the rest of it, so that
 * most events are armed at the same time; the fourth is due soon after it was added. All
 * times are whole microseconds.
 */
#include <err.h>
#include <stdlib.h>

#include "common/time.h"
#include "twheelctl/replay/schedule.h"

/* The maximum number of lines of one event. */
#define LINES_PER_EVENT	2

/**
 * struct generator - a schedule while it is generated
 * @schedule: the result.
 * @random: the state of the random numbers.
 * @span_us: the schedule's length.
 */
struct generator {
	struct schedule *schedule;
	__u64 random;
	__u64 span_us;
};

/* Sebastiano Vigna's splitmix64. */
static __u64 next_random(struct generator *generator)
{
	__u64 z = generator->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* A random number from @from to @to - 1, or @from if that range is empty. */
static __u64 between(struct generator *generator, __u64 from, __u64 to)
{
	return to > from ? from + next_random(generator) % (to - from) : from;
}

static void put_line(struct generator *generator, enum schedule_command command,
		     __u32 event, __u64 at_us, __u64 due_us)
{
	struct schedule *schedule = generator->schedule;

	schedule->lines[schedule->nr_lines++] = (struct schedule_line){
		.at_ns = at_us * NSEC_PER_USEC,
		.delay_ns = (due_us - at_us) * NSEC_PER_USEC,
		.event = event,
		.command = command,
	};
}

/* Modifies or cancels an event at a random time from @from to @to. */
static void put_change(struct generator *generator,
		       enum schedule_command command, __u32 event,
		       __u64 from_us, __u64 to_us)
{
	__u64 at = between(generator, from_us, to_us);
	__u64 due = between(generator, at + 1, generator->span_us + 1);

	put_line(generator, command, event, at,
		 command == SCHEDULE_CANCEL ? at : due);
}

static void put_event(struct generator *generator, __u32 event)
{
	__u64 span = generator->span_us;
	__u64 at = between(generator, 0, span / 4);
	__u64 due = next_random(generator) % 4 ?
		    between(generator, span / 4, span) :
		    between(generator, at + 1, at + span / 16);

	put_line(generator, SCHEDULE_ADD, event, at, due);
	switch (next_random(generator) % 10) {
	case 0:
	case 1:
		put_change(generator, SCHEDULE_MODIFY, event, at, due);
		break;
	case 2:
	case 3:
		put_change(generator, SCHEDULE_CANCEL, event, at, due);
		break;
	case 4:
		put_change(generator, event % 2 ? SCHEDULE_MODIFY : SCHEDULE_CANCEL,
			   event, due, span);
		break;
	}
}

/* An event's later line is never earlier, so its number keeps their order. */
static int compare_lines(const void *a, const void *b)
{
	const struct schedule_line *left = a, *right = b;

	if (left->at_ns != right->at_ns)
		return left->at_ns < right->at_ns ? -1 : 1;
	return left->number < right->number ? -1 : left->number > right->number;
}

/* Numbers the lines as those of the file that schedule_write() makes. */
static void number_lines(struct schedule *schedule)
{
	for (size_t i = 0; i < schedule->nr_lines; i++)
		schedule->lines[i].number = i + 2;
}

static void name_events(struct schedule *schedule)
{
	size_t room = sizeof("e4294967295");
	const char **names = calloc(schedule->nr_events, sizeof(*names));

	schedule->text = calloc(schedule->nr_events, room);
	if (!names || !schedule->text)
		errx(EXIT_FAILURE, "out of memory for the schedule");
	for (__u32 i = 0; i < schedule->nr_events; i++) {
		names[i] = schedule->text + i * room;
		snprintf(schedule->text + i * room, room, "e%u", i);
	}
	schedule->names = names;
}

/*
 * Generate a schedule.
 *
 * @nr_events: the number of events, at least one.
 * @span_ns: the time in which all lines are run and all events are due, at least a
 *	millisecond.
 * @seed: the same seed gives the same schedule.
 */
void schedule_generate(struct schedule *schedule, __u32 nr_events,
		       __u64 span_ns, __u64 seed)
{
	struct generator generator = {
		.schedule = schedule,
		.random = seed,
		.span_us = span_ns / NSEC_PER_USEC,
	};

	*schedule = (struct schedule){
		.source = "generated",
		.nr_events = nr_events,
		.lines = calloc(nr_events, LINES_PER_EVENT * sizeof(*schedule->lines)),
	};
	if (!schedule->lines)
		errx(EXIT_FAILURE, "out of memory for the schedule");
	name_events(schedule);
	for (__u32 i = 0; i < nr_events; i++)
		put_event(&generator, i);
	number_lines(schedule);
	qsort(schedule->lines, schedule->nr_lines, sizeof(*schedule->lines),
	      compare_lines);
	number_lines(schedule);
}
