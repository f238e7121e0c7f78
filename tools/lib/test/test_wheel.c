// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Opening and closing, and what a wheel says of itself.
 */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "wheel.h"

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	ASSERT(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

TEST(open_gives_a_wheel_on_the_monotonic_clock)
{
	struct twheel *wheel = open_wheel();

	ASSERT_EQ(counters_of(wheel).clockid, CLOCK_MONOTONIC);
	ASSERT(fcntl(twheel_fd(wheel), F_GETFD) & FD_CLOEXEC);
	check_nothing_ready(twheel_fd(wheel));
	ASSERT(!twheel_deadlines(wheel));
	twheel_close(wheel);
}

TEST(open_sets_a_wheel_up_as_asked_for)
{
	struct twheel_config config, before;
	struct twheel *wheel;

	twheel_config_init(&config);
	config.clockid = CLOCK_BOOTTIME;
	config.max_events = 7;
	config.nr_deadlines = 5;
	config.size = 1;
	before = config;
	ASSERT_EQ(twheel_open(&wheel, &config), 0);
	ASSERT(!memcmp(&config, &before, sizeof(config)));
	ASSERT_EQ(counters_of(wheel).clockid, CLOCK_BOOTTIME);
	ASSERT_EQ(counters_of(wheel).max_events, 7);
	ASSERT_EQ(fdinfo_number(twheel_fd(wheel), "deadlines"), 5);
	ASSERT(twheel_deadlines(wheel));
	twheel_close(wheel);
}

TEST(config_init_is_what_open_does_without_a_config)
{
	struct twheel_config config, defaults = default_config();

	memset(&config, FILL, sizeof(config));
	twheel_config_init(&config);
	ASSERT(!memcmp(&config, &defaults, sizeof(config)));
}

TEST(open_says_what_is_wrong_and_leaves_nothing_behind)
{
	struct twheel_config config;
	int files = open_files();
	struct twheel *wheel;

	twheel_config_init(&config);
	wheel = (struct twheel *)&config;
	ASSERT_EQ(twheel_open_path(&wheel, "/dev/no-such-wheel", NULL), -ENOENT);
	ASSERT(!wheel);
	ASSERT_EQ(twheel_open_path(&wheel, "/dev/null", NULL), -EPROTO);
	ASSERT_EQ(twheel_open_path(&wheel, "/dev/null", &config), -EPROTO);
	/* It answers -EINVAL to an ioctl that it does not know. */
	ASSERT_EQ(twheel_open_path(&wheel, "/dev/urandom", NULL), -EPROTO);
	config.wake_count = 2;
	ASSERT_EQ(twheel_open(&wheel, &config), -EINVAL);
	ASSERT(!wheel);
	config.wake_count = 0;
	config.max_events = ~0ULL;
	ASSERT_EQ(twheel_open(&wheel, &config), -ENOSPC);
	config.max_events = 1;
	config.nr_deadlines = 2;
	ASSERT_EQ(twheel_open(&wheel, &config), -EINVAL);
	ASSERT_EQ(open_files(), files);
	twheel_close(NULL);
}

TEST(open_says_what_a_user_may_not)
{
	struct twheel *wheel;

	if (setuid(65534))
		test_skip("setuid: %s", strerror(errno));
	ASSERT_EQ(twheel_open_path(&wheel, "/dev/twheel", NULL), -EACCES);
}

TEST(open_goes_on_after_signals)
{
	struct twheel_config config;
	struct twheel *wheel;

	twheel_config_init(&config);
	config.max_events = 7;
	interrupt_next(2);
	ASSERT_EQ(twheel_open(&wheel, &config), 0);
	ASSERT_EQ(nr_interrupted(), 2);
	ASSERT_EQ(twheel_info(wheel)->max_events, 7);
	twheel_close(wheel);
}

TEST(close_ends_the_file_and_its_events)
{
	struct twheel *wheel = open_words(1000);
	int files = open_files(), fd = twheel_fd(wheel);

	ASSERT_EQ(twheel_add(wheel, FAR_NS, 1, 0, NULL), 0);
	twheel_close(wheel);
	ASSERT_EQ(open_files(), files - 1);
	ASSERT_EQ(fcntl(fd, F_GETFD), -1);
}

TEST(info_is_that_of_the_device)
{
	struct twheel *wheel = open_limited(12);
	struct twheel_info info = get_info(twheel_fd(wheel));

	ASSERT(!memcmp(twheel_info(wheel), &info, sizeof(info)));
	ASSERT_EQ(twheel_info(wheel)->max_events, 12);
	twheel_close(wheel);
}

TEST(has_asks_for_all_of_the_features)
{
	struct twheel *wheel = open_wheel();
	__u64 features = twheel_info(wheel)->features;

	ASSERT(twheel_has(wheel, 0));
	ASSERT(twheel_has(wheel, TWHEEL_FEATURE_ENTER | TWHEEL_FEATURE_LIST));
	ASSERT(twheel_has(wheel, features));
	ASSERT(!twheel_has(wheel, features | 1ULL << 63));
	ASSERT(!twheel_has(wheel, 1ULL << 63));
	twheel_close(wheel);
}

TEST(now_is_what_the_clock_of_the_wheel_says)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };
	struct twheel_config config;
	struct twheel *wheel;
	size_t i;

	twheel_config_init(&config);
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		__u64 before_ns, now_ns;

		config.clockid = clocks[i];
		ASSERT_EQ(twheel_open(&wheel, &config), 0);
		before_ns = clock_ns(clocks[i]);
		now_ns = twheel_now_ns(wheel);
		ASSERT_GE(now_ns, before_ns);
		ASSERT_GE(clock_ns(clocks[i]), now_ns);
		twheel_close(wheel);
	}
	wheel = open_wheel();
	ASSERT_LE(twheel_now_ns(wheel), monotonic_ns());
	twheel_close(wheel);
}
