// SPDX-License-Identifier: GPL-2.0
/*
 * The arguments of the ioctls: what is taken and what is refused of each.
 *
 * All ioctls follow one protocol, so one table says what there is to know of each
 * argument, and a function for each rule of the protocol tests it with any of
 * them.  At the end each rule meets each ioctl, as a test of its own.
 *
 * A new field, flag or address is a line more in the table.
 *
 * A call that is refused must do nothing, and one that differs from it only in
 * what was wrong must do something: else it was refused for another reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

/* The arming of the event that a call may find. */
#define READY_DATA	42

/* The least slack that CONFIG asks for, and how many words. */
#define SLACK_NS	777
#define DEADLINES	3

/* All the memory but the argument that a call may write to. */
struct memory {
	struct twheel_cmd cmd;
	struct twheel_record record;
	struct twheel_entry entry;
};

/* An argument as a call gets it: @size bytes and nothing accessible behind. */
struct bytes {
	size_t size;
	unsigned char at[2 * PAGE_BYTES];
};

/* The set-up of a call: a context, memory, and a valid argument. */
struct scene {
	const struct argument *argument;
	int fd;
	struct memory memory;
	struct bytes valid;
};

/* The size of what the elements of an array are of, as the caller says. */
struct stride {
	struct field field;
	__u32 least;
};

/* The address of an array, how many elements it has, and their size. */
struct array {
	struct field address;
	struct field nr;
	size_t element;
};

/**
 * struct argument - what there is to know of the argument of an ioctl
 * @name: the ioctl.
 * @cmd: its number.
 * @size: sizeof the struct.
 * @open: makes a context in which a valid call does something.
 * @fill: makes a valid argument, with its outputs filled.
 * @check_done: checks that a valid call, which returned @ret, did it all.
 * @known_flags: those that are not refused by themselves.
 * @flags: where the flags are, if there are any.
 * @zeros: fields that must be 0 in this valid argument.
 * @strides: sizes of elements.
 * @arrays: arrays without which nothing is done.
 * @outputs: fields that are written.
 * @outputs_count: they say how much was done, which a call that is refused may.
 *
 * Each array ends with an empty element.
 */
struct argument {
	const char *name;
	unsigned int cmd;
	size_t size;
	int (*open)(void);
	void (*fill)(struct memory *memory, void *argument);
	void (*check_done)(struct scene *scene, const void *argument, long ret);
	__u32 known_flags;
	struct field flags;
	struct field zeros[8];
	struct stride strides[3];
	struct array arrays[2];
	struct field outputs[5];
	bool outputs_count;
};

#define STRIDE(type, member, of) {					\
	.field = FIELD(type, member),					\
	.least = sizeof(struct of),					\
}

#define ARRAY(type, member, count, of) {				\
	.address = FIELD(type, member),					\
	.nr = FIELD(type, count),					\
	.element = sizeof(struct of),					\
}

/* --- the ioctls ------------------------------------------------------------- */

/* A context with one event that is ready. */
static int open_with_event(void)
{
	int fd = device_open_nonblock();

	add(fd, TWHEEL_ABS, 1, READY_DATA);
	wait_ready(fd, 1);
	return fd;
}

static void fill_info(struct memory *memory, void *argument)
{
	struct twheel_info *info = argument;

	(void)memory;
	memset(info, FILL, sizeof(*info));
	info->size = sizeof(*info);
}

static void check_info_done(struct scene *scene, const void *argument, long ret)
{
	const struct twheel_info *info = argument;

	ASSERT_EQ(ret, 0);
	ASSERT_EQ(info->abi, TWHEEL_ABI_VERSION);
	ASSERT_NE(info->features, FILL_U64);
	ASSERT_NE(info->tick_ns, FILL_U64);
	ASSERT_EQ(info->max_events, get_counters(scene->fd).max_events);
}

static const struct argument info_argument = {
	.name = "INFO",
	.cmd = TWHEEL_IOC_INFO,
	.size = sizeof(struct twheel_info),
	.open = open_with_event,
	.fill = fill_info,
	.check_done = check_info_done,
	.outputs = {
		FIELD(twheel_info, abi),
		FIELD(twheel_info, features),
		FIELD(twheel_info, tick_ns),
		FIELD(twheel_info, max_events),
	},
};

/* A context that is set up otherwise than by default, and than fill_config(). */
static int open_configured(void)
{
	struct twheel_config config = default_config();

	config.clockid = CLOCK_REALTIME;
	config.max_events = 7;
	return device_open_configured(O_RDWR | O_NONBLOCK, &config);
}

static void fill_config(struct memory *memory, void *argument)
{
	struct twheel_config *config = argument;

	(void)memory;
	*config = default_config();
	config->clockid = CLOCK_BOOTTIME;
	config->max_events = 5;
	config->slack_ns = SLACK_NS;
	config->wake_count = 2;
	config->nr_deadlines = DEADLINES;
	config->wake_delay_ns = FAR_NS;
}

static void check_config_done(struct scene *scene, const void *argument,
			      long ret)
{
	struct counters counters = get_counters(scene->fd);

	(void)argument;
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(counters.clockid, CLOCK_BOOTTIME);
	ASSERT_EQ(counters.max_events, 5);
	ASSERT_EQ(fdinfo_number(scene->fd, "deadlines"), DEADLINES);
	ASSERT_EQ(list_one(scene->fd, add(scene->fd, 0, 0, 1)).slack_ns,
		  SLACK_NS);
	ASSERT_EQ(poll_events(scene->fd, 0), 0);
	add(scene->fd, 0, 0, 2);
	wait_readable(scene->fd);
}

static const struct argument config_argument = {
	.name = "CONFIG",
	.cmd = TWHEEL_IOC_CONFIG,
	.size = sizeof(struct twheel_config),
	.open = open_configured,
	.fill = fill_config,
	.check_done = check_config_done,
	.flags = FIELD(twheel_config, flags),
	.known_flags = TWHEEL_CONFIG_CPU,
	.zeros = {
		FIELD(twheel_config, cpu),	/* without TWHEEL_CONFIG_CPU */
	},
};

static void fill_submit(struct memory *memory, void *argument)
{
	struct twheel_submit *submission = argument;

	*submission = (struct twheel_submit){
		.size = sizeof(*submission),
		.cmds = (uintptr_t)&memory->cmd,
		.nr = 1,
		.cmd_size = sizeof(memory->cmd),
	};
}

static void check_cmd_done(struct scene *scene)
{
	ASSERT_EQ(scene->memory.cmd.result, 0);
	ASSERT_EQ(query(scene->fd, scene->memory.cmd.id, NULL), TWHEEL_ARMED);
}

static void check_submit_done(struct scene *scene, const void *argument,
			      long ret)
{
	(void)argument;
	ASSERT_EQ(ret, 1);
	check_cmd_done(scene);
}

static const struct argument submit_argument = {
	.name = "SUBMIT",
	.cmd = TWHEEL_IOC_SUBMIT,
	.size = sizeof(struct twheel_submit),
	.open = open_with_event,
	.fill = fill_submit,
	.check_done = check_submit_done,
	.flags = FIELD(twheel_submit, flags),
	.strides = { STRIDE(twheel_submit, cmd_size, twheel_cmd) },
	.arrays = { ARRAY(twheel_submit, cmds, nr, twheel_cmd) },
};

static void fill_enter(struct memory *memory, void *argument)
{
	struct twheel_enter *turn = argument;

	*turn = make_enter(&memory->cmd, 1, &memory->record, 1);
	memset(&turn->cmds_done, FILL, sizeof(turn->cmds_done));
	memset(&turn->records_done, FILL, sizeof(turn->records_done));
}

static void check_enter_done(struct scene *scene, const void *argument,
			     long ret)
{
	const struct twheel_enter *turn = argument;

	ASSERT_EQ(ret, 0);
	ASSERT_EQ(turn->cmds_done, 1);
	ASSERT_EQ(turn->records_done, 1);
	check_cmd_done(scene);
	check_record(&scene->memory.record);
	ASSERT_EQ(scene->memory.record.data, READY_DATA);
}

static const struct argument enter_argument = {
	.name = "ENTER",
	.cmd = TWHEEL_IOC_ENTER,
	.size = sizeof(struct twheel_enter),
	.open = open_with_event,
	.fill = fill_enter,
	.check_done = check_enter_done,
	.flags = FIELD(twheel_enter, flags),
	.known_flags = TWHEEL_ENTER_ABS,
	.zeros = { FIELD(twheel_enter, reserved) },
	.strides = {
		STRIDE(twheel_enter, cmd_size, twheel_cmd),
		STRIDE(twheel_enter, record_size, twheel_record),
	},
	.arrays = { ARRAY(twheel_enter, cmds, nr_cmds, twheel_cmd) },
	.outputs = {
		FIELD(twheel_enter, cmds_done),
		FIELD(twheel_enter, records_done),
	},
	.outputs_count = true,
};

static void fill_list(struct memory *memory, void *argument)
{
	struct twheel_list *list = argument;

	*list = make_list(&memory->entry, 1);
}

static void check_list_done(struct scene *scene, const void *argument, long ret)
{
	const struct twheel_list *list = argument;

	ASSERT_EQ(ret, 1);
	ASSERT_NE(list->cursor, 0);
	ASSERT_EQ(scene->memory.entry.data, READY_DATA);
}

static const struct argument list_argument = {
	.name = "LIST",
	.cmd = TWHEEL_IOC_LIST,
	.size = sizeof(struct twheel_list),
	.open = open_with_event,
	.fill = fill_list,
	.check_done = check_list_done,
	.zeros = { FIELD(twheel_list, reserved) },
	.strides = {
		{
			.field = FIELD(twheel_list, entry_size),
			/* Entries without flags are accepted. */
			.least = offsetof(struct twheel_entry, flags),
		},
	},
	.arrays = { ARRAY(twheel_list, entries, nr, twheel_entry) },
	.outputs = { FIELD(twheel_list, cursor) },
};

/* --- calls ------------------------------------------------------------------ */

/* Say how long the struct is, and let so much of it be there. */
static void set_size(struct bytes *bytes, __u32 said, size_t there)
{
	memcpy(bytes->at, &said, sizeof(said));
	bytes->size = there;
}

/* The memory of a scene that is set again has the same address. */
static void set_scene(struct scene *scene, const struct argument *argument)
{
	memset(scene, 0, sizeof(*scene));
	scene->argument = argument;
	scene->fd = argument->open();
	memset(&scene->memory, FILL, sizeof(scene->memory));
	scene->memory.cmd = make_add(TWHEEL_ABS, NEVER_NS, 1);
	argument->fill(&scene->memory, scene->valid.at);
	set_size(&scene->valid, argument->size, argument->size);
	test_about("%s", argument->name);
}

static long call_at(struct scene *scene, void *address)
{
	return device_ioctl(scene->fd, scene->argument->cmd, address);
}

/* Call with these bytes; what the call wrote comes back. */
static long call(struct scene *scene, struct bytes *bytes)
{
	unsigned char *place = map_before_hole(bytes->size);
	long ret;

	memcpy(place, bytes->at, bytes->size);
	ret = call_at(scene, place);
	memcpy(bytes->at, place, bytes->size);
	return ret;
}

static void check_valid_is_done(struct scene *scene)
{
	long ret;

	test_about("%s, valid, size %zu", scene->argument->name,
		   scene->valid.size);
	ret = call(scene, &scene->valid);
	scene->argument->check_done(scene, scene->valid.at, ret);
}

/* The state of the context and the memory before the call, to compare with it later. */
struct snapshot {
	struct counters counters;
	long long deadlines;
	struct memory memory;
};

static struct snapshot take_snapshot(const struct scene *scene)
{
	return (struct snapshot){
		.counters = get_counters(scene->fd),
		.deadlines = fdinfo_number(scene->fd, "deadlines"),
		.memory = scene->memory,
	};
}

static void check_unchanged(const struct scene *scene,
			    const struct snapshot *before)
{
	check_counters(scene->fd, &before->counters);
	ASSERT_EQ(fdinfo_number(scene->fd, "deadlines"), before->deadlines);
	ASSERT_EQ(memcmp(&scene->memory, &before->memory,
			 sizeof(before->memory)), 0);
}

/* Let outputs that say how much was done say 0. */
static void forgive_counts(const struct argument *argument,
			   const struct bytes *seen, struct bytes *expected)
{
	const struct field *output;
	static const __u64 none;

	for (output = argument->outputs; output->name; output++) {
		if (!memcmp(seen->at + output->offset, &none, output->size))
			set_field(expected->at, output, 0);
	}
}

/* Check that a call with these bytes is refused, does nothing and writes nothing. */
static void check_refused_bytes(struct scene *scene, const struct bytes *wrong,
				int error)
{
	struct snapshot before = take_snapshot(scene);
	struct bytes expected = *wrong, seen = *wrong;

	ASSERT_EQ(call(scene, &seen), -error);
	check_unchanged(scene, &before);
	if (scene->argument->outputs_count)
		forgive_counts(scene->argument, &seen, &expected);
	ASSERT_EQ(memcmp(seen.at, expected.at, seen.size), 0);
}

/* The same of the valid argument with one field set to this. */
static void check_refused_field(struct scene *scene, const struct field *field,
				__u64 value, int error)
{
	struct bytes wrong = scene->valid;

	test_about("%s, %s %#llx", scene->argument->name, field->name, value);
	set_field(wrong.at, field, value);
	check_refused_bytes(scene, &wrong, error);
}

/* --- the size --------------------------------------------------------------- */

/* Check that the valid argument is refused if it is said to have that size. */
static void check_refused_size(struct scene *scene, __u32 size, int error)
{
	struct bytes wrong = scene->valid;

	test_about("%s, size %u", scene->argument->name, size);
	set_size(&wrong, size, sizeof(wrong.at));
	check_refused_bytes(scene, &wrong, error);
}

static void refuses_a_size_without_the_size(const struct argument *argument)
{
	struct scene scene;
	__u32 size;

	set_scene(&scene, argument);
	for (size = 0; size < sizeof(size); size++)
		check_refused_size(&scene, size, EINVAL);
	check_valid_is_done(&scene);
}

static void refuses_a_size_above_a_page(const struct argument *argument)
{
	static const __u32 sizes[] = {
		PAGE_BYTES + 1, 2 * PAGE_BYTES, 1U << 31, ~0U,
	};
	struct scene scene;
	size_t i;

	set_scene(&scene, argument);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		check_refused_size(&scene, sizes[i], E2BIG);
	check_valid_is_done(&scene);
}

/* Each of the first bytes behind the struct, and some of the others. */
static void refuses_a_tail_that_is_not_zero(const struct argument *argument)
{
	size_t near = argument->size + 32, i;
	struct scene scene;

	set_scene(&scene, argument);
	set_size(&scene.valid, PAGE_BYTES, PAGE_BYTES);
	for (i = argument->size; i < PAGE_BYTES; i += i < near ? 1 : 61) {
		struct bytes wrong = scene.valid;

		test_about("%s, byte %zu", argument->name, i);
		wrong.at[i] = 1;
		check_refused_bytes(&scene, &wrong, E2BIG);
	}
	check_valid_is_done(&scene);
}

static void takes_a_tail_of_zeros(const struct argument *argument)
{
	const size_t sizes[] = {
		argument->size + 1, argument->size + 8, PAGE_BYTES - 1,
		PAGE_BYTES,
	};
	struct scene scene;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		set_scene(&scene, argument);
		set_size(&scene.valid, sizes[i], sizes[i]);
		check_valid_is_done(&scene);
		check_bytes(scene.valid.at + argument->size, 0,
			    sizes[i] - argument->size);
		close(scene.fd);
	}
}

/* Call in a fresh context, and forget what differs from one to the next. */
static long call_afresh(struct scene *scene, struct bytes *bytes)
{
	long ret = call(scene, bytes);

	scene->memory.record.fired_ns = 0;
	return ret;
}

/*
 * As nothing is accessible behind the smaller one, nothing is read or written
 * there either.
 */
static void
takes_a_smaller_struct_as_if_zeros_followed(const struct argument *argument)
{
	struct bytes smaller, whole;
	struct snapshot after;
	struct scene scene;
	size_t size;
	long ret;

	for (size = sizeof(__u32); size < argument->size; size++) {
		set_scene(&scene, argument);
		whole = scene.valid;
		memset(whole.at + size, 0, argument->size - size);
		ret = call_afresh(&scene, &whole);
		after = take_snapshot(&scene);
		close(scene.fd);

		set_scene(&scene, argument);
		test_about("%s, size %zu", argument->name, size);
		smaller = scene.valid;
		set_size(&smaller, size, size);
		ASSERT_EQ(call_afresh(&scene, &smaller), ret);
		check_unchanged(&scene, &after);
		set_size(&whole, size, size);
		ASSERT_EQ(memcmp(smaller.at, whole.at, size), 0);
		close(scene.fd);
	}
}

/* --- the memory ------------------------------------------------------------- */

static void refuses_a_bad_pointer(const struct argument *argument)
{
	void *const pointers[] = {
		NULL, (void *)1, map_before_hole(0), (void *)-PAGE_BYTES,
		(void *)-1,
	};
	struct snapshot before;
	struct scene scene;
	size_t i;

	set_scene(&scene, argument);
	before = take_snapshot(&scene);
	for (i = 0; i < ARRAY_SIZE(pointers); i++) {
		test_about("%s, address %p", argument->name, pointers[i]);
		ASSERT_EQ(call_at(&scene, pointers[i]), -EFAULT);
		check_unchanged(&scene, &before);
	}
	check_valid_is_done(&scene);
}

static void
refuses_a_struct_that_runs_into_an_unmapped_page(const struct argument *argument)
{
	const size_t sizes[] = { argument->size, argument->size + 8 };
	struct scene scene;
	size_t i, there;

	set_scene(&scene, argument);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (there = 0; there < sizes[i]; there++) {
			struct bytes wrong = scene.valid;

			test_about("%s, %zu of %zu bytes", argument->name, there,
				   sizes[i]);
			set_size(&wrong, sizes[i], there);
			check_refused_bytes(&scene, &wrong, EFAULT);
		}
	}
	check_valid_is_done(&scene);
}

/* The valid argument with all from @split on in memory that is read-only. */
static void *map_split(const struct scene *scene, size_t split)
{
	unsigned char *place = map_before_read_only(split, PAGE_BYTES);

	memcpy(place, scene->valid.at, scene->valid.size);
	make_read_only(place + split, PAGE_BYTES);
	return place;
}

static void takes_a_read_only_struct(const struct argument *argument)
{
	struct scene scene;
	void *place;
	long ret;

	set_scene(&scene, argument);
	place = map_split(&scene, 0);
	ret = call_at(&scene, place);
	argument->check_done(&scene, place, ret);
}

static size_t end_of_outputs(const struct argument *argument)
{
	const struct field *output;
	size_t end = 0;

	for (output = argument->outputs; output->name; output++)
		end = output->offset + output->size;
	return end;
}

static void refuses_outputs_that_are_read_only(const struct argument *argument)
{
	struct snapshot before;
	struct scene scene;
	size_t split;

	set_scene(&scene, argument);
	before = take_snapshot(&scene);
	for (split = 0; split < end_of_outputs(argument); split++) {
		test_about("%s, read-only from byte %zu", argument->name, split);
		ASSERT_EQ(call_at(&scene, map_split(&scene, split)), -EFAULT);
		/* LIST finds out when it has written the entries. */
		scene.memory.entry = before.memory.entry;
		check_unchanged(&scene, &before);
	}
	check_valid_is_done(&scene);
}

/* --- the fields ------------------------------------------------------------- */

static void refuses_unknown_flags(const struct argument *argument)
{
	struct scene scene;
	unsigned int bit;

	set_scene(&scene, argument);
	for (bit = 0; bit < 32; bit++) {
		if (!(argument->known_flags >> bit & 1))
			check_refused_field(&scene, &argument->flags,
					    1U << bit, EINVAL);
	}
	check_valid_is_done(&scene);
}

static void refuses_fields_that_must_be_zero(const struct argument *argument)
{
	const struct field *field;
	struct scene scene;
	unsigned int bit;

	set_scene(&scene, argument);
	for (field = argument->zeros; field->name; field++) {
		for (bit = 0; bit < 8 * field->size; bit++)
			check_refused_field(&scene, field, 1ULL << bit, EINVAL);
	}
	check_valid_is_done(&scene);
}

static void refuses_elements_that_are_too_small(const struct argument *argument)
{
	const struct stride *stride;
	struct scene scene;
	__u32 size;

	set_scene(&scene, argument);
	for (stride = argument->strides; stride->field.name; stride++) {
		for (size = 0; size < stride->least; size++)
			check_refused_field(&scene, &stride->field, size,
					    EINVAL);
	}
	check_valid_is_done(&scene);
}

static void refuses_elements_above_a_page(const struct argument *argument)
{
	static const __u32 sizes[] = { PAGE_BYTES + 1, 1U << 31, ~0U };
	const struct stride *stride;
	struct scene scene;
	size_t i;

	set_scene(&scene, argument);
	for (stride = argument->strides; stride->field.name; stride++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++)
			check_refused_field(&scene, &stride->field, sizes[i],
					    E2BIG);
	}
	check_valid_is_done(&scene);
}

/* Addresses above what a process has, near them, and one of the kernel's. */
static const __u64 high_addresses[] = {
	~0ULL, ~63ULL, ~4095ULL, 1ULL << 63, 1ULL << 47,
	(1ULL << 47) - PAGE_BYTES, 0xffff888000000000ULL,
};

/* Check that an array is refused there, whether it is short or long. */
static void check_refused_array(struct scene *scene, const struct array *array,
				__u64 address)
{
	struct bytes valid = scene->valid;

	check_refused_field(scene, &array->address, address, EFAULT);
	set_field(scene->valid.at, &array->nr, 1000);
	check_refused_field(scene, &array->address, address, EFAULT);
	scene->valid = valid;
}

static void refuses_arrays_that_are_not_there(const struct argument *argument)
{
	const struct array *array;
	struct scene scene;
	size_t i;

	set_scene(&scene, argument);
	for (array = argument->arrays; array->address.name; array++) {
		void *half = map_before_hole(array->element - 1);
		void *hole = map_before_hole(0);

		check_refused_array(&scene, array, 0);
		check_refused_array(&scene, array, (uintptr_t)half);
		check_refused_array(&scene, array, (uintptr_t)hole);
		for (i = 0; i < ARRAY_SIZE(high_addresses); i++)
			check_refused_array(&scene, array, high_addresses[i]);
	}
	check_valid_is_done(&scene);
}

/* --- each rule with each ioctl ---------------------------------------------- */

#define TEST_ONE(ioctl, rule)						\
	TEST(ioctl##_##rule)						\
	{								\
		rule(&ioctl##_argument);				\
	}

#define TEST_ALL(rule)							\
	TEST_ONE(info, rule)						\
	TEST_ONE(config, rule)						\
	TEST_ONE(submit, rule)						\
	TEST_ONE(enter, rule)						\
	TEST_ONE(list, rule)

TEST_ALL(refuses_a_size_without_the_size)
TEST_ALL(refuses_a_size_above_a_page)
TEST_ALL(refuses_a_tail_that_is_not_zero)
TEST_ALL(takes_a_tail_of_zeros)
TEST_ALL(takes_a_smaller_struct_as_if_zeros_followed)

TEST_ALL(refuses_a_bad_pointer)
TEST_ALL(refuses_a_struct_that_runs_into_an_unmapped_page)

TEST_ONE(config, takes_a_read_only_struct)
TEST_ONE(submit, takes_a_read_only_struct)
TEST_ONE(info, refuses_outputs_that_are_read_only)
TEST_ONE(enter, refuses_outputs_that_are_read_only)
TEST_ONE(list, refuses_outputs_that_are_read_only)

TEST_ONE(config, refuses_unknown_flags)
TEST_ONE(submit, refuses_unknown_flags)
TEST_ONE(enter, refuses_unknown_flags)

TEST_ONE(config, refuses_fields_that_must_be_zero)
TEST_ONE(enter, refuses_fields_that_must_be_zero)
TEST_ONE(list, refuses_fields_that_must_be_zero)

TEST_ONE(submit, refuses_elements_that_are_too_small)
TEST_ONE(enter, refuses_elements_that_are_too_small)
TEST_ONE(list, refuses_elements_that_are_too_small)

TEST_ONE(submit, refuses_elements_above_a_page)
TEST_ONE(enter, refuses_elements_above_a_page)
TEST_ONE(list, refuses_elements_above_a_page)

TEST_ONE(submit, refuses_arrays_that_are_not_there)
TEST_ONE(enter, refuses_arrays_that_are_not_there)
TEST_ONE(list, refuses_arrays_that_are_not_there)
