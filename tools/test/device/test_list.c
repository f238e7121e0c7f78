// SPDX-License-Identifier: GPL-2.0
/* TWHEEL_IOC_LIST: paging through the events of a context. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

static long list_by(int fd, struct twheel_list *list)
{
	struct twheel_list expected = *list;
	long ret = device_ioctl(fd, TWHEEL_IOC_LIST, list);

	/* Only the cursor is an output. */
	expected.cursor = list->cursor;
	ASSERT_EQ(memcmp(list, &expected, sizeof(expected)), 0);
	ASSERT_LE(ret, (long long)list->nr);
	return ret;
}

/* How often each event is listed, by its data, in pages of @page entries. */
static void count_listed(int fd, size_t page, unsigned int *seen, size_t nr)
{
	struct twheel_entry *entries = calloc(page, sizeof(*entries));
	struct twheel_list list = make_list(entries, page);
	long ret, i;

	ASSERT(entries);
	while ((ret = list_by(fd, &list)) > 0) {
		for (i = 0; i < ret; i++) {
			if (entries[i].data < nr)
				seen[entries[i].data]++;
			ASSERT_NE(entries[i].id, 0);
			ASSERT_EQ(entries[i].deadline, 0);
		}
	}
	ASSERT_EQ(ret, 0);

	/* Past the end it stays at the end. */
	ASSERT_EQ(list_by(fd, &list), 0);
	free(entries);
}

static void check_each_listed_once(int fd, size_t page, size_t nr)
{
	unsigned int *seen = calloc(nr + 1, sizeof(*seen));
	size_t i;

	ASSERT(seen);
	count_listed(fd, page, seen, nr);
	for (i = 0; i < nr; i++) {
		test_about("pages of %zu, event %zu of %zu", page, i, nr);
		ASSERT_EQ(seen[i], 1);
	}
	free(seen);
}

/* --- what it tells ---------------------------------------------------------- */

TEST(list_of_a_fresh_context_is_empty)
{
	struct twheel_entry entry;
	struct twheel_list list = make_list(&entry, 1);

	memset(&entry, FILL, sizeof(entry));
	ASSERT_EQ(list_by(device_open_nonblock(), &list), 0);
	check_bytes(&entry, FILL, sizeof(entry));
}

TEST(list_of_a_context_whose_events_have_gone_is_empty)
{
	struct twheel_entry entries[10];
	struct twheel_list list = make_list(entries, ARRAY_SIZE(entries));
	int fd = device_open_nonblock();
	__u64 ids[200];
	size_t i;

	add_many(fd, 0, FAR_NS, ARRAY_SIZE(ids), ids);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		ASSERT_EQ(cancel(fd, ids[i]), 0);
	add(fd, 0, 0, 0);
	wait_record(fd);
	ASSERT_EQ(list_by(fd, &list), 0);
}

TEST(list_tells_all_of_an_armed_event)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + FAR_NS;
	struct twheel_cmd cmd = make_periodic(TWHEEL_ABS, due_ns, NSEC_PER_SEC,
					      0x1234);
	struct twheel_entry entry;

	cmd.slack_ns = 777;
	cmd.id = add_by(fd, cmd);
	entry = list_one(fd, cmd.id);
	ASSERT_EQ(entry.id, cmd.id);
	ASSERT_EQ(entry.data, 0x1234);
	ASSERT_EQ(entry.due_ns, due_ns);
	ASSERT_EQ(entry.interval_ns, NSEC_PER_SEC);
	ASSERT_EQ(entry.slack_ns, 777);
	ASSERT_EQ(entry.deadline, 0);
	ASSERT_EQ(entry.state, TWHEEL_ARMED);
	ASSERT_EQ(entry.reason, 0);
	ASSERT_EQ(entry.quorum, 1);
	ASSERT_EQ(entry.watches, 0);
	ASSERT_EQ(entry.flags, TWHEEL_ABS);
	ASSERT_EQ(entry.reserved, 0);
}

/* Of an ARMED and a READY event that these flags were given to. */
static void check_listed_flags(int fd, __u16 flags, __u32 listed)
{
	__u64 now_ns = flags & TWHEEL_ABS ? clock_ns(CLOCK_REALTIME) : 0;

	ASSERT_EQ(list_one(fd, add(fd, flags, now_ns + FAR_NS, 0)).flags, listed);
	ASSERT_EQ(list_one(fd, add(fd, flags, now_ns, 0)).flags, listed);
}

TEST(list_tells_the_flags_to_add_an_event_again_with)
{
	_Atomic __u64 *words;
	int monotonic = device_open_nonblock();
	int realtime = device_open_clock(CLOCK_REALTIME);
	int deadlines = open_deadlines(2, &words);

	check_listed_flags(monotonic, 0, TWHEEL_ABS);
	check_listed_flags(realtime, 0, 0);
	check_listed_flags(realtime, TWHEEL_ABS, TWHEEL_ABS);
	check_listed_flags(realtime, TWHEEL_ABS | TWHEEL_CANCEL_ON_SET,
			   TWHEEL_ABS | TWHEEL_CANCEL_ON_SET);
	words[0] = NEVER_NS;
	ASSERT_EQ(list_one(deadlines, add_by(deadlines, make_deadline_add(0, 0))).flags,
		  TWHEEL_DEADLINE);
	ASSERT_EQ(list_one(deadlines, add_by(deadlines, make_deadline_add(1, 0))).flags,
		  TWHEEL_DEADLINE);
}

TEST(list_tells_the_flags_of_an_event_that_was_modified)
{
	int fd = device_open_clock(CLOCK_REALTIME);
	__u64 id = add(fd, 0, FAR_NS, 0);
	__u64 due_ns = clock_ns(CLOCK_REALTIME) + FAR_NS;

	ASSERT_EQ(modify(fd, id, TWHEEL_ABS | TWHEEL_CANCEL_ON_SET, due_ns), 0);
	ASSERT_EQ(list_one(fd, id).flags, TWHEEL_ABS | TWHEEL_CANCEL_ON_SET);
	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, due_ns), 0);
	ASSERT_EQ(list_one(fd, id).flags, TWHEEL_ABS);
}

TEST(list_tells_of_a_ready_event_that_it_expired)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, TWHEEL_ABS, 5, 0x1234);
	struct twheel_entry entry = list_one(fd, id);

	ASSERT_EQ(entry.data, 0x1234);
	ASSERT_EQ(entry.due_ns, 5);
	ASSERT_EQ(entry.interval_ns, 0);
	ASSERT_EQ(entry.slack_ns, 0);
	ASSERT_EQ(entry.state, TWHEEL_READY);
	ASSERT_EQ(entry.reason, TWHEEL_EXPIRED);
	ASSERT_EQ(wait_record(fd).id, id);
}

TEST(list_tells_the_absolute_time_of_a_relative_one)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 0);

	ASSERT_EQ(list_one(fd, id).due_ns, query_time(fd, id));
}

TEST(list_tells_what_query_tells_after_a_modify)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, 0, 1);
	struct twheel_cmd cmd = make_modify(id, TWHEEL_ABS | TWHEEL_SET_DATA,
					    2 * FAR_NS);
	struct twheel_entry entry;

	cmd.data = 2;
	cmd.interval_ns = 3 * NSEC_PER_SEC;
	cmd.slack_ns = 4;
	ASSERT_EQ(run(fd, &cmd), 0);
	entry = list_one(fd, id);
	ASSERT_EQ(entry.data, 2);
	ASSERT_EQ(entry.due_ns, 2 * FAR_NS);
	ASSERT_EQ(entry.interval_ns, 3 * NSEC_PER_SEC);
	ASSERT_EQ(entry.slack_ns, 4);
	ASSERT_EQ(entry.deadline, 0);
	ASSERT_EQ(entry.state, TWHEEL_ARMED);
}

TEST(list_changes_nothing)
{
	int fd = device_open_nonblock();
	struct counters before;

	add_many(fd, 0, FAR_NS, 100, NULL);
	add_many(fd, 0, 0, 100, NULL);
	wait_ready(fd, 100);
	before = get_counters(fd);
	check_each_listed_once(fd, 10, 0);
	check_counters(fd, &before);
}

/* --- pages ------------------------------------------------------------------ */

TEST(list_tells_each_event_once_in_pages_of_any_size)
{
	static const size_t pages[] = {
		1, 2, 3, 7, 31, 32, 33, 62, 63, 64, 65, 126, 1000, 5000,
	};
	const size_t nr = 1000;
	int fd = device_open_nonblock();
	size_t i;

	add_many(fd, 0, FAR_NS, nr, NULL);
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		check_each_listed_once(fd, pages[i], nr);
}

TEST(list_fills_each_page_but_the_last)
{
	struct twheel_entry entries[300];
	struct twheel_list list = make_list(entries, ARRAY_SIZE(entries));
	int fd = device_open_nonblock();

	add_many(fd, 0, FAR_NS, 700, NULL);
	ASSERT_EQ(list_by(fd, &list), 300);
	ASSERT_EQ(list_by(fd, &list), 300);
	ASSERT_EQ(list_by(fd, &list), 100);
	ASSERT_EQ(list_by(fd, &list), 0);
}

TEST(list_tells_armed_and_ready_events_with_gaps_between)
{
	int fd = device_open_nonblock();
	const size_t nr = 3000;
	unsigned int *seen = calloc(nr, sizeof(*seen));
	__u64 *ids = calloc(nr, sizeof(*ids));
	size_t i;

	for (i = 0; i < nr; i++)
		ids[i] = add(fd, 0, i % 2 ? FAR_NS : 0, i);
	for (i = 0; i < nr; i++) {
		if (i % 7 == 3 || (i > 1000 && i < 2000))
			ASSERT_EQ(cancel(fd, ids[i]), 0);
	}
	count_listed(fd, 50, seen, nr);
	for (i = 0; i < nr; i++) {
		test_about("event %zu", i);
		ASSERT_EQ(seen[i], query(fd, ids[i], NULL) > 0);
	}
}

TEST(list_with_room_for_none_writes_none)
{
	struct twheel_list list = make_list(NULL, 0);
	int fd = device_open_nonblock();

	add(fd, 0, FAR_NS, 0);
	ASSERT_EQ(list_by(fd, &list), 0);
	check_each_listed_once(fd, 1, 1);
}

/* --- memory and cursors ----------------------------------------------------- */

TEST(list_writes_larger_entries_with_tails_of_zeros)
{
	static const __u32 sizes[] = { 73, 80, 100, 128, 1000, PAGE_BYTES };
	struct twheel_entry entry;
	int fd = device_open_nonblock();
	size_t i, k;
	__u64 seen;

	add_many(fd, 0, FAR_NS, 10, NULL);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		char *array = map_before_hole(10 * sizes[i]);
		struct twheel_list list = make_list((void *)array, 10);

		test_about("entries of %u bytes", sizes[i]);
		memset(array, FILL, 10 * sizes[i]);
		list.entry_size = sizes[i];
		ASSERT_EQ(list_by(fd, &list), 10);
		for (seen = 0, k = 0; k < 10; k++) {
			memcpy(&entry, array + k * sizes[i], sizeof(entry));
			ASSERT_EQ(query(fd, entry.id, NULL), TWHEEL_ARMED);
			ASSERT_EQ(entry.flags, TWHEEL_ABS);
			seen |= 1 << entry.data;
			check_bytes(array + k * sizes[i] + sizeof(entry), 0,
				    sizes[i] - sizeof(entry));
		}
		ASSERT_EQ(seen, (1 << 10) - 1);
	}
}

/* As programs have them that were compiled when an entry ended there. */
TEST(list_writes_entries_that_end_before_the_flags)
{
	static const __u32 sizes[] = { 64, 65, 68, 71 };
	enum { NR = 100 };
	struct twheel_entry entries[NR];
	struct twheel_list list = make_list(entries, NR);
	int fd = device_open_nonblock();
	size_t i, k;

	add_many(fd, 0, FAR_NS, NR, NULL);
	ASSERT_EQ(list_by(fd, &list), NR);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		char *array = map_before_hole(NR * sizes[i]);

		test_about("entries of %u bytes", sizes[i]);
		list = make_list((void *)array, NR);
		list.entry_size = sizes[i];
		ASSERT_EQ(list_by(fd, &list), NR);
		for (k = 0; k < NR; k++)
			ASSERT_EQ(memcmp(array + k * sizes[i], &entries[k], sizes[i]), 0);
	}
}

TEST(list_goes_on_where_an_unmapped_page_stopped_it)
{
	static const size_t counts[] = { 1, 2, 31, 32, 33, 63, 64, 65 };
	const size_t nr = 200;
	struct twheel_entry rest[nr];
	size_t i;
	long k;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		struct twheel_entry *entries =
			map_before_hole(counts[i] * sizeof(*entries) + 32);
		struct twheel_list list = make_list(entries, nr);
		unsigned char seen[nr];
		int fd = device_open_nonblock();

		test_about("%zu entries before the page", counts[i]);
		memset(seen, 0, sizeof(seen));
		add_many(fd, 0, FAR_NS, nr, NULL);
		ASSERT_EQ(list_by(fd, &list), counts[i]);
		for (k = 0; k < (long)counts[i]; k++)
			seen[entries[k].data]++;
		list.entries = (uintptr_t)rest;
		ASSERT_EQ(list_by(fd, &list), nr - counts[i]);
		for (k = 0; k < (long)(nr - counts[i]); k++)
			seen[rest[k].data]++;
		check_bytes(seen, 1, nr);
	}
}

TEST(list_with_any_cursor_is_harmless)
{
	struct twheel_entry entries[20];
	int fd = device_open_nonblock();
	__u64 seed = 8, ids[150];
	size_t i;
	long k;

	add_many(fd, 0, FAR_NS, ARRAY_SIZE(ids), ids);
	for (i = 0; i < 20000; i++) {
		struct twheel_list list = make_list(entries,
						    ARRAY_SIZE(entries));
		long ret;

		list.cursor = next_random(&seed);
		if (i % 4 == 1)
			list.cursor >>= list.cursor % 64;
		else if (i % 4 == 2)
			list.cursor = -(list.cursor >> list.cursor % 64);
		else if (i % 4 == 3)
			list.cursor = ids[i % ARRAY_SIZE(ids)] ^
				      (1ULL << i / 4 % 64);
		test_about("cursor %#llx", list.cursor);
		ret = list_by(fd, &list);
		if (ret < 0)
			ASSERT_EQ(ret, -EINVAL);
		for (k = 0; k < ret; k++)
			ASSERT_EQ(query(fd, entries[k].id, NULL),
				  TWHEEL_ARMED);
	}
	check_each_listed_once(fd, 20, ARRAY_SIZE(ids));
}

TEST(list_does_not_tell_of_other_contexts)
{
	int fd = device_open_nonblock(), other = device_open_nonblock();
	struct twheel_entry entries[10];
	struct twheel_list list = make_list(entries, ARRAY_SIZE(entries));

	add_many(fd, 0, FAR_NS, 100, NULL);
	ASSERT_EQ(list_by(other, &list), 0);
	add(other, 0, FAR_NS, 42);
	list.cursor = 0;
	ASSERT_EQ(list_by(other, &list), 1);
	ASSERT_EQ(entries[0].data, 42);
}

/* --- events that change meanwhile ------------------------------------------- */

/*
 * A thread that adds, cancels and reads events which are not among the lasting
 * ones: those have the data 0, 1, ...; these have PASSING.
 */
#define PASSING	(1ULL << 32)

struct churn {
	int fd;
	atomic_bool stop;
};

static void *churn_events(void *arg)
{
	const size_t most = 2000;
	struct twheel_cmd *cmds = map_pages(most * sizeof(*cmds));
	struct twheel_record records[64];
	struct churn *churn = arg;
	__u64 seed = 9;

	/* Up to many pages of them, some of which expire before they go. */
	while (!churn->stop) {
		size_t nr = next_random(&seed) % most, i;

		for (i = 0; i < nr; i++)
			cmds[i] = make_add(0, i % 3 ? FAR_NS : i * 1000,
					   PASSING);
		ASSERT_EQ(submit(churn->fd, cmds, nr), nr);
		read_records(churn->fd, records, ARRAY_SIZE(records));
		for (i = 0; i < nr; i++)
			cmds[i] = make_cmd(TWHEEL_OP_CANCEL, cmds[i].id);
		ASSERT_EQ(submit(churn->fd, cmds, nr), nr);
	}
	return NULL;
}

static int compare_ids(const void *left, const void *right)
{
	const struct twheel_entry *a = left, *b = right;

	return (a->id > b->id) - (a->id < b->id);
}

/* One pass: each lasting event once, no event twice. */
static void check_pass(int fd, struct twheel_entry *all, size_t room,
		       size_t page, size_t lasting)
{
	struct twheel_list list = make_list(all, page);
	unsigned char seen[1000] = { 0 };
	size_t nr = 0, i;
	long ret;

	while ((ret = list_by(fd, &list)) > 0) {
		nr += ret;
		ASSERT_LE(nr + page, room);
		list.entries = (uintptr_t)(all + nr);
	}
	ASSERT_EQ(ret, 0);
	qsort(all, nr, sizeof(*all), compare_ids);
	for (i = 0; i < nr; i++) {
		if (i)
			ASSERT_NE(all[i].id, all[i - 1].id);
		if (all[i].data == PASSING)
			continue;
		ASSERT_LT(all[i].data, lasting);
		seen[all[i].data]++;
	}
	for (i = 0; i < lasting; i++) {
		test_about("pages of %zu, lasting event %zu", page, i);
		ASSERT_EQ(seen[i], 1);
	}
}

TEST(list_tells_each_lasting_event_once_while_others_come_and_go)
{
	static const size_t pages[] = { 1, 5, 63, 64, 100, 1000 };
	const size_t passes = test_count(200), room = 1000000;
	struct twheel_entry *all = map_pages(room * sizeof(*all));
	struct churn churn = { .fd = device_open_nonblock() };
	size_t lasting, i;
	pthread_t thread;

	/* The lasting ones lie between others that go. */
	for (lasting = 0; lasting < 1000; lasting++) {
		add(churn.fd, 0, lasting % 5 ? FAR_NS : 2 * FAR_NS, lasting);
		if (lasting % 3 == 0)
			add(churn.fd, 0, lasting * 1000, PASSING);
	}
	thread = start_thread(churn_events, &churn);
	for (i = 0; i < passes; i++)
		check_pass(churn.fd, all, room, pages[i % ARRAY_SIZE(pages)],
			   lasting);
	churn.stop = true;
	join_thread(thread);
}

TEST(list_tells_an_event_once_that_is_modified_while_it_is_listed)
{
	struct twheel_entry entries[200];
	struct twheel_list list = make_list(entries, 1);
	int fd = device_open_nonblock();
	unsigned char seen[200] = { 0 };
	__u64 ids[200];
	size_t i = 0;

	/* Between two pages every event changes, and some get ready. */
	add_many(fd, 0, FAR_NS, ARRAY_SIZE(ids), ids);
	while (list_by(fd, &list) == 1) {
		seen[entries[0].data]++;
		ASSERT_EQ(modify(fd, ids[i], 0, i % 2 ? 0 : 2 * FAR_NS), 0);
		ASSERT_EQ(modify(fd, ids[(i + 100) % 200], 0, FAR_NS), 0);
		ASSERT_LT(i, 200);
		i++;
	}
	check_bytes(seen, 1, sizeof(seen));
}

TEST(list_tells_a_periodic_event_once_that_is_read_while_it_is_listed)
{
	struct twheel_record records[64];
	struct twheel_entry entry;
	struct twheel_list list = make_list(&entry, 1);
	int fd = device_open_nonblock();
	unsigned char seen[100] = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(seen); i++)
		add_by(fd, make_periodic(0, 0, NSEC_PER_MSEC + i * 12345, i));
	while (list_by(fd, &list) == 1) {
		seen[entry.data]++;
		ASSERT(entry.state == TWHEEL_ARMED ||
		       entry.state == TWHEEL_READY);
		ASSERT_EQ(entry.interval_ns, NSEC_PER_MSEC +
			  entry.data * 12345);
		read_records(fd, records, 1 + entry.data % 64);
	}
	check_bytes(seen, 1, sizeof(seen));
}
