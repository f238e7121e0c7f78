// SPDX-License-Identifier: GPL-2.0
/* Workers: see worker.h. */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "chance.h"
#include "files.h"
#include "ledger.h"
#include "settle.h"
#include "worker.h"

#define HELD_MAX	8
/* Where several threads cancel what others arm, they meet often if these are few. */
#define CHILD_TURNS	40
#define WAIT_MS		5
#define RING_ENTRIES	8

/* The key that only quiet signals use, besides watches. */
#define QUIET_KEY	(KEYS_MAX - 1)

/**
 * struct worker - a thread
 * @log: its log.
 * @chance: the state of its chance.
 * @data: the cookie of the next event.
 * @held: the files that it can use.
 * @nr_held: how many these are.
 * @role: what it does most.
 * @is_cramped: see &struct worker_options.cgroup.
 * @is_child: it is a child of another worker, and has none of its own.
 * @has_ring: @ring is usable.
 * @cmds: the commands of the next call.
 * @nr_cmds: how many there are.
 */
struct worker {
	int log;
	uint64_t chance;
	uint64_t data;
	struct held held[HELD_MAX];
	unsigned int nr_held;
	const struct role *role;
	bool is_cramped;
	bool is_child;
	bool has_ring;
	struct io_uring ring;
	struct twheel_cmd cmds[CALL_CMDS_MAX];
	unsigned int nr_cmds;
};

static uint64_t draw(struct worker *worker, uint64_t limit)
{
	return random_below(&worker->chance, limit);
}

/* --- commands ------------------------------------------------------------------------- */

/* Mostly soon, so that expirations meet those who arm and cancel. */
static uint64_t draw_delay_ns(struct worker *worker)
{
	switch (draw(worker, 16)) {
	case 0:
		return 0;
	case 1:
		return draw(worker, SECOND_NS);
	case 2:
		return 1000 * draw(worker, SECOND_NS);
	case 3:
		return draw(worker, 50 * MILLISECOND_NS);
	default:
		return draw(worker, 3 * MILLISECOND_NS);
	}
}

static uint64_t draw_slack_ns(struct worker *worker)
{
	return draw(worker, 4) ? 0 : draw(worker, 4 * MILLISECOND_NS);
}

static struct twheel_cmd *next_cmd(struct worker *worker, unsigned int op)
{
	struct twheel_cmd *cmd = &worker->cmds[worker->nr_cmds++];

	*cmd = (struct twheel_cmd){ .op = op };
	return cmd;
}

/* A few words have most of the events, so that stores meet events that wait for them. */
static uint32_t draw_word(struct worker *worker)
{
	return draw(worker, draw(worker, 4) ? 3 : WORDS_MAX);
}

/* The time of an ADD or MODIFY. */
static void set_time(struct worker *worker, const struct held *held, struct twheel_cmd *cmd)
{
	const struct file *file = &ledger->files[held->number];

	cmd->slack_ns = draw_slack_ns(worker);
	if (file->nr_words && draw(worker, 2)) {
		cmd->flags |= TWHEEL_DEADLINE;
		cmd->key = draw_word(worker);
		return;
	}
	cmd->time_ns = draw_delay_ns(worker);
	if (!draw(worker, 32))
		cmd->time_ns = NEVER_NS;
	if (!draw(worker, 2))
		return;
	cmd->flags |= TWHEEL_ABS;
	if (cmd->time_ns != NEVER_NS)
		cmd->time_ns += clock_ns(file->clock) - draw(worker, MILLISECOND_NS);
	if (file->clock == CLOCK_REALTIME && !draw(worker, 4))
		cmd->flags |= TWHEEL_CANCEL_ON_SET;
}

static void add_watches(struct worker *worker)
{
	unsigned int nr = 1 + draw(worker, 3);

	while (nr-- && worker->nr_cmds < CALL_CMDS_MAX) {
		struct twheel_cmd *cmd = next_cmd(worker, TWHEEL_OP_WATCH);

		cmd->key = draw(worker, KEYS_MAX);
		cmd->value = 1 + draw(worker, 20);
		cmd->flags = draw(worker, 2) ? TWHEEL_LEVEL : 0;
	}
}

static void add_event(struct worker *worker, const struct held *held)
{
	struct twheel_cmd *cmd = next_cmd(worker, TWHEEL_OP_ADD);

	cmd->data = worker->data++;
	set_time(worker, held, cmd);
	if (!draw(worker, 8) && !(cmd->flags & TWHEEL_DEADLINE)) {
		cmd->interval_ns = MILLISECOND_NS + draw(worker, 10 * MILLISECOND_NS);
	} else if (!draw(worker, 3)) {
		cmd->quorum = draw(worker, 3);
		add_watches(worker);
	}
}

static uint64_t any_id(struct worker *worker, _Atomic uint64_t *board)
{
	return board[draw(worker, BOARD_IDS)];
}

static void modify_event(struct worker *worker, const struct held *held)
{
	struct twheel_cmd *cmd = next_cmd(worker, TWHEEL_OP_MODIFY);

	cmd->id = any_id(worker, ledger->files[held->number].once);
	set_time(worker, held, cmd);
}

static void cancel_event(struct worker *worker, const struct held *held)
{
	struct file *file = &ledger->files[held->number];
	struct twheel_cmd *cmd = next_cmd(worker, TWHEEL_OP_CANCEL);

	cmd->id = any_id(worker, draw(worker, 3) ? file->once : file->periodic);
}

static void complete_event(struct worker *worker, const struct held *held)
{
	struct twheel_cmd *cmd = next_cmd(worker, TWHEEL_OP_COMPLETE);

	cmd->id = any_id(worker, ledger->files[held->number].once);
	cmd->value = draw(worker, 100);
}

static void watch_event(struct worker *worker, const struct held *held)
{
	struct twheel_cmd *cmd = next_cmd(worker, TWHEEL_OP_WATCH);

	cmd->id = any_id(worker, ledger->files[held->number].once);
	cmd->key = draw(worker, KEYS_MAX);
	cmd->value = 1 + draw(worker, 20);
	/* An id of 0 would mean an ADD of this call. */
	if (!cmd->id)
		worker->nr_cmds--;
}

static void signal_key(struct worker *worker, const struct held *held)
{
	struct twheel_cmd *cmd = next_cmd(worker, TWHEEL_OP_SIGNAL);

	(void)held;
	cmd->key = draw(worker, KEYS_MAX);
	cmd->value = 1 + draw(worker, 10);
	if (cmd->key == QUIET_KEY)
		cmd->flags = TWHEEL_QUIET;
}

static void query_event(struct worker *worker, const struct held *held)
{
	struct twheel_cmd *cmd = next_cmd(worker, TWHEEL_OP_QUERY);

	cmd->id = any_id(worker, ledger->files[held->number].once);
}

enum command_kind {
	ADD, MODIFY, CANCEL, COMPLETE, WATCH, SIGNAL, QUERY, NR_COMMANDS,
};

static void (*const commands[NR_COMMANDS])(struct worker *worker, const struct held *held) = {
	[ADD] = add_event,
	[MODIFY] = modify_event,
	[CANCEL] = cancel_event,
	[COMPLETE] = complete_event,
	[WATCH] = watch_event,
	[SIGNAL] = signal_key,
	[QUERY] = query_event,
};

/* --- io_uring ------------------------------------------------------------------------- */

/* Do one thing, and give up after a while. Returns its result. */
static int ring_run(struct worker *worker)
{
	struct __kernel_timespec wait = { .tv_nsec = WAIT_MS * MILLISECOND_NS };
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	int ret, result = -ECANCELED;
	bool cancelled = false, has_result = false;

	io_uring_submit(&worker->ring);
	while (!has_result || cancelled) {
		ret = cancelled ? io_uring_wait_cqe(&worker->ring, &cqe) :
			io_uring_wait_cqe_timeout(&worker->ring, &cqe, &wait);
		if (ret == -EINTR)
			continue;
		if (ret) {
			sqe = io_uring_get_sqe(&worker->ring);
			io_uring_prep_cancel64(sqe, 1, 0);
			io_uring_sqe_set_data64(sqe, 2);
			io_uring_submit(&worker->ring);
			cancelled = true;
			continue;
		}
		if (cqe->user_data == 1) {
			result = cqe->res;
			has_result = true;
		} else if (cqe->user_data == 2) {
			cancelled = false;
		}
		io_uring_cqe_seen(&worker->ring, cqe);
	}
	return result;
}

static int ring_submit(struct worker *worker, int fd, struct twheel_submit *submit)
{
	struct twheel_uring argument = { .argument = (uintptr_t)submit };
	struct io_uring_sqe *sqe = io_uring_get_sqe(&worker->ring);

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = TWHEEL_IOC_SUBMIT;
	memcpy(sqe->cmd, &argument, sizeof(argument));
	io_uring_sqe_set_data64(sqe, 1);
	return ring_run(worker);
}

static int ring_read(struct worker *worker, int fd, void *records, size_t bytes)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&worker->ring);

	io_uring_prep_read(sqe, fd, records, bytes, -1);
	io_uring_sqe_set_data64(sqe, 1);
	return ring_run(worker);
}

/* --- calls ---------------------------------------------------------------------------- */

/* Let others know of new events. */
static void publish(struct worker *worker, struct call *call)
{
	struct file *file = &ledger->files[call->file];
	unsigned int i;

	for (i = 0; i < call->nr_cmds; i++) {
		const struct twheel_cmd *cmd = &call_cmds(call)[i];

		if (cmd->op != TWHEEL_OP_ADD || cmd->result < 0)
			continue;
		if (cmd->interval_ns)
			file->periodic[draw(worker, BOARD_IDS)] = cmd->id;
		else
			file->once[draw(worker, BOARD_IDS)] = cmd->id;
	}
}

static int enter(struct call *call, int fd, unsigned int min_records, uint64_t timeout_ns,
		 unsigned int *nr_read)
{
	struct twheel_enter enter = {
		.size = sizeof(enter),
		.cmds = (uintptr_t)call_cmds(call),
		.records = (uintptr_t)call_records(call),
		.timeout_ns = timeout_ns,
		.nr_cmds = call->nr_cmds,
		.nr_records = call->nr_records,
		.min_records = min_records,
		.cmd_size = sizeof(struct twheel_cmd),
		.record_size = sizeof(struct twheel_record),
	};
	int ret = ioctl(fd, TWHEEL_IOC_ENTER, &enter) ? -errno : 0;

	*nr_read = enter.records_done;
	return ret;
}

static int submit(struct worker *worker, struct call *call, int fd)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.cmds = (uintptr_t)call_cmds(call),
		.nr = call->nr_cmds,
		.cmd_size = sizeof(struct twheel_cmd),
	};
	int ret;

	if (worker->has_ring && draw(worker, 2))
		return ring_submit(worker, fd, &submit);
	ret = ioctl(fd, TWHEEL_IOC_SUBMIT, &submit);
	return ret < 0 ? -errno : ret;
}

static bool run_commands(struct worker *worker, const struct held *held, unsigned int nr_records)
{
	struct call *call = call_begin(&worker->log, held->number, worker->nr_cmds, nr_records);
	unsigned int nr_read = 0, i;
	int ret;

	if (!call)
		return false;
	for (i = 0; i < worker->nr_cmds; i++) {
		call_cmds(call)[i] = worker->cmds[i];
		call_cmds(call)[i].result = NOT_RUN;
	}
	call_go(call, CALL_DEVICE);
	if (nr_records)
		ret = enter(call, held->fd, 0, 0, &nr_read);
	else
		ret = submit(worker, call, held->fd);
	call_end(worker->log, call, ret, nr_read);
	publish(worker, call);
	return true;
}

static void poll_file(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	poll(&pollfd, 1, WAIT_MS);
}

static void epoll_file(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0)
		return;
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	epoll_wait(epoll, &event, 1, WAIT_MS);
	close(epoll);
}

static int read_by_read(int fd, struct call *call)
{
	ssize_t ret = read(fd, call_records(call),
			   call->nr_records * sizeof(struct twheel_record));

	return ret < 0 ? -errno : ret;
}

static bool read_records(struct worker *worker, const struct held *held)
{
	struct call *call = call_begin(&worker->log, held->number, 0,
				       1 + draw(worker, CALL_RECORDS_MAX));
	unsigned int nr_read = 0, way = draw(worker, worker->has_ring ? 5 : 4);
	int ret;

	if (!call)
		return false;
	if (way == 1)
		poll_file(held->fd);
	if (way == 2 && !worker->is_cramped)
		epoll_file(held->fd);
	call_go(call, CALL_DEVICE);
	if (way == 3)
		ret = enter(call, held->fd, 1 + draw(worker, call->nr_records),
			    draw(worker, WAIT_MS * MILLISECOND_NS), &nr_read);
	else if (way == 4)
		ret = ring_read(worker, held->fd, call_records(call),
				call->nr_records * sizeof(struct twheel_record));
	else
		ret = read_by_read(held->fd, call);
	if (way != 3 && ret > 0)
		nr_read = ret / sizeof(struct twheel_record);
	call_end(worker->log, call, ret, nr_read);
	return true;
}

static void raise_to(_Atomic uint64_t *highest, uint64_t value)
{
	uint64_t old = *highest;

	while (old < value && !atomic_compare_exchange_weak(highest, &old, value))
		;
}

/*
 * An event waits for the highest time that its word has had. If that is not soon, nobody sees that
 * the event is lost. So only those of the last word wait for long, and some for ever.
 */
static uint64_t draw_value(struct worker *worker, const struct file *file, uint32_t word)
{
	uint64_t delay_ns = draw_delay_ns(worker);

	if (word < WORDS_MAX - 1)
		delay_ns %= SECOND_NS;
	else if (!draw(worker, 32))
		return NEVER_NS;
	return clock_ns(file->clock) + delay_ns;
}

static bool store_word(struct worker *worker, const struct held *held)
{
	struct file *file = &ledger->files[held->number];
	uint32_t word = draw_word(worker);
	uint64_t value = draw_value(worker, file, word);
	struct call *call;

	call = call_begin(&worker->log, held->number, 0, 0);
	if (!call)
		return false;
	call->word = word;
	call->value = value;
	raise_to(&file->highest_ns[word], value);
	call_go(call, CALL_STORE);
	__atomic_store_n(&held->words[word], value, __ATOMIC_RELEASE);
	call_end(worker->log, call, 0, 0);
	return true;
}

static bool store_words(struct worker *worker, const struct held *held)
{
	unsigned int nr = held->words ? 1 + draw(worker, 8) : 0;

	while (nr--)
		if (!store_word(worker, held))
			return false;
	return true;
}

/* --- files ---------------------------------------------------------------------------- */

/* A new file takes the place of another one, whose descriptor is closed, when there are many. */
static void keep_file(struct worker *worker, const struct held *held)
{
	unsigned int place = worker->nr_held;

	if (place == HELD_MAX) {
		place = draw(worker, HELD_MAX);
		drop_file(&worker->held[place]);
	} else {
		worker->nr_held++;
	}
	worker->held[place] = *held;
}

static void open_own(struct worker *worker)
{
	struct held held;

	if (!open_file(&held, &worker->chance))
		keep_file(worker, &held);
}

static void close_any(struct worker *worker)
{
	unsigned int place = draw(worker, worker->nr_held);

	if (worker->nr_held < 2)
		return;
	drop_file(&worker->held[place]);
	worker->held[place] = worker->held[--worker->nr_held];
}

/* The words may be of use for longer than the file. */
static void unmap_any(struct worker *worker)
{
	struct held *held = &worker->held[draw(worker, worker->nr_held)];

	if (!held->words)
		return;
	munmap(held->words, ledger->files[held->number].nr_words * sizeof(uint64_t));
	ledger->unmapped++;
	map_words(held);
}

static void send_any(struct worker *worker)
{
	send_file(market[0], &worker->held[draw(worker, worker->nr_held)]);
}

static void take_any(struct worker *worker)
{
	struct held held;

	if (!take_file(market[1], &held))
		return;
	ledger->passed++;
	map_words(&held);
	keep_file(worker, &held);
}

static void duplicate(struct worker *worker)
{
	struct held *held = &worker->held[draw(worker, worker->nr_held)];
	int fd = fcntl(held->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return;
	close(held->fd);
	held->fd = fd;
	ledger->duplicated++;
}

static void list_events(const struct held *held)
{
	struct twheel_entry entries[16];
	struct twheel_list list = {
		.size = sizeof(list),
		.nr = 16,
		.entry_size = sizeof(entries[0]),
		.entries = (uintptr_t)entries,
	};
	unsigned int i;

	for (i = 0; i < 8; i++)
		if (ioctl(held->fd, TWHEEL_IOC_LIST, &list) <= 0)
			return;
}

static void change_cpu(struct worker *worker)
{
	cpu_set_t cpus;
	long nr = sysconf(_SC_NPROCESSORS_CONF);

	CPU_ZERO(&cpus);
	CPU_SET(draw(worker, nr), &cpus);
	/* It may be offline. */
	if (!draw(worker, 4) || sched_setaffinity(0, sizeof(cpus), &cpus)) {
		memset(&cpus, 0xff, sizeof(cpus));
		sched_setaffinity(0, sizeof(cpus), &cpus);
	}
}

/* --- roles ---------------------------------------------------------------------------- */

enum action {
	RUN, TURN, READ, STORE, OPEN, CLOSE, UNMAP, SEND, TAKE, DUPLICATE, FORK, LIST, CPU, PAUSE,
	NR_ACTIONS,
};

/* How often, in proportion, it does each action, and runs each command. */
struct role {
	unsigned char actions[NR_ACTIONS];
	unsigned char commands[NR_COMMANDS];
};

#define RARE_ACTIONS								\
	[OPEN] = 2, [CLOSE] = 2, [UNMAP] = 2, [SEND] = 6, [TAKE] = 6, [DUPLICATE] = 3,	\
	[FORK] = 1, [LIST] = 2, [CPU] = 2, [PAUSE] = 2

static const struct role armer = {
	{ [RUN] = 60, [TURN] = 20, [READ] = 10, [STORE] = 20, RARE_ACTIONS },
	{ [ADD] = 10, [MODIFY] = 2, [CANCEL] = 2, [COMPLETE] = 1, [WATCH] = 1, [SIGNAL] = 1,
	  [QUERY] = 1 },
};

static const struct role canceller = {
	{ [RUN] = 60, [TURN] = 10, [READ] = 10, [STORE] = 5, RARE_ACTIONS },
	{ [ADD] = 3, [MODIFY] = 2, [CANCEL] = 10, [COMPLETE] = 2, [WATCH] = 1, [SIGNAL] = 1,
	  [QUERY] = 1 },
};

static const struct role modifier = {
	{ [RUN] = 60, [TURN] = 10, [READ] = 10, [STORE] = 60, RARE_ACTIONS },
	{ [ADD] = 3, [MODIFY] = 10, [CANCEL] = 1, [QUERY] = 3 },
};

static const struct role signaller = {
	{ [RUN] = 60, [TURN] = 20, [READ] = 10, [STORE] = 5, RARE_ACTIONS },
	{ [ADD] = 4, [CANCEL] = 1, [COMPLETE] = 4, [WATCH] = 4, [SIGNAL] = 8, [QUERY] = 1 },
};

static const struct role reader = {
	{ [RUN] = 10, [TURN] = 20, [READ] = 100, [STORE] = 5, RARE_ACTIONS },
	{ [ADD] = 2, [MODIFY] = 1, [CANCEL] = 1 },
};

static const struct role cramped = {
	{ [RUN] = 60, [TURN] = 20, [READ] = 20, [STORE] = 5, [PAUSE] = 2 },
	{ [ADD] = 10, [MODIFY] = 2, [CANCEL] = 2, [COMPLETE] = 1, [WATCH] = 1, [SIGNAL] = 1 },
};

#define NR_ROLES	5

static const struct role *const roles[NR_ROLES] = {
	&armer, &canceller, &modifier, &signaller, &reader,
};

static unsigned int draw_weighted(struct worker *worker, const unsigned char *weights,
				  unsigned int nr)
{
	unsigned int sum = 0, i, at;

	for (i = 0; i < nr; i++)
		sum += weights[i];
	at = draw(worker, sum);
	for (i = 0; at >= weights[i]; i++)
		at -= weights[i];
	return i;
}

static void draw_commands(struct worker *worker, const struct held *held)
{
	unsigned int nr = 1 + draw(worker, draw(worker, 4) ? 4 : CALL_CMDS_MAX);

	worker->nr_cmds = 0;
	do {
		commands[draw_weighted(worker, worker->role->commands, NR_COMMANDS)](worker, held);
	} while (worker->nr_cmds < nr);
}

static void fork_child(struct worker *worker);

/* Returns false when there are no logs any more. */
static bool act(struct worker *worker)
{
	const struct held *held = &worker->held[draw(worker, worker->nr_held)];

	switch (draw_weighted(worker, worker->role->actions, NR_ACTIONS)) {
	case RUN:
		draw_commands(worker, held);
		return run_commands(worker, held, 0);
	case TURN:
		draw_commands(worker, held);
		return run_commands(worker, held, 1 + draw(worker, CALL_RECORDS_MAX));
	case READ:
		return read_records(worker, held);
	case STORE:
		return store_words(worker, held);
	case OPEN:
		open_own(worker);
		break;
	case CLOSE:
		close_any(worker);
		break;
	case UNMAP:
		unmap_any(worker);
		break;
	case SEND:
		send_any(worker);
		break;
	case TAKE:
		take_any(worker);
		break;
	case DUPLICATE:
		duplicate(worker);
		break;
	case FORK:
		fork_child(worker);
		break;
	case LIST:
		list_events(held);
		break;
	case CPU:
		change_cpu(worker);
		break;
	case PAUSE:
		usleep(draw(worker, 2000));
		break;
	}
	return true;
}

/* --- a life --------------------------------------------------------------------------- */

/* Main reads them; a socket has room for few. */
static void hand_in_files(struct worker *worker)
{
	unsigned int i;

	for (i = 0; i < worker->nr_held; i++) {
		if (ledger->files[worker->held[i].number].fd >= 0)
			continue;
		while (!send_file(hand_in[0], &worker->held[i]))
			usleep(1000);
	}
}

static void live(struct worker *worker, unsigned int turns)
{
	while (!ledger->stop && turns--)
		if (!act(worker))
			break;
	if (!worker->is_child)
		hand_in_files(worker);
	ledger->logs[worker->log].pid = 0;
}

/* It has all of its parent's files, but not its threads, and ends soon. */
static void fork_child(struct worker *worker)
{
	pid_t pid;
	int log;

	if (worker->is_child)
		return;
	pid = fork();
	if (pid) {
		ledger->forked += pid > 0;
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	log = log_take();
	if (log < 0)
		_exit(0);
	worker->log = log;
	worker->chance += getpid();
	worker->data = (uint64_t)log << 32;
	worker->is_child = true;
	worker->has_ring = false;
	live(worker, CHILD_TURNS);
	_exit(0);
}

static void hold_common_files(struct worker *worker)
{
	unsigned int i;

	for (i = 0; i < nr_files() && i < HELD_MAX - 2; i++) {
		struct held held = { .number = i };

		held.fd = fcntl(ledger->files[i].fd, F_DUPFD_CLOEXEC, 0);
		if (held.fd < 0 || ledger->files[i].fd < 0)
			continue;
		map_words(&held);
		worker->held[worker->nr_held++] = held;
	}
}

static const struct worker_options *options;

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	/* If that fails, this process is as any other one. */
	if (write(fd, text, strlen(text)) < 0)
		errno = 0;
	close(fd);
}

static void enter_cgroup(const struct worker *worker)
{
	log_settle(worker->log);
	settle_memory();
	write_text(options->cgroup, "0");
}

static bool make_ring(struct worker *worker)
{
	bool made;

	cpus_lock();
	made = !io_uring_queue_init(RING_ENTRIES, &worker->ring, 0);
	cpus_unlock();
	return made;
}

static void *thread(void *argument)
{
	unsigned int number = (uintptr_t)argument;
	struct worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return NULL;
	memset(worker, 0, sizeof(*worker));
	worker->log = log_take();
	if (worker->log < 0)
		return NULL;
	worker->chance = options->seed + number;
	worker->data = (uint64_t)worker->log << 32;
	worker->is_cramped = options->cgroup;
	worker->role = worker->is_cramped ? &cramped : roles[draw(worker, NR_ROLES)];
	hold_common_files(worker);
	if (worker->is_cramped)
		enter_cgroup(worker);
	else
		worker->has_ring = make_ring(worker);
	if (worker->nr_held)
		live(worker, -1);
	return NULL;
}

/* A call that waits is interrupted: that is all. */
static void do_nothing(int signal)
{
	(void)signal;
}

void work(const struct worker_options *chosen)
{
	struct sigaction action = { .sa_handler = do_nothing };
	pthread_t threads[16];
	unsigned int i;

	options = chosen;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGUSR1, &action, NULL);
	signal(SIGCHLD, SIG_IGN);
	if (options->fails)
		write_text("/proc/self/make-it-fail", "1");
	for (i = 1; i < options->nr_threads; i++)
		if (pthread_create(&threads[i], NULL, thread, (void *)(uintptr_t)i))
			break;
	thread(NULL);
	while (i-- > 1)
		pthread_join(threads[i], NULL);
	exit(0);
}
