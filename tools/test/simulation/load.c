// SPDX-License-Identifier: GPL-2.0
/*
 * A mixed load on all three clocks for days of virtual time, with a ledger.
 *
 * Each clock has a file with the same number of events. Their delays are between 2 ms and a
 * limit, the short ones as frequent as the long ones: each range of a factor of two has the same
 * share. One event in eight has a period, one in eight has slack. When an event expires, it is
 * armed again with another delay. One time in sixteen that records come, two events get another
 * time, and one is cancelled and armed again: with more of that, short delays would take over.
 *
 * On request the wall clock is set by up to two hours each hour, back or forth, or the machine is
 * suspended for up to two hours each day.
 *
 * The ledger knows of each event when it is due. What must hold of each record:
 *
 *  1. It is of an event that is armed, with its id and its due time.
 *  2. It fired at its due time or later.
 *  3. It fired at most a tick after the due time, rounded up to a tick, or after the end of the
 *     slack. If its clock jumped beyond the due time, the limit is JUMP_NS after the new time:
 *     the kernel's worker tells timers of it. One record in BUSY_SHARE may be later, by up to
 *     BUSY_NS: where each instruction takes time, the processor may be at something else.
 *  4. It counts one expiration, or as many of a period as the clock jumped beyond.
 *
 * In the end, and each simulated day, QUERY finds each event, and none waits whose time is over.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/libtwheel.h"

#define DAY_NS		(86400 * TWHEEL_SECOND)
#define HOUR_NS		(3600 * TWHEEL_SECOND)
#define DELAY_MIN_NS	(2 * TWHEEL_MILLISECOND)
#define JUMP_NS		(50 * TWHEEL_MILLISECOND)
#define BUSY_NS		TWHEEL_MILLISECOND
#define BUSY_SHARE	200
#define SLACK_MAX_NS	(5 * TWHEEL_SECOND)
#define SUSPEND_MIN_S	60
#define RECORDS_MAX	256
/* So many events get another time when the wall clock is set. */
#define MOVED_BY_SET	8
/* Monday, 18 January 2038, 12:00 UTC: 15 hours before 32 bits of seconds overflow. */
#define START_S		2147428800LL

enum { MONOTONIC, BOOTTIME, REALTIME, NR_CLOCKS };

static const struct {
	clockid_t id;
	const char *name;
} clocks[NR_CLOCKS] = {
	[MONOTONIC] = { CLOCK_MONOTONIC, "monotonic" },
	[BOOTTIME] = { CLOCK_BOOTTIME, "boottime" },
	[REALTIME] = { CLOCK_REALTIME, "realtime" },
};

/* What makes clocks jump: nothing, setting the wall clock each hour, or suspending each day. */
enum { JUMP_NONE, JUMP_SET, JUMP_SUSPEND, NR_JUMPS };

static const char *const jumps[NR_JUMPS] = {
	[JUMP_NONE] = "none",
	[JUMP_SET] = "set",
	[JUMP_SUSPEND] = "suspend",
};

/**
 * struct event - an event, as the ledger knows it
 * @id: its id.
 * @due_ns: when it is due; with a period, for the first time.
 * @interval_ns: its period; 0: none.
 * @slack_ns: its slack.
 * @jump_ns: its clock jumped to this time, which is past its next due time; 0: it did not.
 * @count: how many of a period's expirations were read.
 */
struct event {
	uint64_t id;
	uint64_t due_ns;
	uint64_t interval_ns;
	uint64_t slack_ns;
	uint64_t jump_ns;
	uint64_t count;
};

/* A clock's file and its events, by the data of their records, and how many records came. */
struct side {
	struct twheel *wheel;
	struct event *events;
	unsigned int clock;
	uint64_t nr_records;
};

static struct side sides[NR_CLOCKS];
static unsigned int nr_events = 1000;
static uint64_t delay_max_ns = 30 * DAY_NS;
static uint64_t tick_ns;
static uint64_t seed = 1;

static struct {
	uint64_t expirations;
	uint64_t moved;
	uint64_t cancelled;
	uint64_t clock_sets;
	uint64_t suspends;
	uint64_t most_late_ns;
	uint64_t beyond_limit;
} seen;

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	exit(1);
}

/* --- chance --------------------------------------------------------------------------- */

/* xorshift64 */
static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t random_below(uint64_t limit)
{
	return next_random() % limit;
}

/* Each factor of two is as likely as any other one. */
static uint64_t random_between(uint64_t from, uint64_t to)
{
	double part = (double)(next_random() >> 11) / (1ULL << 53);

	return (uint64_t)(from * pow((double)to / from, part));
}

/* --- arming --------------------------------------------------------------------------- */

static void fill(struct side *side, unsigned int i, struct twheel_cmd *cmd)
{
	struct event *event = &side->events[i];

	*event = (struct event){
		.due_ns = twheel_now_ns(side->wheel) + random_between(DELAY_MIN_NS, delay_max_ns),
	};
	if (random_below(8) == 0)
		event->interval_ns = random_between(delay_max_ns / 1000, delay_max_ns / 30);
	else if (random_below(7) == 0)
		event->slack_ns = random_below(SLACK_MAX_NS);
	twheel_prep_add(cmd, event->due_ns, i, TWHEEL_ABS);
	twheel_cmd_set_interval(cmd, event->interval_ns);
	twheel_cmd_set_slack(cmd, event->slack_ns);
}

static void arm(struct side *side, unsigned int i)
{
	struct twheel_cmd cmd;

	fill(side, i, &cmd);
	if (twheel_run(side->wheel, &cmd))
		fail("cannot arm an event: %s", strerror(-cmd.result));
	side->events[i].id = cmd.id;
}

/* An event without a period gets another time; it may have a record that was not read yet. */
static void move(struct side *side)
{
	unsigned int i = random_below(nr_events);
	struct event *event = &side->events[i];
	struct twheel_cmd cmd;

	if (event->interval_ns)
		return;
	event->due_ns = twheel_now_ns(side->wheel) + random_between(DELAY_MIN_NS, delay_max_ns);
	event->jump_ns = 0;
	twheel_prep_modify(&cmd, event->id, event->due_ns, TWHEEL_ABS);
	twheel_cmd_set_slack(&cmd, event->slack_ns);
	if (twheel_run(side->wheel, &cmd))
		fail("cannot move an event: %s", strerror(-cmd.result));
	seen.moved++;
}

static void end(struct side *side, unsigned int i)
{
	int error = twheel_cancel(side->wheel, side->events[i].id);

	if (error)
		fail("cannot cancel an event: %s", strerror(-error));
	seen.cancelled++;
}

static void cancel(struct side *side)
{
	unsigned int i = random_below(nr_events);

	end(side, i);
	arm(side, i);
}

/* --- the ledger ----------------------------------------------------------------------- */

static uint64_t max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* When it is due next. */
static uint64_t next_due_ns(const struct event *event)
{
	return event->due_ns + event->count * event->interval_ns;
}

/* When it has fired at the latest. */
static uint64_t limit_ns(const struct event *event)
{
	uint64_t jump_ns = event->jump_ns ? event->jump_ns + JUMP_NS : 0;

	return max_of(next_due_ns(event), jump_ns) + event->slack_ns + 2 * tick_ns;
}

/* The times of a record are those of the first expiration that it covers. */
static void check_time(const struct side *side, const struct event *event,
		       const struct twheel_record *record)
{
	uint64_t due_ns = next_due_ns(event);

	if (record->due_ns != due_ns)
		fail("%s: an event due at %lu says %llu", clocks[side->clock].name, due_ns,
		     record->due_ns);
	if (record->fired_ns < due_ns)
		fail("%s: an event due at %lu is early, at %llu", clocks[side->clock].name, due_ns,
		     record->fired_ns);
	seen.beyond_limit += record->fired_ns > limit_ns(event);
	if (record->fired_ns > limit_ns(event) + BUSY_NS)
		fail("%s: an event due at %lu, slack %lu, clock set to %lu, is late, at %llu",
		     clocks[side->clock].name, due_ns, event->slack_ns, event->jump_ns,
		     record->fired_ns);
	if (!event->jump_ns && !event->slack_ns)
		seen.most_late_ns = max_of(seen.most_late_ns, record->fired_ns - due_ns);
}

/*
 * Records are read at once. So one covers one expiration, unless the clock jumped beyond more:
 * then the last of them is less than a period ago.
 */
static void check_count(const struct side *side, const struct event *event,
			const struct twheel_record *record)
{
	uint64_t last_ns = next_due_ns(event) + (record->count - 1) * event->interval_ns;
	uint64_t now_ns = twheel_now_ns(side->wheel);
	bool is_right = record->count == 1;

	if (event->jump_ns && event->interval_ns)
		is_right = record->count > 0 && last_ns <= now_ns &&
			   now_ns - last_ns < event->interval_ns + JUMP_NS;
	if (!is_right)
		fail("%s: an event due at %lu each %lu ns counts %llu at %lu",
		     clocks[side->clock].name, event->due_ns, event->interval_ns, record->count,
		     now_ns);
}

static void check(struct side *side, const struct twheel_record *record)
{
	struct event *event;

	if (record->data >= nr_events || record->reason != TWHEEL_EXPIRED)
		fail("%s: a record of nobody", clocks[side->clock].name);
	event = &side->events[record->data];
	if (record->id != event->id)
		fail("%s: a record of an event that is not armed", clocks[side->clock].name);
	seen.expirations += record->count;
	side->nr_records++;
	check_time(side, event, record);
	check_count(side, event, record);
	if (!event->interval_ns)
		return;
	event->count += record->count;
	event->jump_ns = 0;
}

/* An event with a period is ended now and then, for another one. */
static void read_side(struct side *side, struct twheel_records *records)
{
	const struct twheel_record *record;

	while (twheel_read(side->wheel, records)) {
		twheel_for_each_record(record, records) {
			const struct event *event;

			check(side, record);
			event = &side->events[record->data];
			if (event->interval_ns && random_below(32))
				continue;
			if (event->interval_ns)
				end(side, record->data);
			arm(side, record->data);
		}
		if (random_below(16))
			continue;
		move(side);
		move(side);
		cancel(side);
	}
}

/* An event whose time is over does not wait any more. */
static void check_waiting(struct side *side, const struct event *event)
{
	uint64_t now_ns = twheel_now_ns(side->wheel);
	int state = twheel_query(side->wheel, event->id, NULL);

	if (state != TWHEEL_ARMED && state != TWHEEL_READY)
		fail("%s: an event is lost", clocks[side->clock].name);
	if (state == TWHEEL_ARMED && now_ns > limit_ns(event))
		fail("%s: an event due at %lu still waits at %lu", clocks[side->clock].name,
		     next_due_ns(event), now_ns);
}

static void check_all(void)
{
	unsigned int i, j;

	for (i = 0; i < NR_CLOCKS; i++)
		for (j = 0; j < nr_events; j++)
			check_waiting(&sides[i], &sides[i].events[j]);
}

/* --- clocks that jump ----------------------------------------------------------------- */

/*
 * Events of this clock that are over now could not expire in their tick, and those that are due
 * while the kernel's worker makes wheels for a clock that was set back may not.
 */
static void note_jump(struct side *side)
{
	uint64_t now_ns = twheel_now_ns(side->wheel);
	unsigned int i;

	for (i = 0; i < nr_events; i++) {
		struct event *event = &side->events[i];

		event->jump_ns = next_due_ns(event) <= now_ns + JUMP_NS ? now_ns : 0;
	}
}

/* If the clock was set back, some events are now due before all that the wheel has come to. */
static void set_clock(void)
{
	struct timespec now;
	unsigned int i;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += (long)random_below(4 * 3600) - 2 * 3600;
	if (clock_settime(CLOCK_REALTIME, &now))
		fail("cannot set the clock: %m");
	for (i = 0; i < MOVED_BY_SET; i++)
		move(&sides[REALTIME]);
	cancel(&sides[REALTIME]);
	note_jump(&sides[REALTIME]);
	seen.clock_sets++;
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		fail("%s: %m", path);
	close(fd);
}

/* CLOCK_MONOTONIC stands still meanwhile. */
static void suspend(void)
{
	uint64_t before_ns[NR_CLOCKS];
	char text[32];
	unsigned int i;

	for (i = 0; i < NR_CLOCKS; i++)
		before_ns[i] = twheel_now_ns(sides[i].wheel);
	snprintf(text, sizeof(text), "+%lu", SUSPEND_MIN_S + random_below(7200));
	write_text("/sys/class/rtc/rtc0/wakealarm", text);
	write_text("/sys/power/state", "mem");
	for (i = 0; i < NR_CLOCKS; i++) {
		uint64_t passed_ns = twheel_now_ns(sides[i].wheel) - before_ns[i];
		bool went_on = passed_ns >= SUSPEND_MIN_S * TWHEEL_SECOND / 2;
		bool stands_still = i == MONOTONIC;

		if (went_on == stands_still)
			fail("%s: a suspend took %lu ns", clocks[i].name, passed_ns);
	}
	note_jump(&sides[BOOTTIME]);
	note_jump(&sides[REALTIME]);
	seen.suspends++;
}

/* --- main ----------------------------------------------------------------------------- */

static void run(uint64_t days, int jump)
{
	struct side *monotonic = &sides[MONOTONIC];
	uint64_t now_ns = twheel_now_ns(monotonic->wheel), end_ns = now_ns + days * DAY_NS;
	uint64_t hour_ns = now_ns + HOUR_NS, day_ns = now_ns + DAY_NS;
	struct pollfd files[NR_CLOCKS];
	struct twheel_records records;
	unsigned int i;

	if (twheel_records_init(&records, RECORDS_MAX))
		fail("no memory");
	for (i = 0; i < NR_CLOCKS; i++)
		files[i] = (struct pollfd){ .fd = twheel_fd(sides[i].wheel), .events = POLLIN };
	while ((now_ns = twheel_now_ns(monotonic->wheel)) < end_ns) {
		uint64_t until_ns = jump == JUMP_SET ? hour_ns : day_ns;

		if (poll(files, NR_CLOCKS, (until_ns - now_ns) / TWHEEL_MILLISECOND + 1) < 0)
			fail("poll: %m");
		for (i = 0; i < NR_CLOCKS; i++)
			if (files[i].revents)
				read_side(&sides[i], &records);
		now_ns = twheel_now_ns(monotonic->wheel);
		if (now_ns >= hour_ns && jump == JUMP_SET)
			set_clock();
		if (now_ns >= day_ns && jump == JUMP_SUSPEND)
			suspend();
		if (now_ns >= day_ns)
			check_all();
		hour_ns += now_ns >= hour_ns ? HOUR_NS : 0;
		day_ns += now_ns >= day_ns ? DAY_NS : 0;
	}
	check_all();
	for (i = 0; i < NR_CLOCKS; i++)
		if (!sides[i].nr_records)
			fail("%s: nothing has expired", clocks[i].name);
	twheel_records_destroy(&records);
}

static uint64_t nr_records(void)
{
	uint64_t nr = 0;
	unsigned int i;

	for (i = 0; i < NR_CLOCKS; i++)
		nr += sides[i].nr_records;
	return nr;
}

static void open_side(unsigned int clock)
{
	struct side *side = &sides[clock];
	struct twheel_config config;
	unsigned int i;
	int error;

	twheel_config_init(&config);
	config.clockid = clocks[clock].id;
	error = twheel_open(&side->wheel, &config);
	if (error)
		fail("cannot open the device: %s", strerror(-error));
	side->clock = clock;
	side->events = calloc(nr_events, sizeof(*side->events));
	if (!side->events)
		fail("no memory");
	for (i = 0; i < nr_events; i++)
		arm(side, i);
}

static int find_jump(const char *name)
{
	int jump;

	for (jump = 0; jump < NR_JUMPS; jump++)
		if (!strcmp(jumps[jump], name))
			return jump;
	return -EINVAL;
}

int main(int argc, char **argv)
{
	const struct timespec start = { .tv_sec = START_S };
	int jump = argc == 6 ? find_jump(argv[5]) : -EINVAL;
	uint64_t days;
	unsigned int i;

	if (jump < 0) {
		printf("Usage: load DAYS EVENTS LONGEST_DELAY_DAYS SEED none|set|suspend\n");
		return 2;
	}
	days = strtoull(argv[1], NULL, 10);
	nr_events = strtoul(argv[2], NULL, 10);
	delay_max_ns = strtoull(argv[3], NULL, 10) * DAY_NS;
	seed = strtoull(argv[4], NULL, 10) * 2654435761 + 1;
	/* A machine that suspends has this time already, as its battery clock must agree. */
	if (jump != JUMP_SUSPEND && clock_settime(CLOCK_REALTIME, &start))
		fail("cannot set the clock: %m");
	for (i = 0; i < NR_CLOCKS; i++)
		open_side(i);
	tick_ns = twheel_info(sides[MONOTONIC].wheel)->tick_ns;
	run(days, jump);
	printf("days %lu\nrecords %lu\nexpirations %lu\nmoved %lu\ncancelled %lu\nclock_sets %lu\n"
	       "suspends %lu\nmost_late_ns %lu\nbeyond_limit %lu\ntick_ns %lu\n", days,
	       nr_records(), seen.expirations, seen.moved, seen.cancelled, seen.clock_sets,
	       seen.suspends, seen.most_late_ns, seen.beyond_limit, tick_ns);
	if (seen.beyond_limit * BUSY_SHARE > nr_records())
		fail("%lu of %lu records came too late", seen.beyond_limit, nr_records());
	return 0;
}
