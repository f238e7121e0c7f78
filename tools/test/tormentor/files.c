// SPDX-License-Identifier: GPL-2.0
/* Files of the device: see files.h. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chance.h"
#include "files.h"
#include "ledger.h"

#define DEVICE		"/dev/twheel"
/* So few that files are full at times. */
#define SMALL_FILE	30
#define WAKE_DELAY_NS	(2 * MILLISECOND_NS)

int market[2] = { -1, -1 }, hand_in[2] = { -1, -1 };

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };

/* --- opening -------------------------------------------------------------------------- */

static int open_configured(const struct file *file, struct twheel_config *config)
{
	int flags = O_RDWR | O_CLOEXEC | (file->is_blocking ? 0 : O_NONBLOCK);
	int fd = open(DEVICE, flags);

	if (fd < 0)
		return -errno;
	config->size = sizeof(*config);
	config->clockid = file->clock;
	config->nr_deadlines = file->nr_words;
	/* A CPU that the caller may not use any more is refused. */
	if (ioctl(fd, TWHEEL_IOC_CONFIG, config)) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

/* The fields of a file are there before another process learns of its number. */
static int open_like(struct held *held, const struct file *like, struct twheel_config *config)
{
	struct file *file;

	if (ledger->nr_files >= FILES_MAX)
		return -ENFILE;
	held->fd = open_configured(like, config);
	if (held->fd < 0)
		return held->fd;
	held->number = ledger->nr_files++;
	if (held->number >= FILES_MAX) {
		close(held->fd);
		return -ENFILE;
	}
	file = &ledger->files[held->number];
	file->fd = -1;
	file->clock = like->clock;
	file->nr_words = like->nr_words;
	file->is_blocking = like->is_blocking;
	map_words(held);
	return 0;
}

static void draw_config(struct twheel_config *config, uint64_t *chance)
{
	memset(config, 0, sizeof(*config));
	if (one_in(chance, 3))
		config->max_events = SMALL_FILE;
	if (one_in(chance, 3)) {
		config->wake_count = 2 + random_below(chance, 16);
		config->wake_delay_ns = WAKE_DELAY_NS;
	}
	if (one_in(chance, 4)) {
		config->flags = TWHEEL_CONFIG_CPU;
		config->cpu = sched_getcpu();
	}
}

int open_file(struct held *held, uint64_t *chance)
{
	struct file like = {
		.clock = clocks[random_below(chance, 3)],
		.nr_words = one_in(chance, 2) ? WORDS_MAX : 0,
		.is_blocking = one_in(chance, 3),
	};
	struct twheel_config config;

	draw_config(&config, chance);
	return open_like(held, &like, &config);
}

/* On each clock, one with words and one without; of the latter, one blocks. */
unsigned int open_common_files(uint64_t *chance)
{
	struct twheel_config config;
	struct held held;
	unsigned int i;

	for (i = 0; i < 6; i++) {
		struct file like = {
			.clock = clocks[i % 3],
			.nr_words = i < 3 ? WORDS_MAX : 0,
			.is_blocking = i == 4,
		};

		draw_config(&config, chance);
		config.flags = 0;
		config.cpu = 0;
		if (open_like(&held, &like, &config))
			break;
		ledger->files[held.number].fd = held.fd;
	}
	return i;
}

void map_words(struct held *held)
{
	size_t bytes = ledger->files[held->number].nr_words * sizeof(uint64_t);
	void *map = MAP_FAILED;

	if (bytes)
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, held->fd, 0);
	held->words = map == MAP_FAILED ? NULL : map;
	/* Now, as it takes memory: see settle.h. */
	if (held->words)
		__atomic_load_n(held->words, __ATOMIC_RELAXED);
}

void drop_file(struct held *held)
{
	close(held->fd);
	if (held->words)
		munmap(held->words, ledger->files[held->number].nr_words * sizeof(uint64_t));
	held->words = NULL;
}

/* --- passing -------------------------------------------------------------------------- */

union control {
	char buffer[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int make_sockets(void)
{
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, market) ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, hand_in))
		return -errno;
	return 0;
}

void close_sockets(void)
{
	close(market[0]);
	close(market[1]);
	close(hand_in[0]);
	close(hand_in[1]);
}

bool send_file(int socket, const struct held *held)
{
	uint32_t number = held->number;
	struct iovec data = { &number, sizeof(number) };
	union control control = { .buffer = { 0 } };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control.buffer,
		.msg_controllen = sizeof(control.buffer),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &held->fd, sizeof(int));
	return sendmsg(socket, &message, MSG_DONTWAIT) == sizeof(number);
}

/* Without memory, the number can come without its file. */
bool take_file(int socket, struct held *held)
{
	struct iovec data = { &held->number, sizeof(held->number) };
	union control control;
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control.buffer,
		.msg_controllen = sizeof(control.buffer),
	};
	struct cmsghdr *header;

	if (recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof(held->number))
		return false;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return false;
	memcpy(&held->fd, CMSG_DATA(header), sizeof(int));
	held->words = NULL;
	return true;
}
