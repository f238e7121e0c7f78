// SPDX-License-Identifier: GPL-2.0
/*
 * A libFuzzer target: the arguments of all ioctls. kmod/command.c and kmod/device.c run in this
 * process, on a context that only notes what it is asked for.
 *
 * The input says which ioctl it is, which user memory there is and what is in it. What the ioctl
 * returns, which commands it runs, and each byte that it writes are compared with what
 * contract.c says.
 */
#include <stdio.h>

#include "contract.h"
#include "test/device/must.h"

struct arena arena;

static struct fake_task task;
struct fake_task *current = &task;

static struct world world;
static const struct file_operations *fops;

/* --- user memory ---------------------------------------------------------------------- */

static u8 *user_bytes(const void *user, size_t size, bool write)
{
	size_t offset = (uintptr_t)user - ARENA_AT;

	if (offset >= arena.size || size > arena.size - offset)
		return NULL;
	if (write && offset < arena.hole_end && offset + size > arena.hole &&
	    arena.hole < arena.hole_end)
		return NULL;
	return arena.bytes + offset;
}

bool user_read(void *to, const void *user, size_t size)
{
	const u8 *bytes = user_bytes(user, size, false);

	if (bytes)
		memcpy(to, bytes, size);
	return bytes;
}

bool user_write(void *user, const void *from, size_t size)
{
	u8 *bytes = user_bytes(user, size, true);

	if (bytes)
		memcpy(bytes, from, size);
	return bytes;
}

/* Is that in the half of all addresses which processes have? */
bool user_is_address(const void *user, size_t size)
{
	uintptr_t end = (uintptr_t)user + size;

	return end >= (uintptr_t)user && end < 1ULL << 47;
}

int check_zeroed_user(const void *user, size_t size)
{
	const u8 *at = user;
	u8 byte;

	while (size--) {
		if (!user_read(&byte, at++, 1))
			return -EFAULT;
		if (byte)
			return 0;
	}
	return 1;
}

int copy_struct_from_user(void *to, size_t size, const void *user, size_t user_size)
{
	size_t common = user_size < size ? user_size : size;
	int zeros = 1;

	memset(to, 0, size);
	if (user_size > size)
		zeros = check_zeroed_user((const u8 *)user + size, user_size - size);
	if (zeros <= 0)
		return zeros ?: -E2BIG;
	return user_read(to, user, common) ? 0 : -EFAULT;
}

/* --- the context ---------------------------------------------------------------------- */

static u64 mix(u64 hash, u64 number)
{
	hash = (hash ^ number) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/**
 * world_run() - what a context does with a well-formed command
 * @world: where it is noted.
 * @cmd: the command.
 * @last_add: the id of the ADD before it.
 *
 * Return: its result, which depends on the command alone.
 */
int world_run(struct world *world, struct twheel_cmd *cmd, u64 last_add)
{
	static const int errors[] = { 0, 0, 0, -ENOENT, -EALREADY, -ENOSPC, -ENOMEM, 0 };
	int result = errors[(cmd->data ^ cmd->slack_ns) % 8];

	world->nr_asked++;
	world->asked = mix(mix(mix(world->asked, cmd->op | cmd->flags << 16), cmd->id), cmd->data);
	world->asked = mix(mix(mix(world->asked, cmd->time_ns), cmd->interval_ns), cmd->slack_ns);
	world->asked = mix(mix(world->asked, cmd->key), cmd->quorum);
	/* Only a WATCH without id needs to know. */
	if (cmd->op == TWHEEL_OP_WATCH && !cmd->id)
		world->asked = mix(world->asked, last_add);
	if (cmd->op == TWHEEL_OP_ADD && !result)
		cmd->id = ++world->nr_ids;
	if (cmd->op != TWHEEL_OP_QUERY)
		return result;
	cmd->time_ns = cmd->id + 1;
	cmd->interval_ns = cmd->id + 2;
	cmd->slack_ns = cmd->id + 3;
	return TWHEEL_ARMED;
}

static int ask(struct context_batch *batch, struct twheel_cmd *cmd, u16 op)
{
	MUST(cmd->op == op);
	return world_run(&world, cmd, batch->last_add);
}

int context_add(struct context_batch *batch, struct twheel_cmd *cmd)
{
	return ask(batch, cmd, TWHEEL_OP_ADD);
}

int context_cancel(struct context_batch *batch, struct twheel_cmd *cmd)
{
	return ask(batch, cmd, TWHEEL_OP_CANCEL);
}

int context_modify(struct context_batch *batch, struct twheel_cmd *cmd)
{
	return ask(batch, cmd, TWHEEL_OP_MODIFY);
}

int context_signal(struct context_batch *batch, struct twheel_cmd *cmd)
{
	return ask(batch, cmd, TWHEEL_OP_SIGNAL);
}

int context_watch(struct context_batch *batch, struct twheel_cmd *cmd)
{
	return ask(batch, cmd, TWHEEL_OP_WATCH);
}

int context_query(struct context_batch *batch, struct twheel_cmd *cmd)
{
	return ask(batch, cmd, TWHEEL_OP_QUERY);
}

int context_complete(struct context_batch *batch, struct twheel_cmd *cmd)
{
	return ask(batch, cmd, TWHEEL_OP_COMPLETE);
}

/* Memory does not change during a call, so no result that could be written once is lost. */
void context_undo_add(struct context_batch *batch, u64 id)
{
	MUST(!"an ADD is undone");
}

int twheel_context_configure(struct context *context, const struct twheel_config *config)
{
	MUST(config->clockid == CLOCK_MONOTONIC || config->clockid == CLOCK_BOOTTIME ||
	     config->clockid == CLOCK_REALTIME);
	world.nr_asked++;
	return world.configure;
}

ssize_t context_reap(struct context *context, struct iov_iter *to, size_t stride, u64 *left)
{
	u64 nr = min_t(u64, world.records, to->count / stride);

	MUST(stride >= sizeof(struct twheel_record) && stride <= PAGE_SIZE);
	world.records -= nr;
	to->count -= nr * stride;
	*left = 0;
	return nr;
}

int context_wait_for(struct context *context, u64 nr, bool at_hand, ktime_t *until)
{
	MUST(nr);
	return -ETIME;
}

ssize_t twheel_context_list(struct context *context, u64 *cursor, struct iov_iter *to,
			    size_t stride)
{
	u64 nr = min_t(u64, world.entries, to->count / stride);

	MUST(stride >= 64 && stride <= PAGE_SIZE);
	*cursor += nr;
	return nr;
}

int misc_register(struct miscdevice *device)
{
	fops = device->fops;
	return 0;
}

/* --- an input ------------------------------------------------------------------------- */

/* The beginning of an input; the rest is what is in memory. */
struct header {
	u32 request;
	u16 argument;
	u16 hole;
	u8 hole_bytes;
	u8 records;
	u8 uring;
	u8 watches;
};

/* Bits of @uring: by io_uring, by a request of 128 bytes, with something wrong in it. */
#define URING		1
#define URING_LONG	2
#define URING_WRONG	4

static unsigned int request_of(const struct header *header)
{
	/* Most are ours. */
	if (header->request & 0x80)
		return header->request;
	return _IOC(header->request >> 8 & 3, TWHEEL_IOC_TYPE, header->request % 6,
		    header->request >> 16 & 0xfff);
}

static struct world new_world(const struct header *header)
{
	return (struct world){
		.records = header->records % 5,
		.entries = header->records / 5 % 5,
		.configure = header->records / 25 % 2 ? -EBUSY : 0,
	};
}

static void compare(const struct arena *expected, const struct world *expected_world, long ret,
		    long expected_ret)
{
	if (ret != expected_ret)
		fprintf(stderr, "returned %ld, not %ld\n", ret, expected_ret);
	MUST(ret == expected_ret);
	MUST(world.nr_asked == expected_world->nr_asked);
	MUST(world.asked == expected_world->asked);
	MUST(world.nr_ids == expected_world->nr_ids);
	MUST(!memcmp(arena.bytes, expected->bytes, sizeof(arena.bytes)));
	MUST(!task.restore);
}

/*
 * As io_uring does: the first attempt must not take long. If it would, a worker makes the second
 * one. In both cases the result is the same.
 */
static long do_uring(struct file *file, struct io_uring_cmd *cmd, bool is_long)
{
	unsigned int flags = is_long ? IO_URING_F_SQE128 : 0;
	struct world before = world;
	struct arena *memory = malloc(sizeof(*memory));
	int ret;

	*memory = arena;
	ret = fops->uring_cmd(cmd, flags | IO_URING_F_NONBLOCK);
	if (ret == -EAGAIN) {
		MUST(!memcmp(memory, &arena, sizeof(arena)));
		MUST(!memcmp(&before, &world, sizeof(world)));
		ret = fops->uring_cmd(cmd, flags);
	}
	free(memory);
	return ret == -EIOCBQUEUED ? cmd->result : ret;
}

static struct io_uring_cmd new_request(const struct header *header, struct file *file,
				       u64 argument)
{
	struct io_uring_cmd cmd = { .file = file, .cmd_op = request_of(header) };

	memcpy(cmd.area, &argument, sizeof(argument));
	if (header->uring & URING_WRONG)
		cmd.area[header->uring >> 3] = 1;
	return cmd;
}

static void try(const struct header *header, struct file *file, u64 argument)
{
	static struct arena expected;
	struct world expected_world = world;
	unsigned int request = request_of(header);
	struct io_uring_cmd cmd = new_request(header, file, argument);
	bool is_long = header->uring & URING_LONG;
	long ret, expected_ret;

	expected = arena;
	if (header->uring & URING) {
		ret = do_uring(file, &cmd, is_long);
		expected_ret = contract_uring(&expected_world, &expected, request, cmd.area,
					      is_long);
	} else {
		ret = fops->unlocked_ioctl(file, request, argument);
		expected_ret = contract_ioctl(&expected_world, &expected, request, argument);
	}
	compare(&expected, &expected_world, ret, expected_ret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct context context;
	struct file file = { .private_data = &context };
	struct header header;

	if (size < sizeof(header) || size - sizeof(header) > sizeof(arena.bytes))
		return 0;
	if (!fops)
		fake_module_init();
	memcpy(&header, data, sizeof(header));
	memset(&arena, 0, sizeof(arena));
	arena.size = size - sizeof(header);
	arena.hole = header.hole;
	arena.hole_end = header.hole + header.hole_bytes % 64;
	memcpy(arena.bytes, data + sizeof(header), arena.size);
	world = new_world(&header);
	memset(&context, 0, sizeof(context));
	context.max_events = 1000;
	context.nr_watches = header.watches * 8;
	context.batch.context = &context;
	memset(&task, 0, sizeof(task));
	try(&header, &file, ARENA_AT + header.argument % 64);
	return 0;
}
