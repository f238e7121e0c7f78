// SPDX-License-Identifier: GPL-2.0
/* The ioctls by their numbers, and TWHEEL_IOC_INFO. */
#include <errno.h>
#include <string.h>

#include "device.h"
#include "util.h"

#define ALL_FEATURES							\
	(TWHEEL_FEATURE_PERIODIC | TWHEEL_FEATURE_SLACK |		\
	 TWHEEL_FEATURE_CLOCKS | TWHEEL_FEATURE_ENTER |			\
	 TWHEEL_FEATURE_WAKE | TWHEEL_FEATURE_CPU |			\
	 TWHEEL_FEATURE_LIST | TWHEEL_FEATURE_OPERATIONS |		\
	 TWHEEL_FEATURE_URING_CMD | TWHEEL_FEATURE_DEADLINES |		\
	 TWHEEL_FEATURE_ENTRY_FLAGS)

TEST(ioctl_goes_by_the_number_alone)
{
	static const unsigned int sizes[] = { 0, 1, 4, 64, 8191 };
	int fd = device_open_nonblock();
	unsigned int dir, i;

	for (dir = 0; dir < 4; dir++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			struct twheel_info info = { .size = sizeof(info) };

			test_about("direction %u, size %u", dir, sizes[i]);
			ASSERT_EQ(device_ioctl(fd, _IOC(dir, TWHEEL_IOC_TYPE, 0,
							sizes[i]), &info), 0);
			ASSERT_EQ(info.abi, TWHEEL_ABI_VERSION);
		}
	}
}

TEST(ioctl_refuses_unknown_numbers)
{
	unsigned char page[PAGE_BYTES], before[PAGE_BYTES];
	int fd = device_open_nonblock();
	struct counters counters = get_counters(fd);
	unsigned int nr;

	memset(page, FILL, sizeof(page));
	memcpy(before, page, sizeof(page));
	for (nr = 5; nr < 256; nr++) {
		test_about("number %u", nr);
		ASSERT_EQ(device_ioctl(fd, _IOWR(TWHEEL_IOC_TYPE, nr,
						 struct twheel_info), page),
			  -ENOTTY);
	}
	ASSERT_EQ(memcmp(page, before, sizeof(page)), 0);
	check_counters(fd, &counters);
}

TEST(ioctl_refuses_other_types)
{
	int fd = device_open_nonblock();
	unsigned int type, nr;

	for (type = 0; type < 256; type++) {
		for (nr = 0; type != TWHEEL_IOC_TYPE && nr < 5; nr++) {
			struct twheel_info info = { .size = sizeof(info) };

			test_about("type %#x, number %u", type, nr);
			ASSERT_EQ(device_ioctl(fd, _IOWR(type, nr,
							 struct twheel_info),
					       &info), -ENOTTY);
			ASSERT_EQ(info.abi, 0);
		}
	}
}

TEST(info_tells_the_abi)
{
	ASSERT_EQ(get_info(device_open_nonblock()).abi, TWHEEL_ABI_VERSION);
}

TEST(info_tells_no_feature_that_the_header_does_not_name)
{
	__u64 features = get_info(device_open_nonblock()).features;

	ASSERT_EQ(features & ~ALL_FEATURES, 0);
}

TEST(info_tells_every_feature_that_all_builds_have)
{
	__u64 features = get_info(device_open_nonblock()).features;

	ASSERT_EQ(features | TWHEEL_FEATURE_URING_CMD, ALL_FEATURES);
}

TEST(info_tells_a_tick_of_a_power_of_two)
{
	__u64 tick_ns = get_info(device_open_nonblock()).tick_ns;

	ASSERT_EQ(tick_ns & (tick_ns - 1), 0);
	ASSERT_GE(tick_ns, 1 << 10);
	ASSERT_LE(tick_ns, 1 << 20);
}

TEST(info_tells_the_tick_of_the_module_parameter)
{
	long long shift = module_parameter("tick_shift");

	if (shift < 0)
		test_skip("no sysfs");
	ASSERT_EQ(get_info(device_open_nonblock()).tick_ns, 1LL << shift);
}

TEST(info_tells_a_limit_within_the_ceiling)
{
	__u64 max_events = get_info(device_open_nonblock()).max_events;
	long long ceiling = module_parameter("max_events");

	ASSERT_GT(max_events, 0);
	if (ceiling < 0)
		test_skip("no sysfs");
	ASSERT_LE(max_events, ceiling);
}

TEST(info_leaves_its_size_alone)
{
	ASSERT_EQ(get_info(device_open_nonblock()).size,
		  sizeof(struct twheel_info));
}
