// SPDX-License-Identifier: GPL-2.0
/* The ioctls by their numbers, and TWHEEL_IOC_INFO. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "device.h"
#include "util.h"

#define ALL_FEATURES							\
	(TWHEEL_FEATURE_PERIODIC | TWHEEL_FEATURE_SLACK |		\
	 TWHEEL_FEATURE_CLOCKS | TWHEEL_FEATURE_ENTER |			\
	 TWHEEL_FEATURE_WAKE | TWHEEL_FEATURE_CPU |			\
	 TWHEEL_FEATURE_LIST | TWHEEL_FEATURE_OPERATIONS |		\
	 TWHEEL_FEATURE_URING_CMD)

/* A struct of the caller's that has grown by a tail. */
struct larger_info {
	struct twheel_info info;
	unsigned char tail[32];
};

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

TEST(info_writes_no_more_than_the_callers_size)
{
	int fd = device_open_nonblock();
	struct twheel_info whole = get_info(fd);
	__u32 size;

	for (size = sizeof(whole.size); size < sizeof(whole); size++) {
		struct twheel_info info;

		test_about("size %u", size);
		memset(&info, FILL, sizeof(info));
		info.size = size;
		ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_INFO, &info), 0);
		ASSERT_EQ(info.size, size);
		ASSERT_EQ(memcmp((char *)&info + sizeof(info.size),
				 (char *)&whole + sizeof(info.size),
				 size - sizeof(info.size)), 0);
		check_bytes((char *)&info + size, FILL, sizeof(info) - size);
	}
}

TEST(info_takes_a_larger_struct_with_a_tail_of_zeros)
{
	int fd = device_open_nonblock();
	struct twheel_info whole = get_info(fd);
	struct larger_info larger = { .info.size = sizeof(larger) };

	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_INFO, &larger), 0);
	ASSERT_EQ(larger.info.abi, whole.abi);
	ASSERT_EQ(larger.info.features, whole.features);
	ASSERT_EQ(larger.info.tick_ns, whole.tick_ns);
	ASSERT_EQ(larger.info.max_events, whole.max_events);
	check_bytes(larger.tail, 0, sizeof(larger.tail));
}

TEST(info_takes_a_struct_of_a_page)
{
	struct twheel_info *info = map_before_hole(PAGE_BYTES);
	int fd = device_open_nonblock();

	info->size = PAGE_BYTES;
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_INFO, info), 0);
	ASSERT_EQ(info->abi, TWHEEL_ABI_VERSION);
}

TEST(info_refuses_a_tail_that_is_not_zero)
{
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < sizeof(((struct larger_info *)NULL)->tail); i++) {
		struct larger_info larger = { 0 }, before;

		test_about("byte %zu of the tail", i);
		memset(&larger.info, FILL, sizeof(larger.info));
		larger.info.size = sizeof(larger);
		larger.tail[i] = 1;
		before = larger;
		ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_INFO, &larger), -E2BIG);
		ASSERT_EQ(memcmp(&larger, &before, sizeof(larger)), 0);
	}
}

TEST(info_refuses_a_size_without_the_size)
{
	int fd = device_open_nonblock();
	__u32 size;

	for (size = 0; size < sizeof(__u32); size++) {
		struct twheel_info info;

		test_about("size %u", size);
		memset(&info, FILL, sizeof(info));
		info.size = size;
		ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_INFO, &info), -EINVAL);
		check_bytes(&info.abi, FILL, sizeof(info) - sizeof(info.size));
	}
}

TEST(info_refuses_a_size_above_a_page)
{
	static const __u32 sizes[] = {
		PAGE_BYTES + 1, 2 * PAGE_BYTES, 1U << 31, ~0U,
	};
	struct twheel_info *info = map_pages(3 * PAGE_BYTES);
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		test_about("size %u", sizes[i]);
		info->size = sizes[i];
		ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_INFO, info), -E2BIG);
		check_bytes(&info->abi, 0, PAGE_BYTES);
	}
}

TEST(info_fits_at_the_end_of_a_mapped_page)
{
	int fd = device_open_nonblock();
	__u32 size;

	for (size = sizeof(__u32); size <= sizeof(struct twheel_info); size++) {
		struct twheel_info *info = map_before_hole(size);

		test_about("size %u", size);
		info->size = size;
		ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_INFO, info), 0);
	}
}

TEST(info_refuses_a_struct_that_runs_into_an_unmapped_page)
{
	struct twheel_info *info = map_before_hole(sizeof(*info) - 1);

	info->size = sizeof(*info);
	ASSERT_EQ(device_ioctl(device_open_nonblock(), TWHEEL_IOC_INFO, info),
		  -EFAULT);
}

TEST(info_refuses_a_bad_pointer)
{
	int fd = device_open_nonblock();
	char *hole = map_before_hole(0);

	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_INFO, NULL), -EFAULT);
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_INFO, hole), -EFAULT);
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_INFO, (void *)-PAGE_BYTES),
		  -EFAULT);
}

TEST(info_refuses_a_read_only_struct)
{
	struct twheel_info *info = map_pages(PAGE_BYTES);

	info->size = sizeof(*info);
	make_read_only(info, PAGE_BYTES);
	ASSERT_EQ(device_ioctl(device_open_nonblock(), TWHEEL_IOC_INFO, info),
		  -EFAULT);
	ASSERT_EQ(info->abi, 0);
}
