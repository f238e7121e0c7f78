// SPDX-License-Identifier: GPL-2.0
/*
 * The words of deadlines in shared memory: how CONFIG makes them, who may map them
 * how, and that they live as long as the file or a mapping.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

#define WORDS_PER_PAGE	(PAGE_BYTES / sizeof(__u64))

static long configure_words(int fd, __u64 max_events, __u32 nr)
{
	struct twheel_config config = deadlines_config(CLOCK_MONOTONIC, nr);

	config.max_events = max_events;
	return device_ioctl(fd, TWHEEL_IOC_CONFIG, &config);
}

/* mmap() that must fail: its errno. */
static int mmap_error(int fd, size_t size, int protection, int flags, off_t offset)
{
	ASSERT(mmap(NULL, size, protection, flags, fd, offset) == MAP_FAILED);
	return errno;
}

/* Check that a context has @nr words, which can be mapped, and no page more. */
static void check_has_words(int fd, size_t nr)
{
	size_t pages = (nr + WORDS_PER_PAGE - 1) / WORDS_PER_PAGE;

	ASSERT_EQ(fdinfo_number(fd, "deadlines"), nr);
	ASSERT_EQ(mmap_error(fd, (pages + 1) * PAGE_BYTES, PROT_READ, MAP_SHARED, 0),
		  EINVAL);
	ASSERT_EQ(munmap((void *)map_deadlines(fd, nr), pages * PAGE_BYTES), 0);
}

static void check_has_no_words(int fd)
{
	struct twheel_cmd cmd = make_deadline_add(0, 0);

	ASSERT_EQ(fdinfo_number(fd, "deadlines"), -1);
	ASSERT_EQ(fdinfo_number(fd, "postponed"), -1);
	ASSERT_EQ(mmap_error(fd, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, 0),
		  ENODEV);
	check_refused(fd, &cmd, EINVAL);
}

/* --- CONFIG ----------------------------------------------------------------- */

TEST(deadline_config_of_more_words_than_events_is_refused)
{
	int fd = device_open_nonblock();
	__u64 max_events = get_info(fd).max_events;

	ASSERT_EQ(configure_words(fd, 0, max_events + 1), -EINVAL);
	ASSERT_EQ(configure_words(fd, 0, ~0U), -EINVAL);
	ASSERT_EQ(configure_words(fd, 7, 8), -EINVAL);
	ASSERT_EQ(get_info(fd).max_events, max_events);
	check_has_no_words(fd);

	ASSERT_EQ(configure_words(fd, 7, 3), 0);
	ASSERT_EQ(configure_words(fd, 7, 8), -EINVAL);
	ASSERT_EQ(configure_words(fd, 1, 2), -EINVAL);
	ASSERT_EQ(get_info(fd).max_events, 7);
	check_has_words(fd, 3);
}

TEST(deadline_config_takes_as_many_words_as_events)
{
	int fd = device_open_nonblock(), other = device_open_nonblock();
	__u64 max_events = get_info(fd).max_events;

	ASSERT_EQ(configure_words(fd, 7, 7), 0);
	check_has_words(fd, 7);
	ASSERT_EQ(configure_words(other, 0, max_events), 0);
	check_has_words(other, max_events);
}

TEST(deadline_config_replaces_the_words_of_the_one_before)
{
	int fd = device_open_nonblock();

	ASSERT_EQ(configure_words(fd, 0, 3), 0);
	ASSERT_EQ(configure_words(fd, 0, 5 * WORDS_PER_PAGE), 0);
	ASSERT_EQ(fdinfo_number(fd, "deadlines"), 5 * WORDS_PER_PAGE);
	ASSERT_EQ(configure_words(fd, 0, 2 * WORDS_PER_PAGE + 1), 0);
	check_has_words(fd, 2 * WORDS_PER_PAGE + 1);
}

TEST(deadline_config_of_none_takes_the_words_away)
{
	int fd = device_open_nonblock();

	ASSERT_EQ(configure_words(fd, 0, 1000), 0);
	ASSERT_EQ(configure_words(fd, 0, 0), 0);
	check_has_no_words(fd);
	ASSERT_EQ(configure_words(fd, 0, 1), 0);
	check_has_words(fd, 1);
}

TEST(deadline_config_by_a_struct_that_ends_before_the_number_means_none)
{
	struct twheel_config config = deadlines_config(CLOCK_MONOTONIC, 3);
	int fd = device_open_nonblock();

	ASSERT_EQ(configure_words(fd, 0, 1000), 0);
	config.size = offsetof(struct twheel_config, nr_deadlines);
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config), 0);
	check_has_no_words(fd);
}

static void check_config_is_busy(int fd, __u32 nr)
{
	ASSERT_EQ(configure_words(fd, 0, nr), -EBUSY);
	ASSERT_EQ(configure_words(fd, 0, nr + 1), -EBUSY);
	ASSERT_EQ(configure_words(fd, 0, 0), -EBUSY);
	ASSERT_EQ(fdinfo_number(fd, "deadlines"), nr);
}

TEST(deadline_config_after_mmap_is_refused_also_after_munmap)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(10, &words);

	words[9] = 1234;
	check_config_is_busy(fd, 10);
	ASSERT_EQ(words[9], 1234);
	ASSERT_EQ(munmap((void *)words, PAGE_BYTES), 0);
	check_config_is_busy(fd, 10);
	ASSERT_EQ(map_deadlines(fd, 10)[9], 1234);
}

TEST(deadline_config_after_an_mmap_that_was_refused_is_taken)
{
	int fd = device_open_nonblock();

	ASSERT_EQ(configure_words(fd, 0, 10), 0);
	ASSERT_EQ(mmap_error(fd, 2 * PAGE_BYTES, PROT_READ, MAP_SHARED, 0), EINVAL);
	ASSERT_EQ(mmap_error(fd, PAGE_BYTES, PROT_READ, MAP_PRIVATE, 0), EINVAL);
	ASSERT_EQ(configure_words(fd, 0, 1000), 0);
	check_has_words(fd, 1000);
}

TEST(deadline_config_after_an_add_is_refused_and_the_words_can_be_mapped)
{
	int fd = device_open_nonblock();
	_Atomic __u64 *words;

	ASSERT_EQ(configure_words(fd, 0, 10), 0);
	/* A word that was never written is 0. */
	add_deadline(fd, 9, 42);
	check_config_is_busy(fd, 10);
	ASSERT_EQ(wait_record(fd).due_ns, 0);
	check_config_is_busy(fd, 10);

	words = map_deadlines(fd, 10);
	words[9] = monotonic_ns() + SOON_NS;
	add_deadline(fd, 9, 43);
	ASSERT_EQ(wait_record(fd).due_ns, words[9]);
}

TEST(deadline_config_of_any_clock_has_words)
{
	static const clockid_t clocks[] = {
		CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME,
	};
	_Atomic __u64 *words;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = open_deadlines_on(clocks[i], 1, &words);

		test_about("clock %d", clocks[i]);
		ASSERT_EQ(get_counters(fd).clockid, clocks[i]);
		ASSERT_EQ(fdinfo_number(fd, "deadlines"), 1);
	}
}

/* --- mmap ------------------------------------------------------------------- */

static int open_two_pages(void)
{
	int fd = device_open_nonblock();

	ASSERT_EQ(configure_words(fd, 0, 2 * WORDS_PER_PAGE), 0);
	return fd;
}

TEST(deadline_mmap_before_config_is_refused)
{
	int fd = device_open_nonblock();

	check_has_no_words(fd);
	ASSERT_EQ(mmap_error(fd, PAGE_BYTES, PROT_READ, MAP_PRIVATE, 0), ENODEV);
	ASSERT_EQ(configure_words(fd, 0, 1), 0);
	check_has_words(fd, 1);
}

TEST(deadline_mmap_that_is_private_is_refused)
{
	int fd = open_two_pages();

	ASSERT_EQ(mmap_error(fd, PAGE_BYTES, PROT_READ, MAP_PRIVATE, 0), EINVAL);
	ASSERT_EQ(mmap_error(fd, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0),
		  EINVAL);
	map_deadlines(fd, 1);
}

TEST(deadline_mmap_that_is_executable_is_refused)
{
	int fd = open_two_pages();

	ASSERT_EQ(mmap_error(fd, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_SHARED, 0),
		  EINVAL);
	ASSERT_EQ(mmap_error(fd, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_SHARED, 0), EINVAL);
	ASSERT_EQ(mmap_error(fd, PAGE_BYTES, PROT_EXEC, MAP_SHARED, 0), EINVAL);
	map_deadlines(fd, 1);
}

TEST(deadline_mmap_from_another_offset_is_refused)
{
	static const off_t pages[] = { 1, 2, 3, 1 << 20, 1LL << 40 };
	int fd = open_two_pages();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		test_about("page %lld", (long long)pages[i]);
		ASSERT_EQ(mmap_error(fd, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				     pages[i] * PAGE_BYTES), EINVAL);
	}
	map_deadlines(fd, 1);
}

TEST(deadline_mmap_of_more_than_the_words_is_refused)
{
	int fd = open_two_pages();

	ASSERT_EQ(mmap_error(fd, 2 * PAGE_BYTES + 1, PROT_READ | PROT_WRITE, MAP_SHARED,
			     0), EINVAL);
	ASSERT_EQ(mmap_error(fd, 1000 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			     0), EINVAL);
	map_deadlines(fd, 2 * WORDS_PER_PAGE);
}

TEST(deadline_mmap_allows_what_the_file_is_open_for)
{
	struct twheel_config config = deadlines_config(CLOCK_MONOTONIC, 1);
	int reading = device_open_configured(O_RDONLY, &config);
	int writing = device_open_configured(O_WRONLY, &config);
	const __u64 *words = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, reading, 0);

	ASSERT(words != MAP_FAILED);
	ASSERT_EQ(words[0], 0);
	ASSERT_EQ(mprotect((void *)words, PAGE_BYTES, PROT_READ | PROT_WRITE), -1);
	ASSERT_EQ(errno, EACCES);
	ASSERT_EQ(mmap_error(reading, PAGE_BYTES, PROT_READ, MAP_PRIVATE, 0), EINVAL);
	ASSERT_EQ(mmap_error(reading, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, 0),
		  EACCES);
	ASSERT_EQ(mmap_error(writing, PAGE_BYTES, PROT_WRITE, MAP_SHARED, 0), EACCES);
}

TEST(deadline_mmap_of_fewer_pages_maps_the_first_words)
{
	int fd = open_two_pages();
	_Atomic __u64 *first = map_deadlines(fd, 1);
	_Atomic __u64 *all = map_deadlines(fd, 2 * WORDS_PER_PAGE);

	first[WORDS_PER_PAGE - 1] = 5;
	ASSERT_EQ(all[WORDS_PER_PAGE - 1], 5);
	ASSERT_EQ(all[WORDS_PER_PAGE], 0);
}

TEST(deadline_words_begin_at_zero)
{
	const size_t nr = 20 * WORDS_PER_PAGE + 1;
	_Atomic __u64 *words;

	open_deadlines(nr, &words);
	check_bytes((void *)words, 0, 21 * PAGE_BYTES);
}

TEST(deadline_words_of_another_context_are_others)
{
	_Atomic __u64 *words, *other;
	int fd = open_deadlines(1, &words), other_fd = open_deadlines(1, &other);

	words[0] = 7;
	other[0] = FAR_NS;
	ASSERT_EQ(words[0], 7);
	add_deadline(other_fd, 0, 1);
	add_deadline(fd, 0, 2);
	ASSERT_EQ(wait_record(fd).due_ns, 7);
	check_nothing_ready(other_fd);
}

TEST(deadline_words_cannot_become_executable)
{
	_Atomic __u64 *words;

	open_deadlines(1, &words);
	ASSERT_EQ(mprotect((void *)words, PAGE_BYTES, PROT_READ | PROT_EXEC), -1);
	ASSERT_EQ(errno, EACCES);
	words[0] = 1;
}

TEST(deadline_words_cannot_become_more)
{
	int fd = open_two_pages();
	char *all = (char *)map_deadlines(fd, 2 * WORDS_PER_PAGE);
	void *first = (void *)map_deadlines(fd, 1);

	ASSERT(mremap(first, PAGE_BYTES, 2 * PAGE_BYTES, MREMAP_MAYMOVE) == MAP_FAILED);
	ASSERT_EQ(errno, EFAULT);
	ASSERT(mremap(all, 2 * PAGE_BYTES, 3 * PAGE_BYTES, MREMAP_MAYMOVE) == MAP_FAILED);
	ASSERT_EQ(errno, EFAULT);
	ASSERT(mremap(all + PAGE_BYTES, PAGE_BYTES, 2 * PAGE_BYTES, MREMAP_MAYMOVE) ==
	       MAP_FAILED);
	ASSERT_EQ(errno, EFAULT);
	check_bytes(all, 0, 2 * PAGE_BYTES);
}

/* Check that the kernel reads what we write, to a word that said something else. */
static void check_is_read(int fd, _Atomic __u64 *words, __u64 index)
{
	words[index] += 1 + index;
	add_deadline(fd, index, index);
	ASSERT_EQ(wait_record(fd).due_ns, words[index]);
}

TEST(deadline_words_can_be_moved_and_made_fewer)
{
	int fd = open_two_pages();
	_Atomic __u64 *words = map_deadlines(fd, 2 * WORDS_PER_PAGE);
	void *place = map_pages(2 * PAGE_BYTES);

	words[0] = 10;
	words[WORDS_PER_PAGE] = 20;
	ASSERT(mremap((void *)words, 2 * PAGE_BYTES, 2 * PAGE_BYTES,
		      MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
	words = place;
	ASSERT_EQ(words[0], 10);
	ASSERT_EQ(words[WORDS_PER_PAGE], 20);
	check_is_read(fd, words, 0);
	check_is_read(fd, words, WORDS_PER_PAGE);

	ASSERT(mremap(place, 2 * PAGE_BYTES, PAGE_BYTES, 0) == place);
	check_is_read(fd, words, 0);
	/* The words are still there after they were unmapped. */
	add_deadline(fd, WORDS_PER_PAGE, 0);
	ASSERT_EQ(wait_record(fd).due_ns, 20 + 1 + WORDS_PER_PAGE);
}

TEST(deadline_words_may_be_mapped_for_reading_only)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(1, &words);
	void *map = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	_Atomic __u64 *seen = map;

	ASSERT(map != MAP_FAILED);
	words[0] = 77;
	ASSERT_EQ(seen[0], 77);
	ASSERT_EQ(mprotect(map, PAGE_BYTES, PROT_READ | PROT_WRITE), 0);
	seen[0] = 78;
	ASSERT_EQ(words[0], 78);
}

TEST(deadline_words_keep_their_values_whatever_becomes_of_a_mapping)
{
	int fd = open_two_pages();
	_Atomic __u64 *words = map_deadlines(fd, 2 * WORDS_PER_PAGE);

	words[3] = 1003;
	words[WORDS_PER_PAGE + 3] = 2003;
	ASSERT_EQ(madvise((void *)words, 2 * PAGE_BYTES, MADV_DONTNEED), 0);
	ASSERT_EQ(words[3], 1003);
	ASSERT_EQ(words[WORDS_PER_PAGE + 3], 2003);
	check_is_read(fd, words, 3);

	ASSERT_EQ(munmap((void *)words, 2 * PAGE_BYTES), 0);
	words = map_deadlines(fd, 2 * WORDS_PER_PAGE);
	ASSERT_EQ(words[3], 1003 + 1 + 3);
	ASSERT_EQ(words[WORDS_PER_PAGE + 3], 2003);
	check_is_read(fd, words, 3);
	check_is_read(fd, words, WORDS_PER_PAGE + 3);
}

TEST(deadline_words_mapped_twice_are_the_same)
{
	_Atomic __u64 *words, *again;
	int fd = open_deadlines(2, &words);

	again = map_deadlines(fd, 2);
	ASSERT(again != words);
	words[0] = 5;
	again[1] = 6;
	ASSERT_EQ(again[0], 5);
	ASSERT_EQ(words[1], 6);
	check_is_read(fd, words, 0);
	check_is_read(fd, again, 0);
}

TEST(deadline_words_are_shared_by_fork)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(2, &words);
	__u64 due_ns;
	pid_t child;

	words[1] = 5;
	child = start_child();
	if (!child) {
		ASSERT_EQ(words[1], 5);
		words[0] = monotonic_ns() + SOON_NS;
		_exit(0);
	}
	wait_child(child);
	due_ns = words[0];
	ASSERT_NE(due_ns, 0);
	add_deadline(fd, 0, 1);
	ASSERT_EQ(wait_record(fd).due_ns, due_ns);
}

/* The fault on a word must not need what a call holds that copies to or from it. */
TEST(deadline_words_may_be_what_a_call_reads_and_writes)
{
	const size_t page = WORDS_PER_PAGE;
	_Atomic __u64 *words;
	int fd = open_deadlines(4 * page, &words);
	struct twheel_cmd *cmd = (void *)(words + page);
	struct twheel_record *record = (void *)(words + 2 * page);
	struct twheel_list list = make_list((void *)(words + 3 * page), 1);

	*cmd = make_deadline_add(0, 42);
	words[0] = 5;
	ASSERT_EQ(madvise((void *)words, 4 * PAGE_BYTES, MADV_DONTNEED), 0);
	ASSERT_EQ(submit(fd, cmd, 1), 1);
	ASSERT_EQ(cmd->result, 0);
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_LIST, &list), 1);
	ASSERT_EQ(((struct twheel_entry *)(words + 3 * page))->id, cmd->id);
	ASSERT_EQ(read_records(fd, record, 1), 1);
	ASSERT_EQ(record->data, 42);
	ASSERT_EQ(record->due_ns, 5);

	/* The words where the record was written say what is in there. */
	add_deadline(fd, 2 * page + offsetof(struct twheel_record, data) / 8, 1);
	ASSERT_EQ(wait_record(fd).due_ns, 42);
}

/* --- the end ---------------------------------------------------------------- */

TEST(deadline_mapping_keeps_the_events_when_the_file_is_closed)
{
	long long armed = armed_on_machine();
	_Atomic __u64 *words;
	int fd = open_deadlines(1000, &words), i;

	for (i = 0; i < 1000; i++) {
		words[i] = monotonic_ns() + FAR_NS;
		add_deadline(fd, i, i);
	}
	ASSERT_EQ(close(fd), 0);
	ASSERT_EQ(armed_on_machine(), armed + 1000);
	words[0] = 1;
	words[999] = NEVER_NS;
	ASSERT_EQ(armed_on_machine(), armed + 1000);
	ASSERT_EQ(munmap((void *)words, 2 * PAGE_BYTES), 0);
	wait_armed_on_machine(armed);
}

TEST(deadline_mapping_of_a_part_keeps_the_events)
{
	long long armed = armed_on_machine();
	int fd = open_two_pages();
	char *words = (char *)map_deadlines(fd, 2 * WORDS_PER_PAGE);

	add(fd, 0, FAR_NS, 0);
	ASSERT_EQ(close(fd), 0);
	ASSERT_EQ(munmap(words, PAGE_BYTES), 0);
	ASSERT_EQ(armed_on_machine(), armed + 1);
	words[PAGE_BYTES] = 1;
	ASSERT_EQ(munmap(words + PAGE_BYTES, PAGE_BYTES), 0);
	wait_armed_on_machine(armed);
}

/* Events that are postponed and become ready after the file was closed. */
TEST(deadline_stores_after_the_close_are_harmless)
{
	long long armed = armed_on_machine();
	_Atomic __u64 *words;
	int fd = open_deadlines(100, &words), round, i;

	for (i = 0; i < 100; i++) {
		words[i] = monotonic_ns() + SOON_NS;
		add_deadline(fd, i, i);
	}
	ASSERT_EQ(close(fd), 0);
	for (round = 0; round < 1000; round++) {
		for (i = 0; i < 100; i++)
			words[i] = monotonic_ns() + NSEC_PER_MSEC;
	}
	wait_armed_on_machine(armed);
	for (i = 0; i < 100; i++)
		words[i] = monotonic_ns();
	ASSERT_EQ(munmap((void *)words, PAGE_BYTES), 0);
	ASSERT_EQ(armed_on_machine(), armed);
}

/* A child that has the mapping only, and stores to the word until it is killed. */
static pid_t start_holder(int fd, _Atomic __u64 *words, struct signpost *post)
{
	pid_t child = start_child();

	if (child)
		return child;
	ASSERT_EQ(close(fd), 0);
	signpost_tell(post);
	for (;;)
		words[0] = monotonic_ns() + NSEC_PER_MSEC;
}

TEST(deadline_mapping_of_a_child_keeps_the_events_until_it_ends)
{
	struct signpost post = signpost_make();
	long long armed = armed_on_machine();
	_Atomic __u64 *words;
	int fd = open_deadlines(1, &words);
	pid_t child = start_holder(fd, words, &post);

	signpost_wait(&post);
	add(fd, 0, FAR_NS, 0);
	add_deadline(fd, 0, 1);
	ASSERT_EQ(munmap((void *)words, PAGE_BYTES), 0);
	ASSERT_EQ(close(fd), 0);
	ASSERT_GE(armed_on_machine(), armed + 1);
	kill_child(child);
	wait_armed_on_machine(armed);
}

TEST(deadline_mapping_is_dropped_by_exec)
{
	long long armed = armed_on_machine();
	_Atomic __u64 *words;
	int fd = open_deadlines(1, &words);
	pid_t child;

	if (access("/bin/cat", X_OK))
		test_skip("no /bin/cat");
	add(fd, 0, FAR_NS, 0);
	child = start_child();
	if (!child) {
		ASSERT_EQ(munmap((void *)words, PAGE_BYTES), 0);
		words = map_deadlines(fd, 1);
		execl("/bin/cat", "cat", "/dev/null", NULL);
		ASSERT_EQ(errno, 0);
	}
	wait_child(child);
	ASSERT_EQ(armed_on_machine(), armed + 1);
	ASSERT_EQ(munmap((void *)words, PAGE_BYTES), 0);
	ASSERT_EQ(close(fd), 0);
	wait_armed_on_machine(armed);
}

/* As a device could that does DMA: a pipe holds the page itself. */
TEST(deadline_page_that_a_pipe_holds_outlives_the_context)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(1, &words), fds[2];
	struct iovec iovec = { (void *)words, PAGE_BYTES };
	__u64 seen[WORDS_PER_PAGE];

	ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
	words[0] = 0x1234;
	if (vmsplice(fds[1], &iovec, 1, 0) != (ssize_t)PAGE_BYTES)
		test_skip("vmsplice: %s", strerror(errno));
	add_deadline(fd, 0, 1);
	words[0] = 0x5678;
	ASSERT_EQ(munmap((void *)words, PAGE_BYTES), 0);
	ASSERT_EQ(close(fd), 0);

	/* The pages that are free now get other contents. */
	memset(map_pages(1000 * PAGE_BYTES), FILL, 1000 * PAGE_BYTES);
	ASSERT_EQ(read(fds[0], seen, PAGE_BYTES), PAGE_BYTES);
	ASSERT_EQ(seen[0], 0x5678);
	check_bytes(seen + 1, 0, PAGE_BYTES - sizeof(*seen));
}

TEST(deadline_contexts_that_are_closed_while_events_are_postponed)
{
	const unsigned int rounds = test_count(1000);
	long long armed = armed_on_machine();
	unsigned int round, i;

	for (round = 0; round < rounds; round++) {
		struct twheel_cmd cmds[100];
		_Atomic __u64 *words;
		int fd = open_deadlines(100, &words);
		__u64 tick_ns = get_info(fd).tick_ns;

		for (i = 0; i < 100; i++) {
			words[i] = monotonic_ns() + (1 + i % 10) * tick_ns;
			cmds[i] = make_deadline_add(i, i);
		}
		ASSERT_EQ(submit(fd, cmds, 100), 100);
		for (i = 0; i < 500; i++)
			words[i % 100] = monotonic_ns() + i % 7 * tick_ns;
		if (round % 2)
			ASSERT_EQ(close(fd), 0);
		ASSERT_EQ(munmap((void *)words, PAGE_BYTES), 0);
		if (round % 2 == 0)
			ASSERT_EQ(close(fd), 0);
	}
	wait_armed_on_machine(armed);
}
