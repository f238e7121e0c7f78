// SPDX-License-Identifier: GPL-2.0
/*
 * The calls of programs: made, and their results judged.
 *
 * A process has two threads that make calls. The first one runs the program, and kcov follows
 * it. While one of its calls is under way, the second one may do something that disturbs it:
 * unmap its memory or write to it, close the file, or make the next call of the program at the
 * same time. A timer sends signals to a thread whose call may sleep, until the call returns;
 * only then may it return EINTR.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "coverage.h"
#include "files.h"
#include "plans.h"
#include "shared.h"

#define PAGE		4096UL

/* Bytes of commands that are written at most; the areas are as long. */
#define COMMANDS_BYTES	MEMORY_BYTES

/* How often a request of io_uring is cancelled until it must have ended. */
#define CANCELS_MAX	1000

/* A call that sleeps gets signals from then on. */
#define PATIENCE_NS	4000000

enum race {
	RACE_NONE,
	RACE_CALL,		/* make the next call of the program */
	RACE_UNMAP,		/* unmap a page of its memory */
	RACE_FORBID,		/* make its memory inaccessible */
	RACE_READ_ONLY,
	RACE_DROP,		/* replace its memory by zeros */
	RACE_SCRIBBLE,		/* write to its memory */
	RACE_CLOSE,		/* close the file */
	RACE_SIGNAL,
	RACE_KILL,		/* end the process */
};

static const uint8_t races[] = {
	RACE_NONE, RACE_CALL, RACE_CALL, RACE_UNMAP, RACE_FORBID, RACE_READ_ONLY, RACE_DROP,
	RACE_SCRIBBLE, RACE_CLOSE, RACE_SIGNAL, RACE_CALL, RACE_SCRIBBLE,
};

/**
 * struct actor - a thread that makes calls
 * @memory: its memory.
 * @signals: how many signals it has got.
 * @timer: sends them.
 * @alone: no other thread disturbs its calls.
 * @call: the call under way.
 * @at: where it is in the program.
 * @argument, @in, @out: addresses of the memory that the call uses.
 * @disturbed: that memory may be changed during the call.
 * @raced: the other thread has been told to disturb the call.
 * @may_sleep: the timer has been set.
 * @commands: room for commands.
 */
struct actor {
	struct memory memory;
	atomic_ulong signals;
	timer_t timer;
	bool alone;
	const struct call_plan *call;
	unsigned int at;
	uint64_t argument, in, out;
	bool disturbed;
	bool raced;
	bool may_sleep;
	uint8_t commands[COMMANDS_BYTES];
};

struct call_kind {
	const char *name;
	long (*run)(struct actor *actor, const struct call_plan *call);
	short errors[8];
};

static struct actor actors[2];
static __thread struct actor *self;
static unsigned int number;
static const struct program *current;
static sem_t race_begin, race_end;
static pthread_t first_thread;
static struct io_uring ring;
static bool has_ring, has_children, has_calls32;

static long make_call(struct actor *actor, const struct program *program, unsigned int at);
static bool takes_memory(const struct call_plan *call);

static long error_of(long ret)
{
	return ret < 0 ? -errno : ret;
}

static unsigned int slot_of(const struct call_plan *call)
{
	return call->slot % PROGRAM_SLOTS;
}

static int fd_of(const struct call_plan *call)
{
	return file_of(slot_of(call));
}

/* --- disturbing ---------------------------------------------------------------------- */

static enum race race_of(const struct call_plan *call)
{
	enum race race = call->race == 255 ? RACE_KILL : races[call->race % LENGTH(races)];

	if (shared->keeps_memory && (race == RACE_UNMAP || race == RACE_DROP))
		return RACE_NONE;
	return race;
}

static uint64_t raced_memory(const struct actor *actor)
{
	switch (actor->call->delay / 64) {
	case 0:
		return actor->argument;
	case 1:
		return actor->out;
	default:
		return actor->in;
	}
}

static void wait_a_little(uint8_t delay)
{
	unsigned int turns = 40 * (delay % 64);

	while (turns--)
		atomic_signal_fence(memory_order_seq_cst);
}

static void disturb(struct actor *actor)
{
	struct random random = { actor->call->value };
	uint64_t address = raced_memory(actor);
	unsigned int at;

	wait_a_little(actor->call->delay);
	switch (race_of(actor->call)) {
	case RACE_CALL:
		at = (actor->at + 1) % current->nr;
		if (!shared->keeps_memory ||
		    !(takes_memory(actor->call) || takes_memory(&current->calls[at])))
			make_call(&actors[1], current, at);
		break;
	case RACE_UNMAP:
		memory_unmap(&actor->memory, address);
		break;
	case RACE_FORBID:
		memory_protect(address, PROT_NONE);
		break;
	case RACE_READ_ONLY:
		memory_protect(address, PROT_READ);
		break;
	case RACE_DROP:
		memory_drop(address);
		break;
	case RACE_SCRIBBLE:
		memory_scribble(address, &random);
		break;
	case RACE_CLOSE:
		file_close(slot_of(actor->call));
		break;
	case RACE_SIGNAL:
		pthread_kill(first_thread, SIGALRM);
		break;
	case RACE_KILL:
		shared->killed[number] = true;
		kill(getpid(), SIGKILL);
		break;
	default:
		break;
	}
}

/* To be called immediately before the system call itself. */
static void go(struct actor *actor)
{
	enum race race = race_of(actor->call);

	if (actor->alone || race == RACE_NONE)
		return;
	if (race == RACE_CALL || race == RACE_CLOSE)
		files_doubt();
	actor->raced = true;
	sem_post(&race_begin);
}

static void end_race(struct actor *actor)
{
	if (!actor->raced)
		return;
	while (sem_wait(&race_end))
		;
	actor->raced = false;
}

/* --- signals ------------------------------------------------------------------------- */

static void count_signal(int signal)
{
	(void)signal;
	if (self)
		self->signals++;
}

static void make_timer(struct actor *actor)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = SIGALRM,
		._sigev_un._tid = gettid(),
	};

	self = actor;
	if (timer_create(CLOCK_MONOTONIC, &event, &actor->timer))
		err(1, "timer_create");
}

static void set_timer(struct actor *actor, long ns)
{
	struct itimerspec spec = {
		.it_value.tv_nsec = ns,
		.it_interval.tv_nsec = 5 * ns,
	};

	timer_settime(actor->timer, 0, &spec, NULL);
}

/* The call may sleep for ever: have it interrupted. */
static void sleep_not_for_ever(struct actor *actor)
{
	set_timer(actor, PATIENCE_NS);
	actor->may_sleep = true;
}

/* Another task may use the file, and sleep while it does: then this call waits for it. */
static bool may_wait_for_mutex(const struct actor *actor)
{
	return actor->alone || has_children || actor->memory.uses_missing ||
	       race_of(actor->call) != RACE_NONE;
}

/* --- arguments ----------------------------------------------------------------------- */

/*
 * Put an argument, which begins with its size, where the plan says. The size may be wrong, and
 * what is behind a longer one may be 0 or not.
 */
static void put_argument(struct actor *actor, const struct call_plan *call, void *argument,
			 size_t natural)
{
	static const size_t most = 2 * PAGE;
	uint8_t bytes[2 * PAGE];
	uint32_t size = plan_size(call->size, natural);
	size_t written = size < natural ? natural : size > most ? most : size;

	memcpy(argument, &size, sizeof(size));
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, argument, natural);
	if (written > natural && call->size & 0x80)
		bytes[natural + call->value % (written - natural)] = 1;
	actor->argument = memory_at(&actor->memory, MEMORY_ARGUMENT, call->argument, written,
				    slot_of(call));
	memory_put(&actor->memory, actor->argument, bytes, written);
}

/* Put commands where the plan says; returns how many bytes that is. */
static size_t put_commands(struct actor *actor, const struct call_plan *call, uint32_t nr,
			   uint32_t stride)
{
	const struct file_note *note = note_of(slot_of(call));
	size_t room = stride ? sizeof(actor->commands) / stride : 0, i;
	size_t fit = nr < room ? nr : room;
	size_t size = fit * stride;

	memset(actor->commands, 0, size);
	for (i = 0; i < fit; i++) {
		struct command_plan plan = call->commands[i % CALL_COMMANDS];
		uint8_t *to = actor->commands + i * stride;
		struct twheel_cmd cmd;

		/* Again, of another event. */
		plan.id += i / CALL_COMMANDS * 8;
		plan_command(&cmd, &plan, note);
		memcpy(to, &cmd, stride < sizeof(cmd) ? stride : sizeof(cmd));
		if (stride > sizeof(cmd) && call->stride & 0x80)
			to[stride - 1] = i % 3;
	}
	actor->in = memory_at(&actor->memory, MEMORY_IN, call->in, size, slot_of(call));
	memory_put(&actor->memory, actor->in, actor->commands, size);
	return size;
}

static void place_records(struct actor *actor, const struct call_plan *call, size_t size)
{
	actor->out = memory_at(&actor->memory, MEMORY_OUT, call->out, size, slot_of(call));
	/* So that pages of it are missing again. */
	memory_put(&actor->memory, actor->out, actor->commands, 1);
}

/* Does nobody else change the memory of this call? */
static bool is_steady(const struct actor *actor, uint64_t address)
{
	return !actor->disturbed && !actor->memory.overlaps &&
	       memory_is_steady(&actor->memory, address);
}

static uint32_t stride_of(const struct call_plan *call, size_t natural)
{
	return plan_size(call->stride, natural);
}

/* --- results ------------------------------------------------------------------------- */

/* Note the results of @nr commands. */
static void take_results(struct actor *actor, const struct call_plan *call, long nr,
			 uint32_t stride)
{
	struct file_note *note = note_of(slot_of(call));
	struct twheel_cmd cmd;
	long i;

	if (!is_steady(actor, actor->in))
		note->uncertain = true;
	for (i = 0; i < nr; i++) {
		if (!memory_get(&cmd, actor->in + i * stride, sizeof(cmd)))
			return;
		if (is_steady(actor, actor->in))
			note_command(note, &cmd, stride > sizeof(cmd));
		else if (cmd.op == TWHEEL_OP_ADD && !cmd.result)
			note->ids[note->nr_ids++ % NOTED_IDS] = cmd.id;
	}
}

/* Note @nr records. */
static void take_records(struct actor *actor, const struct call_plan *call, long nr,
			 uint32_t stride)
{
	struct file_note *note = note_of(slot_of(call));
	struct twheel_record record;
	long i;

	note_records(note, nr);
	for (i = 0; i < nr && is_steady(actor, actor->out); i++)
		if (memory_get(&record, actor->out + i * stride, sizeof(record)))
			note_record(note, &record);
}

/* --- ioctls -------------------------------------------------------------------------- */

#define NR32_GETPID	20
#define NR32_IOCTL	54

/* As a 32-bit program does. */
static long call32(unsigned int nr, int first, uint32_t second, uint32_t third)
{
	long ret;

	asm volatile("int $0x80"
		     : "=a" (ret)
		     : "a" (nr), "b" (first), "c" (second), "d" (third)
		     : "memory", "r8", "r9", "r10", "r11");
	return (int)ret;
}

/* User-mode Linux takes the numbers of such calls for those of 64-bit calls: 20 is writev. */
static bool can_call32(void)
{
	return call32(NR32_GETPID, -1, 0, 0) == getpid();
}

static long do_ioctl(struct actor *actor, const struct call_plan *call, unsigned int request)
{
	go(actor);
	if (call->flags & 0x80 && has_calls32)
		return call32(NR32_IOCTL, fd_of(call), request, actor->argument);
	return error_of(ioctl(fd_of(call), request, actor->argument));
}

static long run_info(struct actor *actor, const struct call_plan *call)
{
	struct twheel_info info = {};

	put_argument(actor, call, &info, sizeof(info));
	return do_ioctl(actor, call, TWHEEL_IOC_INFO);
}

static uint32_t cpu_of(uint8_t byte)
{
	static const uint32_t cpus[] = { 0, 1, 2, 3, 4, 0x7fffffff, 0xffffffff };

	return cpus[byte % LENGTH(cpus)];
}

static long run_config(struct actor *actor, const struct call_plan *call)
{
	static const int clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME,
				      CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_MONOTONIC,
				      CLOCK_REALTIME, CLOCK_TAI, -1, 0x7fffffff };
	static const uint32_t words[] = { 0, 4, 0, 4, 512, 513, 1, 1024, 8, 65536, 65537,
					  0xffffffff };
	static const uint64_t events[] = { 0, 0, 8, 0, 100, 65536, 5000, 1, 65537, UINT64_MAX };
	static const uint32_t wakes[] = { 0, 1, 2, 3, 10, 0xffffffff };
	const struct command_plan *more = &call->commands[0];
	struct twheel_config config = {
		.flags = call->flags & 0x40 ? call->flags & 3 : call->flags & TWHEEL_CONFIG_CPU,
		.clockid = clocks[call->time % LENGTH(clocks)],
		.max_events = events[call->nr % LENGTH(events)],
		.slack_ns = more->slack < 200 ? 0 : plan_time(more->slack, false, 0),
		.nr_deadlines = words[call->value % LENGTH(words)],
	};
	struct file_note *note = note_of(slot_of(call));
	long ret;

	if (call->flags & TWHEEL_CONFIG_CPU)
		config.cpu = cpu_of(call->other);
	if (more->op > 128) {
		config.wake_count = wakes[more->value % LENGTH(wakes)];
		config.wake_delay_ns = config.wake_count > 1 || more->wrong ?
				       plan_time(more->time, false, 0) : 0;
	}
	put_argument(actor, call, &config, sizeof(config));
	ret = do_ioctl(actor, call, TWHEEL_IOC_CONFIG);
	/* The struct may be cut, before the clock even: then that is 0. */
	if (!ret && is_steady(actor, actor->argument) && !call->size)
		note->clock = config.clockid;
	else if (!ret)
		note->uncertain = true;
	return ret;
}

static long run_submit(struct actor *actor, const struct call_plan *call)
{
	uint32_t stride = stride_of(call, sizeof(struct twheel_cmd));
	struct twheel_submit submit = {
		.flags = call->flags & 1 && call->flags & 2 && call->flags & 4,
		.nr = plan_count(call->nr),
		.cmd_size = stride,
	};
	long ret;

	put_commands(actor, call, submit.nr, stride);
	submit.cmds = actor->in;
	put_argument(actor, call, &submit, sizeof(submit));
	if (may_wait_for_mutex(actor))
		sleep_not_for_ever(actor);
	ret = do_ioctl(actor, call, TWHEEL_IOC_SUBMIT);
	/* If the argument was changed, it may have been other commands. */
	if (!is_steady(actor, actor->argument) || !is_steady(actor, actor->in))
		note_of(slot_of(call))->uncertain = true;
	if (ret > 0 && is_steady(actor, actor->argument)) {
		if (ret > submit.nr)
			violation("SUBMIT of %u commands returned %ld", submit.nr, ret);
		take_results(actor, call, ret, stride);
	}
	return ret;
}

static uint64_t timeout_of(uint8_t byte)
{
	static const uint64_t timeouts[] = { 0, 0, 1, 50000, 200000, 1000000, 3000000, UINT64_MAX,
					     1ULL << 63, UINT64_MAX - 1 };

	return timeouts[byte % LENGTH(timeouts)];
}

/* Of a call with a signal mask, which may block the signal that would end it. */
static uint64_t timeout_with_mask(uint8_t byte)
{
	return timeout_of(byte % 7);
}

static void plan_mask(struct actor *actor, const struct call_plan *call,
		      struct twheel_enter *enter)
{
	enter->sigmask = actor->in;
	enter->sigset_size = call->flags & 16 ? call->other : 8;
	enter->timeout_ns = timeout_with_mask(call->time);
}

/* A shorter struct is accepted, but has no room to tell how many records were read. */
#define ENTER_TELLS_ALL	offsetof(struct twheel_enter, reserved)

static long run_enter(struct actor *actor, const struct call_plan *call)
{
	uint32_t stride = stride_of(call, sizeof(struct twheel_cmd));
	uint32_t record = plan_size(call->other, sizeof(struct twheel_record));
	struct twheel_enter enter = {
		.flags = call->flags & TWHEEL_ENTER_ABS,
		.timeout_ns = timeout_of(call->time),
		.nr_cmds = call->nr % 4 ? plan_count(call->nr) : 0,
		.nr_records = plan_count(call->value),
		.cmd_size = stride,
		.record_size = record,
		.reserved = call->flags == 0x7f,
	};
	long ret;

	enter.min_records = call->flags & 2 ? call->value % 4 :
			    enter.nr_records < 3 ? enter.nr_records : 1;
	put_commands(actor, call, enter.nr_cmds, stride);
	place_records(actor, call, (size_t)(enter.nr_records % 512) * record);
	enter.cmds = actor->in;
	enter.records = actor->out;
	if (call->flags & 8)
		plan_mask(actor, call, &enter);
	if (enter.flags && enter.timeout_ns && enter.timeout_ns < 1ULL << 62)
		enter.timeout_ns += plan_time(1, true, CLOCK_MONOTONIC);
	put_argument(actor, call, &enter, sizeof(enter));
	sleep_not_for_ever(actor);
	/* The mask, or a changed argument, may block the signal that would end it. */
	if (enter.sigmask || !is_steady(actor, actor->argument))
		shared->may_hang[number] = true;
	ret = do_ioctl(actor, call, TWHEEL_IOC_ENTER);
	if (ret > 0)
		violation("ENTER returned %ld", ret);
	if (!is_steady(actor, actor->argument) || !is_steady(actor, actor->in) ||
	    !memory_get(&enter, actor->argument, sizeof(enter))) {
		note_of(slot_of(call))->uncertain = true;
	} else if (!ret && enter.size < ENTER_TELLS_ALL) {
		note_of(slot_of(call))->uncertain = true;
	} else if (!ret) {
		take_results(actor, call, enter.cmds_done, stride);
		take_records(actor, call, enter.records_done, record);
	}
	return ret;
}

static long run_list(struct actor *actor, const struct call_plan *call)
{
	uint32_t stride = stride_of(call, sizeof(struct twheel_entry));
	struct twheel_list list = {
		.nr = plan_count(call->nr),
		.entry_size = stride,
		.reserved = call->flags & 1 && call->flags & 2,
		.cursor = call->value < 128 ? 0 : plan_number(call->value),
	};
	long ret;

	place_records(actor, call, (size_t)(list.nr % 512) * stride);
	list.entries = actor->out;
	put_argument(actor, call, &list, sizeof(list));
	if (may_wait_for_mutex(actor))
		sleep_not_for_ever(actor);
	ret = do_ioctl(actor, call, TWHEEL_IOC_LIST);
	if (ret > list.nr && is_steady(actor, actor->argument))
		violation("LIST of %u entries returned %ld", list.nr, ret);
	return ret;
}

/* Numbers that are none of ours, or have another size or direction. */
static long run_unknown(struct actor *actor, const struct call_plan *call)
{
	unsigned int request = _IOC(call->flags % 4, TWHEEL_IOC_TYPE, 5 + call->nr % 251,
				    call->value);
	struct twheel_submit submit = {};
	long ret;

	put_argument(actor, call, &submit, sizeof(submit));
	if (call->other & 1)
		request = 0x5401;
	ret = do_ioctl(actor, call, request);
	if (ret >= 0)
		violation("ioctl %#x returned %ld", request, ret);
	return ret;
}

/* --- read and its like ---------------------------------------------------------------- */

static size_t length_of(uint8_t byte)
{
	static const size_t lengths[] = { 640, 64, 128, 65, 63, 0, 6400, 32768, 1, 0x7ffff000,
					  SIZE_MAX / 2, SIZE_MAX };

	return lengths[byte % LENGTH(lengths)];
}

static long records_of(const char *name, long ret)
{
	if (ret > 0 && ret % sizeof(struct twheel_record))
		violation("%s returned %ld bytes", name, ret);
	return ret > 0 ? ret / (long)sizeof(struct twheel_record) : 0;
}

static long run_read(struct actor *actor, const struct call_plan *call)
{
	size_t len = length_of(call->nr);
	long ret;

	place_records(actor, call, len);
	sleep_not_for_ever(actor);
	go(actor);
	ret = error_of(syscall(SYS_read, fd_of(call), actor->out, len));
	take_records(actor, call, records_of("read", ret), sizeof(struct twheel_record));
	return ret;
}

static long run_readv(struct actor *actor, const struct call_plan *call)
{
	static const uint8_t flags[] = { 0, RWF_NOWAIT, RWF_HIPRI, RWF_APPEND, 0x80 };
	struct iovec iov[4];
	unsigned int i;
	long ret;

	for (i = 0; i < 4; i++) {
		struct memory_plan plan = call->out;

		plan.place += i * call->value;
		iov[i].iov_len = length_of(call->commands[i].value);
		iov[i].iov_base = (void *)memory_at(&actor->memory, MEMORY_OUT, plan,
						    iov[i].iov_len, slot_of(call));
	}
	actor->out = (uintptr_t)iov[0].iov_base;
	actor->in = memory_at(&actor->memory, MEMORY_IN, call->in, sizeof(iov), slot_of(call));
	memory_put(&actor->memory, actor->in, iov, sizeof(iov));
	sleep_not_for_ever(actor);
	go(actor);
	ret = error_of(syscall(SYS_preadv2, fd_of(call), actor->in, call->time % 5, -1L, -1L,
			       flags[call->flags % LENGTH(flags)]));
	note_records(note_of(slot_of(call)), records_of("readv", ret));
	return ret;
}

/* What a stream refuses. */
static long run_refused(struct actor *actor, const struct call_plan *call)
{
	long ret;

	place_records(actor, call, 64);
	go(actor);
	switch (call->value % 4) {
	case 0:
		ret = syscall(SYS_pread64, fd_of(call), actor->out, 64, 0);
		break;
	case 1:
		ret = syscall(SYS_write, fd_of(call), actor->out, 64);
		break;
	case 2:
		ret = lseek(fd_of(call), call->nr, call->other % 3);
		break;
	default:
		ret = ftruncate(fd_of(call), call->nr);
	}
	if (ret >= 0)
		violation("call %u that a stream refuses returned %ld", call->value % 4, ret);
	return error_of(ret);
}

static long run_splice(struct actor *actor, const struct call_plan *call)
{
	int pipes[2];
	long ret;

	if (pipe2(pipes, O_NONBLOCK))
		return 0;
	sleep_not_for_ever(actor);
	go(actor);
	ret = error_of(splice(fd_of(call), NULL, pipes[1], NULL, length_of(call->nr),
			      SPLICE_F_NONBLOCK));
	close(pipes[0]);
	close(pipes[1]);
	return ret;
}

static void check_events(unsigned int events)
{
	if (events & ~(POLLIN | POLLRDNORM | POLLNVAL))
		violation("poll returned %#x", events);
}

static long run_poll(struct actor *actor, const struct call_plan *call)
{
	struct pollfd pollfd = {
		.fd = fd_of(call),
		.events = call->flags ? call->flags : POLLIN,
	};
	struct timespec timeout = { .tv_nsec = call->time * 8000 };
	long ret;

	sleep_not_for_ever(actor);
	go(actor);
	ret = error_of(ppoll(&pollfd, 1, &timeout, NULL));
	if (ret > 0)
		check_events(pollfd.revents);
	return ret;
}

static long run_epoll(struct actor *actor, const struct call_plan *call)
{
	struct epoll_event event = { .events = EPOLLIN | (call->flags & 1 ? EPOLLET : 0) };
	int epoll = epoll_create1(0);
	long ret = error_of(epoll_ctl(epoll, EPOLL_CTL_ADD, fd_of(call), &event));

	sleep_not_for_ever(actor);
	go(actor);
	if (!ret)
		ret = error_of(epoll_wait(epoll, &event, 1, call->time % 4));
	if (ret > 0)
		check_events(event.events);
	close(epoll);
	return ret;
}

/* --- files --------------------------------------------------------------------------- */

static long run_open(struct actor *actor, const struct call_plan *call)
{
	static const int modes[] = { O_RDWR, O_RDWR | O_NONBLOCK, O_RDONLY, O_RDWR | O_NONBLOCK };

	go(actor);
	return file_open(slot_of(call), O_CLOEXEC | modes[call->flags % LENGTH(modes)]);
}

static long run_close(struct actor *actor, const struct call_plan *call)
{
	go(actor);
	return file_close(slot_of(call));
}

static long run_dup(struct actor *actor, const struct call_plan *call)
{
	go(actor);
	return file_dup(slot_of(call), call->other % PROGRAM_SLOTS);
}

static long run_nonblock(struct actor *actor, const struct call_plan *call)
{
	go(actor);
	return error_of(fcntl(fd_of(call), F_SETFL, call->flags & 1 ? O_NONBLOCK : 0));
}

static long run_fdinfo(struct actor *actor, const struct call_plan *call)
{
	go(actor);
	return file_check(slot_of(call));
}

/* --- words --------------------------------------------------------------------------- */

static int protection_of(uint8_t byte)
{
	static const int protections[] = { PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE, PROT_WRITE,
					   PROT_READ | PROT_EXEC };

	return protections[byte % LENGTH(protections)];
}

static size_t pages_of(uint8_t byte)
{
	static const size_t pages[] = { 1, 1, 1, 2, 1, 1, 3, 16, 128, 129, 256 };

	return pages[byte % LENGTH(pages)] * PAGE;
}

/* Somewhere in the words of a file. */
static uint64_t words_of(const struct call_plan *call)
{
	return WORDS_AT(slot_of(call)) + (call->other < 192 ? 0 : call->other % 4 * PAGE);
}

static long run_mmap(struct actor *actor, const struct call_plan *call)
{
	static const int flags[] = { MAP_SHARED, MAP_SHARED, MAP_SHARED | MAP_POPULATE,
				     MAP_SHARED_VALIDATE, MAP_PRIVATE, MAP_SHARED | MAP_LOCKED };
	off_t offset = call->value < 200 ? 0 : (off_t)(plan_number(call->value) * PAGE);
	long ret;

	go(actor);
	ret = syscall(SYS_mmap, words_of(call), pages_of(call->nr), protection_of(call->flags),
		      MAP_FIXED | flags[call->time % LENGTH(flags)], fd_of(call), offset);
	return ret == -1 ? -errno : 0;
}

static long run_munmap(struct actor *actor, const struct call_plan *call)
{
	go(actor);
	return error_of(munmap((void *)words_of(call), pages_of(call->nr)));
}

static long run_mprotect(struct actor *actor, const struct call_plan *call)
{
	go(actor);
	return error_of(mprotect((void *)words_of(call), pages_of(call->nr),
				 protection_of(call->flags)));
}

static long run_mremap(struct actor *actor, const struct call_plan *call)
{
	size_t from = call->flags & 8 ? 0 : pages_of(call->nr), to = pages_of(call->value);
	uint64_t moved = WORDS_AT(call->time % PROGRAM_SLOTS);
	int flags = call->flags % 4 == 3 ? MREMAP_MAYMOVE | MREMAP_FIXED : 0;
	char byte;
	long ret;

	if (call->flags & 4 && flags)
		flags |= MREMAP_DONTUNMAP;
	go(actor);
	ret = syscall(SYS_mremap, words_of(call), from, to, flags, moved);
	if (ret == -1)
		return -errno;
	/* Read what was added: if a page is not the file's, KASAN sees that. */
	for (; from < to; from += PAGE)
		memory_get(&byte, ret + from, 1);
	return 0;
}

static long run_advise(struct actor *actor, const struct call_plan *call)
{
	static const int advices[] = { MADV_DONTNEED, MADV_WILLNEED, MADV_DONTFORK, MADV_REMOVE,
				       MADV_FREE, MADV_POPULATE_READ, MADV_POPULATE_WRITE,
				       MADV_COLD, MADV_PAGEOUT, MADV_MERGEABLE };
	unsigned int what = call->value % (LENGTH(advices) + 4);
	void *at = (void *)words_of(call);
	size_t len = pages_of(call->nr);

	go(actor);
	switch (what) {
	case LENGTH(advices):
		return error_of(msync(at, len, MS_SYNC));
	case LENGTH(advices) + 1:
		return error_of(mlock(at, len));
	case LENGTH(advices) + 2:
		return error_of(munlock(at, len));
	case LENGTH(advices) + 3:
		return error_of(syscall(SYS_remap_file_pages, at, len, 0, call->flags % 4, 0));
	default:
		return error_of(madvise(at, len, advices[what]));
	}
}

/* Store to words, or try it: they may not be mapped. */
static long run_store(struct actor *actor, const struct call_plan *call)
{
	uint64_t at = WORDS_AT(slot_of(call)) + 8 * (call->nr < 128 ? call->nr % 4 : 64 * call->nr);
	int clock = note_of(slot_of(call))->clock, signal;

	go(actor);
	if (memory_store(at, plan_time(call->time, true, clock), &signal))
		return 0;
	if (signal != SIGSEGV)
		violation("a store to words gave signal %d", signal);
	return -EFAULT;
}

/* --- processes, time ------------------------------------------------------------------ */

static long run_pause(struct actor *actor, const struct call_plan *call)
{
	struct timespec pause = { .tv_nsec = call->time * 10000 };

	go(actor);
	nanosleep(&pause, NULL);
	return 0;
}

/* In a child, which has the files, too. */
static void call_alone(struct actor *actor)
{
	unsigned int i;

	actor->alone = true;
	actor->raced = false;
	make_timer(actor);
	for (i = 1; i <= 2 && actor->at + i < current->nr; i++)
		make_call(actor, current, actor->at + i);
	_exit(0);
}

static long run_fork(struct actor *actor, const struct call_plan *call)
{
	(void)call;
	/* In a second thread, or in a child, only one call is under way. */
	if (actor != &actors[0] || actor->alone)
		return 0;
	files_doubt();
	has_children = true;
	if (!fork())
		call_alone(actor);
	return 0;
}

static long run_set_clock(struct actor *actor, const struct call_plan *call)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += (call->value % 5) - 2;
	if (call->value == 255)
		now.tv_sec = 1700000000;
	go(actor);
	return error_of(clock_settime(CLOCK_REALTIME, &now));
}

static long run_affinity(struct actor *actor, const struct call_plan *call)
{
	cpu_set_t cpus;
	unsigned int cpu;

	CPU_ZERO(&cpus);
	for (cpu = 0; cpu < 4; cpu++)
		if (!(call->flags & 1) || cpu == call->value % 4)
			CPU_SET(cpu, &cpus);
	go(actor);
	return error_of(sched_setaffinity(0, sizeof(cpus), &cpus));
}

/* --- io_uring ------------------------------------------------------------------------- */

static void prepare_submit(struct actor *actor, const struct call_plan *call,
			   struct io_uring_sqe *sqe, uint32_t *stride)
{
	struct twheel_submit submit = { .nr = plan_count(call->nr) };
	struct twheel_uring command = { .reserved = call->flags & 1 && call->flags & 2 };

	*stride = stride_of(call, sizeof(struct twheel_cmd));
	put_commands(actor, call, submit.nr, *stride);
	submit.cmds = actor->in;
	submit.cmd_size = *stride;
	put_argument(actor, call, &submit, sizeof(submit));
	command.argument = actor->argument;
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd_of(call), NULL, 0, 0);
	sqe->cmd_op = call->flags & 4 && call->flags & 8 ? TWHEEL_IOC_LIST : TWHEEL_IOC_SUBMIT;
	memcpy(sqe->cmd, &command, sizeof(command));
}

static void cancel(void)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (!sqe)
		violation("io_uring has no room");
	io_uring_prep_cancel64(sqe, 1, 0);
	sqe->user_data = 2;
	io_uring_submit(&ring);
}

/*
 * Wait for the completion of the only request. If it does not come, cancel it, again and again:
 * a request that a worker has is not found while it goes back to wait for the file.
 */
static long complete(void)
{
	struct __kernel_timespec little = { .tv_nsec = PATIENCE_NS };
	struct io_uring_cqe *cqe;
	long ret = -ECANCELED;
	unsigned int left = 1, tries = 0;
	int last = 0;

	while (left) {
		if (io_uring_wait_cqe_timeout(&ring, &cqe, &little)) {
			if (++tries == CANCELS_MAX)
				violation("a request of io_uring does not end; cancelling gave %d",
					  last);
			cancel();
			left++;
			continue;
		}
		last = cqe->user_data == 2 ? cqe->res : last;
		if (cqe->user_data == 1)
			ret = cqe->res;
		io_uring_cqe_seen(&ring, cqe);
		left--;
	}
	return ret;
}

static long run_uring(struct actor *actor, const struct call_plan *call)
{
	unsigned int what = call->value % 4;
	struct io_uring_sqe *sqe;
	uint32_t stride = 0;
	size_t len = length_of(call->other);
	long ret;

	if (!has_ring || actor != &actors[0] || actor->alone)
		return 0;
	sqe = io_uring_get_sqe(&ring);
	if (!sqe)
		violation("io_uring has no room");
	if (what < 2) {
		prepare_submit(actor, call, sqe, &stride);
	} else if (what == 2) {
		place_records(actor, call, len);
		io_uring_prep_rw(IORING_OP_READ, sqe, fd_of(call), (void *)actor->out, len, -1);
	} else {
		io_uring_prep_poll_add(sqe, fd_of(call), POLLIN);
	}
	sqe->flags |= call->flags & 0x40 ? IOSQE_ASYNC : 0;
	sqe->user_data = 1;
	go(actor);
	while (io_uring_submit(&ring) < 0)
		;
	ret = complete();
	if (what < 2 && ret > 0)
		take_results(actor, call, ret, stride);
	else if (what < 2 && !is_steady(actor, actor->in))
		note_of(slot_of(call))->uncertain = true;
	else if (what == 2)
		take_records(actor, call, records_of("io_uring", ret),
			     sizeof(struct twheel_record));
	else if (what == 3 && ret > 0)
		check_events(ret);
	return ret;
}

/* --- all calls ------------------------------------------------------------------------ */

/* With the errors that each may have. EBADF and EINTR are judged apart. */
static const struct call_kind kinds[] = {
	{ "open", run_open, {} },
	{ "close", run_close, {} },
	{ "dup", run_dup, {} },
	{ "info", run_info, { EFAULT, EINVAL, E2BIG } },
	{ "config", run_config, { EFAULT, EINVAL, E2BIG, EBUSY, ENOSPC, EPERM, EINTR } },
	{ "submit", run_submit, { EFAULT, EINVAL, E2BIG, EINTR } },
	{ "enter", run_enter, { EFAULT, EINVAL, E2BIG, EINTR } },
	{ "list", run_list, { EFAULT, EINVAL, E2BIG, EINTR } },
	{ "unknown", run_unknown, { ENOTTY } },
	{ "read", run_read, { EFAULT, EINVAL, EAGAIN, EINTR } },
	{ "readv", run_readv, { EFAULT, EINVAL, EAGAIN, EINTR, EOPNOTSUPP } },
	{ "refused", run_refused, { EINVAL, ESPIPE, EBADF } },
	{ "splice", run_splice, { EINVAL, EAGAIN, EINTR } },
	{ "poll", run_poll, { EINTR } },
	{ "epoll", run_epoll, { EINTR } },
	{ "nonblock", run_nonblock, {} },
	{ "fdinfo", run_fdinfo, {} },
	{ "mmap", run_mmap, { EINVAL, ENODEV, EACCES, EOVERFLOW, EAGAIN, EOPNOTSUPP } },
	{ "munmap", run_munmap, { EINVAL } },
	{ "mprotect", run_mprotect, { EINVAL, EACCES, ENOMEM } },
	{ "mremap", run_mremap, { EINVAL, EFAULT, ENOMEM, EAGAIN } },
	{ "advise", run_advise, { EINVAL, ENOMEM, EFAULT, EAGAIN, EACCES, ENODEV, EBADF } },
	{ "store", run_store, { EFAULT } },
	{ "pause", run_pause, {} },
	{ "fork", run_fork, {} },
	{ "set_clock", run_set_clock, { EPERM } },
	{ "affinity", run_affinity, { EINVAL } },
	{ "uring", run_uring, { EFAULT, EINVAL, E2BIG, EINTR, EAGAIN, EOPNOTSUPP, ECANCELED } },
};

/* Which calls the bytes of a plan mean. The first two are those that program_make() knows. */
static const uint8_t frequent[] = {
	4, 17, 0, 1, 2, 3, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 7, 7, 8, 9, 9, 9, 10, 10,
	11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 22, 23, 23, 24, 25, 26, 27, 27, 27,
};

static const struct call_kind *kind_of(const struct call_plan *call)
{
	return &kinds[frequent[call->kind % LENGTH(frequent)]];
}

/* May it take memory away, or put something else in its place? */
static bool takes_memory(const struct call_plan *call)
{
	const struct call_kind *kind = kind_of(call);

	return kind->run == run_mmap || kind->run == run_munmap || kind->run == run_mremap ||
	       kind->run == run_advise;
}

static bool is_allowed(const struct call_kind *kind, int error)
{
	unsigned int i;

	for (i = 0; i < LENGTH(kind->errors); i++)
		if (kind->errors[i] == error)
			return true;
	return false;
}

/*
 * io_uring interrupts a task for work of its own as a signal does. Its calls end with EINTR then,
 * and so do those that the kernel does not start again: epoll_wait(), and ENTER, whose relative
 * time would begin once more.
 */
static bool ends_without_signal(const struct call_kind *kind)
{
	return kind->run == run_uring || kind->run == run_epoll || kind->run == run_enter;
}

static void judge(struct actor *actor, const struct call_kind *kind, long ret,
		  unsigned long signals)
{
	outcome_count(&shared->by_call[kind - kinds], ret);
	if (ret >= 0)
		return;
	if (ret == -EBADF && may_be_closed(slot_of(actor->call)))
		return;
	if (!is_allowed(kind, -ret))
		violation("%s failed with %s", kind->name, strerrorname_np(-ret));
	if (ret == -EINTR && signals == actor->signals && !ends_without_signal(kind))
		violation("%s failed with EINTR, but there was no signal", kind->name);
}

static long make_call(struct actor *actor, const struct program *program, unsigned int at)
{
	const struct call_plan *call = &program->calls[at];
	const struct call_kind *kind = kind_of(call);
	unsigned long signals = actor->signals;
	long ret;

	actor->call = call;
	actor->at = at;
	actor->argument = 0;
	actor->in = 0;
	actor->out = 0;
	actor->disturbed = !actor->alone && race_of(call) > RACE_CALL &&
			   race_of(call) < RACE_CLOSE;
	actor->memory.uses_missing = false;
	actor->memory.overlaps = false;
	shared->may_hang[number] = false;
	if (actor == &actors[0])
		memory_provide_by(call->fault);
	ret = kind->run(actor, call);
	atomic_fetch_add_explicit(&shared->calls[number], 1, memory_order_relaxed);
	judge(actor, kind, ret, signals);
	end_race(actor);
	if (actor->may_sleep)
		set_timer(actor, 0);
	actor->may_sleep = false;
	return ret;
}

static void *second_thread(void *unused)
{
	(void)unused;
	make_timer(&actors[1]);
	actors[1].alone = true;
	for (;;) {
		while (sem_wait(&race_begin))
			;
		disturb(&actors[0]);
		memory_mend(&actors[1].memory);
		sem_post(&race_end);
	}
	return NULL;
}

/**
 * calls_start() - to be called once in a process, before the first program
 * @worker: which one of the processes this is.
 */
void calls_start(unsigned int worker)
{
	struct sigaction action = { .sa_handler = count_signal };
	pthread_t thread;

	number = worker;
	sigaction(SIGALRM, &action, NULL);
	memory_start();
	memory_open(&actors[0].memory, 0);
	memory_open(&actors[1].memory, 1);
	make_timer(&actors[0]);
	has_ring = !io_uring_queue_init(8, &ring, 0);
	has_calls32 = can_call32();
	first_thread = pthread_self();
	sem_init(&race_begin, 0, 0);
	sem_init(&race_end, 0, 0);
	if (pthread_create(&thread, NULL, second_thread, NULL))
		errx(1, "no thread");
}

static void unmap_words(void)
{
	munmap((void *)WORDS_AT(0), PROGRAM_SLOTS * WORDS_BYTES);
}

static void wait_for_children(void)
{
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		errno = 0;
}

/**
 * calls_run() - run a program
 * @program: the program.
 *
 * Return: the number of its calls up to the last one that has reached what no other program
 * has reached; 0: none has.
 */
unsigned int calls_run(const struct program *program)
{
	unsigned int at, useful = 0;

	current = program;
	violation_of(program, number);
	files_begin();
	/* It would do little without files. */
	file_open(0, O_RDWR | (program->calls[0].value & 1 ? O_NONBLOCK : 0));
	file_open(1, O_RDWR | (program->calls[0].value & 2 ? O_NONBLOCK : 0));
	for (at = 0; at < program->nr; at++) {
		coverage_begin();
		make_call(&actors[0], program, at);
		if (coverage_end())
			useful = at + 1;
		memory_mend(&actors[0].memory);
	}
	if (has_children)
		wait_for_children();
	has_children = false;
	files_check();
	unmap_words();
	files_end();
	atomic_fetch_add(&shared->programs, 1);
	return useful;
}

static void print_outcome(FILE *file, const char *name, const struct outcome *outcome)
{
	int error;

	fprintf(file, "# %-9s ok %lu", name, outcome->ok);
	for (error = 1; error < ERRORS_MAX; error++)
		if (outcome->failed[error])
			fprintf(file, ", %s %lu", strerrorname_np(error), outcome->failed[error]);
	fputc('\n', file);
}

/**
 * calls_print() - print how calls and commands have ended
 * @file: where to.
 */
void calls_print(FILE *file)
{
	static const char *const ops[] = { "(none)", "ADD", "MODIFY", "CANCEL", "COMPLETE", "WATCH",
					   "SIGNAL", "QUERY" };
	unsigned int i;

	for (i = 0; i < LENGTH(kinds); i++)
		print_outcome(file, kinds[i].name, &shared->by_call[i]);
	for (i = 0; i < LENGTH(ops); i++)
		print_outcome(file, ops[i], &shared->by_op[i]);
}

/**
 * calls_still_work() - does an event come when it is due?
 */
bool calls_still_work(void)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_ADD, .time_ns = 1000000, .data = 42 };
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.cmds = (uintptr_t)&cmd,
		.nr = 1,
		.cmd_size = sizeof(cmd),
	};
	struct twheel_record record = {};
	int fd = open("/dev/twheel", O_RDWR);
	bool well = fd >= 0 && ioctl(fd, TWHEEL_IOC_SUBMIT, &submit) == 1 && !cmd.result &&
		    read(fd, &record, sizeof(record)) == sizeof(record) && record.data == 42 &&
		    record.id == cmd.id && record.fired_ns >= record.due_ns;

	close(fd);
	return well;
}
