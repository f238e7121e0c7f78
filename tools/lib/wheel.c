// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Wheels: opens, configures and closes the device.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "private.h"

#define DEVICE_PATH	"/dev/twheel"

int twheel__ioctl(const struct twheel *wheel, unsigned long request, void *argument)
{
	int ret;

	do {
		ret = ioctl(wheel->fd, request, argument);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : ret;
}

/*
 * Read the device's info.  Returns 0 or an errno.  Another device refuses the call with any
 * error, and the device itself never does.
 */
static int get_info(struct twheel *wheel)
{
	wheel->info.size = sizeof(wheel->info);
	if (twheel__ioctl(wheel, TWHEEL_IOC_INFO, &wheel->info))
		return -EPROTO;
	return wheel->info.abi == TWHEEL_ABI_VERSION ? 0 : -EPROTO;
}

static int configure(struct twheel *wheel, const struct twheel_config *wanted)
{
	struct twheel_config config = *wanted;
	int ret;

	config.size = sizeof(config);
	ret = twheel__ioctl(wheel, TWHEEL_IOC_CONFIG, &config);
	if (!ret && config.nr_deadlines)
		ret = twheel__words_map(wheel, config.nr_deadlines);
	wheel->clock = config.clockid;
	return ret;
}

/* Open and configure the device.  Returns 0 or an errno.  twheel_close() undoes it. */
static int begin(struct twheel *wheel, const char *path, const struct twheel_config *config)
{
	int ret;

	wheel->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (wheel->fd < 0)
		return -errno;
	ret = get_info(wheel);
	if (ret || !config)
		return ret;
	ret = configure(wheel, config);
	/* Read the info again: it has the configured limit now. */
	return ret ? ret : get_info(wheel);
}

int twheel_open_path(struct twheel **wheel, const char *path,
		     const struct twheel_config *config)
{
	struct twheel *made = calloc(1, sizeof(*made));
	int ret;

	*wheel = NULL;
	if (!made)
		return -ENOMEM;
	pthread_mutex_init(&made->words_mutex, NULL);
	made->clock = CLOCK_MONOTONIC;
	ret = begin(made, path, config);
	if (ret)
		twheel_close(made);
	else
		*wheel = made;
	return ret;
}

int twheel_open(struct twheel **wheel, const struct twheel_config *config)
{
	return twheel_open_path(wheel, DEVICE_PATH, config);
}

void twheel_close(struct twheel *wheel)
{
	if (!wheel)
		return;
	twheel__words_unmap(wheel);
	if (wheel->fd >= 0)
		close(wheel->fd);
	pthread_mutex_destroy(&wheel->words_mutex);
	free(wheel);
}

int twheel_fd(const struct twheel *wheel)
{
	return wheel->fd;
}

const struct twheel_info *twheel_info(const struct twheel *wheel)
{
	return &wheel->info;
}

bool twheel_has(const struct twheel *wheel, __u64 features)
{
	return (wheel->info.features & features) == features;
}

__u64 twheel_now_ns(const struct twheel *wheel)
{
	struct timespec now;

	clock_gettime(wheel->clock, &now);
	return now.tv_sec * TWHEEL_SECOND + now.tv_nsec;
}
