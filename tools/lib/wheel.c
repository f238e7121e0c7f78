// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Wheels: opening the device, and what it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "private.h"

#define DEVICE_PATH	"/dev/twheel"

/* Ask the device what it is.  Returns 0 or an errno. */
static int get_info(struct twheel *wheel)
{
	wheel->info.size = sizeof(wheel->info);
	if (ioctl(wheel->fd, TWHEEL_IOC_INFO, &wheel->info))
		return errno == ENOTTY ? -EPROTO : -errno;
	return wheel->info.abi == TWHEEL_ABI_VERSION ? 0 : -EPROTO;
}

static int configure(struct twheel *wheel, const struct twheel_config *wanted)
{
	struct twheel_config config = *wanted;

	config.size = sizeof(config);
	if (ioctl(wheel->fd, TWHEEL_IOC_CONFIG, &config))
		return -errno;
	return config.nr_deadlines ? words_map(wheel, config.nr_deadlines) : 0;
}

int twheel_open_path(struct twheel **wheel, const char *path,
		     const struct twheel_config *config)
{
	struct twheel *made = calloc(1, sizeof(*made));
	int ret = 0;

	if (!made)
		return -ENOMEM;
	pthread_mutex_init(&made->words_mutex, NULL);
	made->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (made->fd < 0)
		ret = -errno;
	if (!ret && config)
		ret = configure(made, config);
	/* Afterwards, as it tells the limit that was asked for. */
	if (!ret)
		ret = get_info(made);
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
	words_unmap(wheel);
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
