// SPDX-License-Identifier: GPL-2.0
/*
 * A device for the test, in place of device.c. It needs no module. For every tenth event
 * it breaks one rule, which the environment variable TWHEELCTL_FAULT names.
 *
 *	lose		it never expires
 *	duplicate	its record comes twice
 *	early		it fires 50 ms before it is due
 *	hasty		the same, but its record says that it fired when it was due
 *	mixup		its record has the data of its neighbour
 *	misdated	its record says another due time
 *	uncancelled	CANCEL gives 0, but it expires
 *	unmodified	MODIFY gives 0 and changes nothing
 *	stale		CANCEL and MODIFY give 0 when it has ended
 *	full		ADD gives -ENOSPC, from the first event on
 *	forgetful	MODIFY gives -ENOENT
 *	miscounted	it is counted as added twice
 *	again		its record covers the expirations of its previous one again
 *	skip		its record leaves out the expiration it should begin with
 *	overcount	its record covers one expiration too many
 *	undercount	its record covers none
 *	unwatchable	WATCH gives -ENOSPC
 *	blind		it does not look at its word when its time comes
 *	restless	it looks at its word again and again
 *	wordless	no words can be shared
 *	incapable	WATCH, SIGNAL and COMPLETE give -EOPNOTSUPP, of any event
 *
 * The id of an event is its index in a table that only grows. Watches have another one.
 *
 * The clock is simulated, too: it stands still while twheelctl works, and jumps to the next
 * event as soon as twheelctl only waits for a time. So a test of days takes no time, and
 * nothing is ever late. With TWHEELCTL_SLOW in the environment, each reading of the clock
 * takes a microsecond, as on a real machine.
 *
 * The program ends after LIFETIME_S of real time or MAX_RECORDS, because a periodic event
 * never ends.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/time.h"
#include "common/wait.h"
#include "twheelctl/device.h"

#define MAX_EVENTS	10000
#define MAX_WATCHES	1000
#define EARLY_NS	(50 * NSEC_PER_MSEC)
#define LIFETIME_S	60
#define MAX_RECORDS	100000

static struct fake_event {
	__u64 data;
	__u64 due_ns;
	__u64 interval_ns;
	__u64 slack_ns;
	__u64 completed_ns;
	__u64 value;
	__u64 key;
	__u64 deadline;
	unsigned int quorum;
	unsigned int progress;
	bool cancel_on_set;
	bool live;
	bool looked;
	bool again;
	bool completed;
} events[MAX_EVENTS];

/* A watch, until it is satisfied. */
static struct fake_watch {
	struct fake_event *event;
	__u64 key;
	__u64 need;
	__u64 sum;
	bool level;
	bool live;
} watches[MAX_WATCHES];

static size_t nr_events;
static size_t nr_watches;
static struct counters totals;
static __u64 clock_ns = 1000 * NSEC_PER_SEC;
static struct twheel_config config;
static const __u64 *words;

static bool fault(const char *name, size_t event)
{
	const char *wanted = getenv("TWHEELCTL_FAULT");

	return wanted && !strcmp(wanted, name) && event % 10 == 0;
}

static bool is_ready(const struct fake_event *event)
{
	if (event->deadline && !event->completed)
		return event->live && event->looked;
	return event->live && (event->completed || event->due_ns <= clock_ns);
}

static bool is_armed(const struct fake_event *event)
{
	return event->live && !is_ready(event);
}

static __u64 slack_of(const struct fake_event *event)
{
	return event->slack_ns > config.slack_ns ? event->slack_ns :
	       config.slack_ns;
}

/* The time at which an event fires: as late as its slack allows. */
static __u64 fires_ns(size_t i)
{
	if (!events[i].live || fault("lose", i))
		return TIME_NEVER_NS;
	if (events[i].completed)
		return events[i].completed_ns;
	if (fault("early", i) || fault("hasty", i))
		return events[i].due_ns - EARLY_NS;
	return events[i].due_ns + slack_of(&events[i]);
}

/* When the time of an event comes: reads its deadline. Returns whether it expires now. */
static void look(size_t i)
{
	struct fake_event *event = &events[i];
	__u64 word_ns;

	if (!event->deadline || !is_armed(event) || fires_ns(i) > clock_ns)
		return;
	word_ns = words[event->deadline - 1];
	if (word_ns > event->due_ns && word_ns > clock_ns && !fault("blind", i)) {
		event->due_ns = word_ns;
		totals.postponed += fault("restless", i) ? 100 : 1;
		return;
	}
	if (!fault("blind", i))
		event->due_ns = word_ns;
	event->looked = true;
}

static void look_at_words(void)
{
	for (size_t i = 0; i < nr_events; i++)
		look(i);
}

/* Finds the event that fires first, or NULL. */
static struct fake_event *first_event(void)
{
	struct fake_event *first = NULL;
	__u64 least_ns = TIME_NEVER_NS;

	for (size_t i = 0; i < nr_events; i++) {
		if (fires_ns(i) < least_ns) {
			least_ns = fires_ns(i);
			first = &events[i];
		}
	}
	return first;
}

/* The time at which the first event fires. */
static __u64 first_ns(void)
{
	struct fake_event *first = first_event();

	return first ? fires_ns(first - events) : TIME_NEVER_NS;
}

/* All clocks are the same, and none is set. */
void wait_choose_clock(clockid_t id)
{
	(void)id;
}

uint64_t wait_now_ns(void)
{
	if (getenv("TWHEELCTL_SLOW"))
		clock_ns += NSEC_PER_USEC;
	return clock_ns;
}

uint64_t wait_steady_ns(void)
{
	return wait_now_ns();
}

/* If stdin is among the files, waits in real time, because its input may come at any time. */
int wait_until(struct pollfd *files, nfds_t nr, uint64_t until_ns)
{
	__u64 ns = first_ns();

	files[0].revents = 0;
	if (ns > clock_ns && nr > 1 && files[1].fd >= 0)
		return poll(&files[1], 1, -1);

	if (ns > until_ns)
		ns = until_ns;
	if (ns == TIME_NEVER_NS)
		errx(EXIT_FAILURE, "nothing will ever wake this process");
	if (ns > clock_ns)
		clock_ns = ns;
	look_at_words();
	if (first_ns() <= clock_ns)
		files[0].revents = POLLIN;
	return !!files[0].revents;
}

int device_open(struct device *dev, const char *path)
{
	(void)path;
	dev->info = (struct twheel_info){
		.abi = TWHEEL_ABI_VERSION,
		.features = TWHEEL_FEATURE_PERIODIC | TWHEEL_FEATURE_SLACK |
			    TWHEEL_FEATURE_CLOCKS |
			    TWHEEL_FEATURE_OPERATIONS |
			    TWHEEL_FEATURE_DEADLINES | 1ULL << 63,
		.tick_ns = 65536,
		.max_events = MAX_EVENTS,
	};
	if (fault("wordless", 0))
		dev->info.features &= ~TWHEEL_FEATURE_DEADLINES;
	dev->fd = -1;
	dev->words = NULL;
	alarm(LIFETIME_S);
	return 0;
}

int device_configure(struct device *dev, const struct twheel_config *wanted)
{
	if (wanted->max_events > MAX_EVENTS)
		return -ENOSPC;
	if (wanted->max_events)
		dev->info.max_events = wanted->max_events;
	if (wanted->nr_deadlines > dev->info.max_events)
		return -EINVAL;
	config = *wanted;
	if (!wanted->nr_deadlines)
		return 0;
	dev->words = calloc(wanted->nr_deadlines, sizeof(*dev->words));
	if (!dev->words)
		return -ENOMEM;
	words = dev->words;
	return 0;
}

static void set_times(struct fake_event *event, const struct twheel_cmd *cmd,
		      __u64 time_ns)
{
	event->due_ns = time_ns;
	event->interval_ns = cmd->interval_ns;
	event->slack_ns = cmd->slack_ns;
	event->deadline = cmd->flags & TWHEEL_DEADLINE ? cmd->key + 1 : 0;
	event->cancel_on_set = cmd->flags & TWHEEL_CANCEL_ON_SET;
	event->looked = false;
}

static int add(struct device *dev, struct twheel_cmd *cmd, __u64 time_ns)
{
	struct fake_event *event = &events[nr_events];

	if (nr_events == dev->info.max_events || fault("full", nr_events))
		return -ENOSPC;
	totals.added += fault("miscounted", nr_events) ? 2 : 1;
	*event = (struct fake_event){
		.data = cmd->data,
		.quorum = cmd->quorum ? cmd->quorum : 1,
		.live = true,
	};
	set_times(event, cmd, time_ns);
	cmd->id = ++nr_events;
	return 0;
}

/* The number of watches that an event waits for. */
static unsigned int watches_of(const struct fake_event *event)
{
	unsigned int nr = 0;

	for (size_t i = 0; i < nr_watches; i++)
		nr += watches[i].live && watches[i].event == event;
	return is_armed(event) ? nr : 0;
}

static int fake_watch(const struct twheel_cmd *cmd)
{
	struct fake_event *event = &events[cmd->id - 1];

	if (event->interval_ns)
		return -EINVAL;
	if (is_ready(event))
		return -EALREADY;
	if (fault("unwatchable", cmd->id - 1) || nr_watches == MAX_WATCHES ||
	    watches_of(event) == TWHEEL_MAX_WATCHES)
		return -ENOSPC;
	watches[nr_watches++] = (struct fake_watch){
		.event = event,
		.key = cmd->key,
		.need = cmd->value,
		.level = cmd->flags & TWHEEL_LEVEL,
		.live = true,
	};
	return 0;
}

static int complete(struct fake_event *event, __u64 key, __u64 value)
{
	if (is_ready(event))
		return -EALREADY;
	event->completed = true;
	event->completed_ns = clock_ns;
	event->key = key;
	event->value = value;
	totals.completed++;
	return 0;
}

/* Returns whether a signal satisfies a watch. */
static bool satisfies(const struct twheel_cmd *cmd, struct fake_watch *watch)
{
	watch->sum += cmd->value;
	return (watch->level ? cmd->value : watch->sum) >= watch->need;
}

/* Delivers a signal to a watch. Returns whether it completes the event. */
static bool meet(const struct twheel_cmd *cmd, struct fake_watch *watch)
{
	struct fake_event *event = watch->event;

	if (!watch->live || watch->key != cmd->key || !is_armed(event))
		return false;
	if (cmd->flags & TWHEEL_QUIET) {
		event->live = false;
		totals.cancelled++;
		return true;
	}
	watch->live = !satisfies(cmd, watch);
	if (watch->live || ++event->progress < event->quorum)
		return false;
	return !complete(event, cmd->key, cmd->value);
}

static int tell_watches(const struct twheel_cmd *cmd)
{
	int ended = 0;

	for (size_t i = 0; i < nr_watches; i++)
		ended += meet(cmd, &watches[i]);
	return ended;
}

/* The due time that QUERY and LIST return. */
static __u64 told_due_ns(const struct fake_event *event)
{
	return event->deadline && is_armed(event) ? words[event->deadline - 1] :
	       event->due_ns;
}

static int query(struct twheel_cmd *cmd, const struct fake_event *event)
{
	cmd->time_ns = told_due_ns(event);
	cmd->interval_ns = event->interval_ns;
	cmd->slack_ns = slack_of(event);
	return is_ready(event) ? TWHEEL_READY : TWHEEL_ARMED;
}

static int cancel(size_t i)
{
	totals.cancelled++;
	events[i].live = fault("uncancelled", i);
	return 0;
}

static int modify(const struct twheel_cmd *cmd, size_t i, __u64 time_ns)
{
	struct fake_event *event = &events[i];

	if (fault("forgetful", i))
		return -ENOENT;
	if (event->completed)
		return -EALREADY;
	if (cmd->interval_ns && (event->quorum > 1 || watches_of(event)))
		return -EINVAL;
	if (!fault("unmodified", i))
		set_times(event, cmd, time_ns);
	return 0;
}

/* Runs a command on an existing event. */
static int change(struct twheel_cmd *cmd, __u64 time_ns)
{
	size_t i = cmd->id - 1;

	if (i >= nr_events)
		return -ENOENT;
	if (!events[i].live)
		return fault("stale", i) ? 0 : -ENOENT;
	switch (cmd->op) {
	case TWHEEL_OP_CANCEL:
		return cancel(i);
	case TWHEEL_OP_WATCH:
		return fake_watch(cmd);
	case TWHEEL_OP_COMPLETE:
		return complete(&events[i], 0, cmd->value);
	case TWHEEL_OP_QUERY:
		return query(cmd, &events[i]);
	default:
		return modify(cmd, i, time_ns);
	}
}

/* The due time that a command gives its event. */
static __u64 time_of(const struct twheel_cmd *cmd)
{
	if (cmd->flags & TWHEEL_DEADLINE)
		return cmd->key < config.nr_deadlines ? words[cmd->key] : 0;
	return cmd->flags & TWHEEL_ABS ? cmd->time_ns : clock_ns + cmd->time_ns;
}

/* @added: the id of the ADD before it, for a WATCH without one. */
static int fake_run(struct device *dev, struct twheel_cmd *cmd, __u64 added)
{
	__u64 time_ns = time_of(cmd);
	struct twheel_cmd named = *cmd;

	if (cmd->flags & TWHEEL_DEADLINE &&
	    (cmd->key >= config.nr_deadlines || cmd->time_ns || cmd->interval_ns))
		return -EINVAL;
	if (cmd->op == TWHEEL_OP_ADD)
		return add(dev, cmd, time_ns);
	if (cmd->op >= TWHEEL_OP_COMPLETE && cmd->op <= TWHEEL_OP_SIGNAL &&
	    fault("incapable", 0))
		return -EOPNOTSUPP;
	if (cmd->op == TWHEEL_OP_SIGNAL)
		return tell_watches(cmd);
	if (cmd->op != TWHEEL_OP_WATCH || cmd->id)
		return change(cmd, time_ns);
	named.id = added;
	return change(&named, time_ns);
}

int device_submit(struct device *dev, struct twheel_cmd *cmds, size_t nr)
{
	__u64 added = 0;

	look_at_words();
	for (size_t i = 0; i < nr; i++) {
		cmds[i].result = fake_run(dev, &cmds[i], added);
		if (cmds[i].op == TWHEEL_OP_ADD)
			added = cmds[i].id;
	}
	return 0;
}

/* The number of expirations that a record of an event covers. */
static __u64 count_of(const struct fake_event *event)
{
	size_t i = event - events;

	if (!event->interval_ns || clock_ns < event->due_ns)
		return 1;
	return (clock_ns - event->due_ns) / event->interval_ns + 1 +
	       fault("overcount", i) - fault("undercount", i);
}

/* Arms a periodic event again after a record, at the first expiration not covered. */
static void go_on(struct fake_event *event, __u64 count)
{
	size_t i = event - events;

	if (event->interval_ns && !event->completed) {
		event->due_ns += (count + !!fault("undercount", i)) *
				 event->interval_ns;
		return;
	}
	event->live = fault("duplicate", i) && !event->again;
	totals.finished += !event->live;
}

static void expire(struct fake_event *event, struct twheel_record *record)
{
	size_t i = event - events;
	__u64 count = count_of(event);

	*record = (struct twheel_record){
		.data = event->data + fault("mixup", i),
		.id = i + 1,
		.due_ns = event->due_ns - fault("misdated", i),
		.fired_ns = fault("hasty", i) ? event->due_ns : clock_ns,
		.count = count,
	};
	if (event->completed) {
		record->fired_ns = event->completed_ns;
		record->reason = TWHEEL_COMPLETED;
		record->key = event->key;
		record->value = event->value;
	}
	if (fault("skip", i))
		record->due_ns += event->interval_ns;
	if (fault("again", i) && event->again)
		record->due_ns -= event->interval_ns;
	go_on(event, count);
	event->again = true;
	totals.records++;
}

int device_read(struct device *dev, struct twheel_record *records, size_t nr)
{
	size_t done = 0;

	(void)dev;
	if (totals.records > MAX_RECORDS)
		errx(EXIT_FAILURE, "more than %d records", MAX_RECORDS);
	look_at_words();
	while (done < nr && first_ns() <= clock_ns)
		expire(first_event(), &records[done++]);
	return done;
}

int device_counters(struct device *dev, struct counters *counters)
{
	(void)dev;
	look_at_words();
	*counters = totals;
	counters->deadlines = config.nr_deadlines;
	for (size_t i = 0; i < nr_events; i++) {
		counters->ready += is_ready(&events[i]);
		counters->armed += is_armed(&events[i]);
	}
	return 0;
}

int device_list(struct device *dev, struct twheel_entry *entries, size_t nr,
		__u64 *cursor)
{
	size_t done = 0;

	(void)dev;
	for (; *cursor < nr_events && done < nr; ++*cursor) {
		const struct fake_event *event = &events[*cursor];

		if (!event->live)
			continue;
		entries[done++] = (struct twheel_entry){
			.id = *cursor + 1,
			.due_ns = told_due_ns(event),
			.interval_ns = event->interval_ns,
			.slack_ns = slack_of(event),
			.deadline = event->deadline,
			.state = is_ready(event) ? TWHEEL_READY : TWHEEL_ARMED,
			.quorum = event->quorum,
			.watches = watches_of(event),
			.flags = event->cancel_on_set ? TWHEEL_CANCEL_ON_SET : 0,
		};
	}
	return done;
}
