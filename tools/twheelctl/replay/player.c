// SPDX-License-Identifier: GPL-2.0
/*
 * The player: runs a schedule on the device.
 */
#include <err.h>
#include <errno.h>
#include <string.h>

#include "../clock.h"
#include "../number.h"
#include "player.h"

/* How often the counters are checked on the way. */
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
 * Stores the deadline that a planned line gives its event, where it has one. Returns
 * whether that was all.
 */
static bool store_deadline(struct player *player, const struct schedule_line *line,
			   enum plan plan)
{
	struct ledger *ledger = &player->ledger;

	if (!player->deadlines || line->command == SCHEDULE_CANCEL)
		return false;
	device_store(player->dev, line->event, ledger_due_ns(ledger, line));
	if (plan != PLAN_STORE || !ledger_store_will_do(ledger, line, now_ns()))
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
 * Runs lines whose time has come, as many as can be now, up to a batch: by stores, and
 * by commands that are yet to be submitted.
 *
 * @nr_cmds: out: how many commands.
 *
 * Return: how many lines.
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
	__u64 before = steady_ns();
	int ret = device_submit(player->dev, player->cmds, nr);

	if (ret) {
		warnx("the device takes no commands: %s", strerror(-ret));
		return ret;
	}
	add_cost(&player->submit, nr, steady_ns() - before);
	for (size_t i = 0; i < nr; i++)
		ledger_result(&player->ledger, player->planned[i],
			      &player->cmds[i]);
	return 0;
}

/*
 * Runs lines whose time has come by @now, one batch at most.
 *
 * Return: how many, 0 where there is none or the next has to wait for a record;
 * or a negative errno.
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
	player->progress_ns = steady_ns();
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
 * Whether a record may be one that something waits for. Those of periodic events
 * never end: they must not put off for ever that another is given up.
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
		player->progress_ns = steady_ns();
		player->nr_awaited++;
	}
	ledger_record(&player->ledger, record, before, now);
	if (record->fired_ns >= record->due_ns)
		histogram_add(&player->lateness,
			      record->fired_ns - record->due_ns);
	if (now >= record->due_ns)
		histogram_add(&player->delivery, now - record->due_ns);
	if (player->records_file)
		write_record(player, record);
}

/*
 * Reads records that are ready.
 *
 * Return: how many, or a negative errno.
 */
static int read_records(struct player *player)
{
	__u64 began = steady_ns();
	__u64 before = now_ns();
	int nr = device_read(player->dev, player->records, PLAYER_BATCH);
	__u64 after = now_ns();

	if (nr < 0)
		warnx("the device cannot be read: %s", strerror(-nr));
	if (nr <= 0)
		return nr;
	add_cost(&player->read, nr, steady_ns() - began);
	for (int i = 0; i < nr; i++)
		take_record(player, &player->records[i], before, after);
	return nr;
}

/* Sleeps until there are records or it is @until_ns, whichever is first. */
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
 * When what comes next is due: the next line or, after the last, the last event.
 *
 * If that is by the moment at which run_lines() looked, only a record can get
 * it any further. A line whose time came after that was not tried yet, and waits
 * for nothing.
 */
static __u64 next_ns(const struct player *player)
{
	return player_left(player) ? line_ns(player, player->next) :
	       start_ns(player) + player->schedule->end_ns;
}

/* How much longer to wait for a record that is due. */
static __u64 grace_left(const struct player *player)
{
	__u64 waited_ns = steady_ns() - player->progress_ns;

	return waited_ns < player->grace_ns ? player->grace_ns - waited_ns : 0;
}

/* When there is something to do next, records aside. */
static __u64 wake_ns(const struct player *player, __u64 now)
{
	__u64 wake = next_ns(player);

	if (wake <= now)
		wake = now + grace_left(player);
	if (player->draw_at_ns != NEVER_NS)
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

/* Checks the counters each time that a part of the whole is done. */
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
	if (player->draw_at_ns == NEVER_NS ||
	    now < start_ns(player) + player->draw_at_ns)
		return;
	player->draw_at_ns = NEVER_NS;
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
 * Return: 1; 0 where a record that was waited for is given up; or a negative
 * errno.
 */
static int turn(struct player *player)
{
	__u64 now = now_ns();
	int lines = run_lines(player, now);
	__u64 nr_awaited = player->nr_awaited;
	int ready;

	if (lines < 0)
		return lines;
	if (next_ns(player) > now)
		player->progress_ns = steady_ns();
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
 * There must be nothing left to read, and nothing left in the counters. Where
 * something was given up, what is periodic can still go on, and has no end.
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
 * @player: with all set up to @show_progress, and zeros.
 *
 * Return: 0 when it was run, whatever its ledger says then; or a negative errno
 * after a message.
 */
int player_run(struct player *player)
{
	__u64 began = steady_ns();
	int ret = 1;

	ledger_init(&player->ledger, player->schedule, now_ns());
	player->ledger.settable = player->settable;
	player->ledger.deadlines = player->deadlines;
	player->progress_ns = began;
	while (ret > 0 && !is_over(player))
		ret = turn(player);
	if (ret >= 0)
		ret = finish(player);
	player->took_ns = steady_ns() - began;
	if (player->show_progress)
		clear_progress();
	return ret;
}
