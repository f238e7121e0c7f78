// SPDX-License-Identifier: GPL-2.0
/*
 * The player: runs a schedule on the device.
 */
#include <err.h>
#include <errno.h>
#include <string.h>

#include "common/time.h"
#include "common/wait.h"
#include "common/number.h"
#include "twheelctl/replay/player.h"

/* How often the counters are checked during a replay. */
#define NR_CHECKS	32

#define PROGRESS_NS	(200 * NSEC_PER_MSEC)
#define PROGRESS_WIDTH	16

static __u64 later(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

static __u64 earlier(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static __u64 start_ns(const struct player *player)
{
	return player->ledger.start_ns;
}

static __u64 line_ns(const struct player *player, size_t line)
{
	return start_ns(player) + player->schedule->lines[line].at_ns;
}

static void add_cost(struct cost *cost, size_t items, __u64 ns)
{
	cost->calls++;
	cost->items += items;
	cost->ns += ns;
}

/*
 * Stores the deadline of a planned line, if its event has one. Returns whether the store
 * was enough.
 */
static bool store_deadline(struct player *player, const struct schedule_line *line,
			   enum plan plan)
{
	struct ledger *ledger = &player->ledger;

	if (!player->deadlines || line->command == SCHEDULE_CANCEL)
		return false;
	device_store(player->dev, line->event, ledger_due_ns(ledger, line));
	if (plan != PLAN_STORE || !ledger_store_will_do(ledger, line, wait_now_ns()))
		return false;
	ledger_stored(ledger, line);
	return true;
}

static bool is_overdue(const struct player *player, const struct schedule_line *line,
		       __u64 now)
{
	return line->command != SCHEDULE_CANCEL &&
	       ledger_due_ns(&player->ledger, line) < now;
}

/*
 * Runs the lines whose time has come, up to a batch: by stores, and by commands, which the
 * caller submits.
 *
 * @nr_cmds: out: the number of commands.
 *
 * Return: the number of lines.
 */
static size_t plan_batch(struct player *player, __u64 now, size_t *nr_cmds)
{
	size_t nr = 0;

	*nr_cmds = 0;
	while (nr < PLAYER_BATCH && nr < player_left(player) &&
	       line_ns(player, player->next + nr) <= now) {
		const struct schedule_line *line =
			&player->schedule->lines[player->next + nr];
		enum plan plan = ledger_plan(&player->ledger, line,
					     &player->cmds[*nr_cmds]);

		if (plan == PLAN_WAIT)
			break;
		player->overdue += is_overdue(player, line, now);
		if (!store_deadline(player, line, plan))
			player->planned[(*nr_cmds)++] = line;
		nr++;
	}
	return nr;
}

/* Submits the commands of a batch. */
static int submit_batch(struct player *player, size_t nr)
{
	__u64 before = wait_steady_ns();
	int ret = device_submit(player->dev, player->cmds, nr);

	if (ret) {
		warnx("the device takes no commands: %s", strerror(-ret));
		return ret;
	}
	add_cost(&player->submit, nr, wait_steady_ns() - before);
	for (size_t i = 0; i < nr; i++)
		ledger_result(&player->ledger, player->planned[i],
			      &player->cmds[i]);
	return 0;
}

/*
 * Runs lines whose time has come by @now, one batch at most.
 *
 * Return: the number of lines, 0 if there is none or the next one has to wait for a
 * record; or a negative errno.
 */
static int run_lines(struct player *player, __u64 now)
{
	size_t nr_cmds;
	size_t nr = plan_batch(player, now, &nr_cmds);
	int ret = nr_cmds ? submit_batch(player, nr_cmds) : 0;

	if (ret || !nr)
		return ret;
	player->behind_ns = later(player->behind_ns,
				  now - line_ns(player, player->next));
	player->progress_ns = wait_steady_ns();
	player->next += nr;
	return nr;
}

static void write_record(struct player *player,
			 const struct twheel_record *record)
{
	const char *name = record->data < player->schedule->nr_events ?
			   player->schedule->names[record->data] : "";
	char due[NUMBER_TEXT], fired[NUMBER_TEXT];

	fprintf(player->records_file, "%s,%s,%s,%llu,%s\n", name,
		seconds_format(due, record->due_ns - start_ns(player)),
		seconds_format(fired, record->fired_ns - start_ns(player)),
		record->count, reason_name(record->reason));
}

/*
 * Returns whether the player may have waited for a record. It never waits for those of
 * periodic events, which do not end: else it would never give up a missing record.
 */
static bool is_waited_for(const struct player *player,
			  const struct twheel_record *record)
{
	return !player_left(player) ||
	       record->due_ns <= line_ns(player, player->next);
}

static void take_record(struct player *player,
			const struct twheel_record *record, __u64 before,
			__u64 now)
{
	if (is_waited_for(player, record)) {
		player->progress_ns = wait_steady_ns();
		player->nr_awaited++;
	}
	ledger_record(&player->ledger, record, before, now);
	if (record->fired_ns >= record->due_ns)
		fine_histogram_add(&player->lateness, record->fired_ns - record->due_ns);
	if (now >= record->due_ns)
		fine_histogram_add(&player->delivery, now - record->due_ns);
	if (player->records_file)
		write_record(player, record);
}

/*
 * Reads records that are ready.
 *
 * Return: the number of records, or a negative errno.
 */
static int read_records(struct player *player)
{
	__u64 began = wait_steady_ns();
	__u64 before = wait_now_ns();
	int nr = device_read(player->dev, player->records, PLAYER_BATCH);
	__u64 after = wait_now_ns();

	if (nr < 0)
		warnx("the device cannot be read: %s", strerror(-nr));
	if (nr <= 0)
		return nr;
	add_cost(&player->read, nr, wait_steady_ns() - began);
	for (int i = 0; i < nr; i++)
		take_record(player, &player->records[i], before, after);
	return nr;
}

/* Sleeps until records are ready or the time is @until_ns. */
static int wait_for_records(struct player *player, __u64 until_ns)
{
	struct pollfd file = { .fd = player->dev->fd, .events = POLLIN };
	int ret = wait_until(&file, 1, until_ns);

	if (ret < 0) {
		warnx("cannot wait for records: %s", strerror(-ret));
		return ret;
	}
	if (file.revents & ~POLLIN) {
		warnx("the device is no longer there");
		return -ENODEV;
	}
	return ret;
}

/*
 * The time of the next line or, after the last line, the due time of the last event.
 *
 * If that time had come when run_lines() read the clock, the player waits for a record. If
 * it came later, the line has not been tried yet.
 */
static __u64 next_ns(const struct player *player)
{
	return player_left(player) ? line_ns(player, player->next) :
	       start_ns(player) + player->schedule->end_ns;
}

/* The end of the grace time for a record that is due. */
static __u64 grace_left(const struct player *player)
{
	__u64 waited_ns = wait_steady_ns() - player->progress_ns;

	return waited_ns < player->grace_ns ? player->grace_ns - waited_ns : 0;
}

/* The next time at which there is something to do without a record. */
static __u64 wake_ns(const struct player *player, __u64 now)
{
	__u64 wake = next_ns(player);

	if (wake <= now)
		wake = now + grace_left(player);
	if (player->draw_at_ns != TIME_NEVER_NS)
		wake = earlier(wake, start_ns(player) + player->draw_at_ns);
	if (player->show_progress)
		wake = earlier(wake, now + PROGRESS_NS);
	return wake;
}

static void check_counters(struct player *player)
{
	struct counters counters;

	if (device_counters(player->dev, &counters))
		player->ledger.violations++;
	else
		ledger_counters(&player->ledger, &counters);
}

/* Checks the counters after each NR_CHECKS-th part of the replay. */
static void check_on_the_way(struct player *player)
{
	__u64 done = player->next + player->ledger.records;
	__u64 part = player->schedule->nr_lines / NR_CHECKS + 1;

	if (done < player->check_at)
		return;
	player->check_at = done + part;
	check_counters(player);
}

static void draw_on_the_way(struct player *player, __u64 now)
{
	if (player->draw_at_ns == TIME_NEVER_NS ||
	    now < start_ns(player) + player->draw_at_ns)
		return;
	player->draw_at_ns = TIME_NEVER_NS;
	player->draw(player->draw_context);
}

static void show_progress(struct player *player, __u64 now)
{
	static const char bar[PROGRESS_WIDTH + 1] =
		"################";
	double part = ((double)now - start_ns(player)) /
		      (player->schedule->end_ns + 1);

	if (now < player->shown_ns + PROGRESS_NS)
		return;
	player->shown_ns = now;
	part = part < 0 ? 0 : part > 1 ? 1 : part;
	fprintf(stderr, "\r[%-*.*s] %3.0f%%  %zu/%zu lines, %llu live, %llu records ",
		PROGRESS_WIDTH, (int)(part * PROGRESS_WIDTH), bar, 100 * part,
		player->next, player->schedule->nr_lines, player->ledger.live,
		player->ledger.records);
}

static void clear_progress(void)
{
	fprintf(stderr, "\r\033[K");
}

static bool is_over(const struct player *player)
{
	return !player_left(player) && !player->ledger.live;
}

/*
 * One turn of the loop.
 *
 * Return: 1; 0 if a missing record is given up; or a negative errno.
 */
static int turn(struct player *player)
{
	__u64 now = wait_now_ns();
	int lines = run_lines(player, now);
	__u64 nr_awaited = player->nr_awaited;
	int ready;

	if (lines < 0)
		return lines;
	if (next_ns(player) > now)
		player->progress_ns = wait_steady_ns();
	draw_on_the_way(player, now);
	if (player->show_progress)
		show_progress(player, now);
	ready = wait_for_records(player, lines ? now : wake_ns(player, now));
	if (ready > 0)
		ready = read_records(player);
	if (ready < 0)
		return ready;
	check_on_the_way(player);
	return lines || player->nr_awaited > nr_awaited ||
	       next_ns(player) > now || grace_left(player);
}

/*
 * Check that no record is left and that the counters are right. If a record was given up,
 * periodic events may still be armed, and have more records.
 */
static int finish(struct player *player)
{
	int nr;

	do {
		nr = read_records(player);
	} while (nr > 0 && is_over(player));
	check_counters(player);
	return nr < 0 ? nr : 0;
}

/*
 * Run a schedule to its end.
 *
 * @player: the members up to @show_progress are set, the others are 0.
 *
 * Return: 0 if the whole schedule was run, even if the ledger has errors; or a negative
 * errno after a message.
 */
int player_run(struct player *player)
{
	__u64 began = wait_steady_ns();
	int ret = 1;

	ledger_init(&player->ledger, player->schedule, wait_now_ns());
	player->ledger.settable = player->settable;
	player->ledger.deadlines = player->deadlines;
	player->progress_ns = began;
	while (ret > 0 && !is_over(player))
		ret = turn(player);
	if (ret >= 0)
		ret = finish(player);
	player->took_ns = wait_steady_ns() - began;
	if (player->show_progress)
		clear_progress();
	return ret;
}
