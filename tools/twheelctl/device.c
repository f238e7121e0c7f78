// SPDX-License-Identifier: GPL-2.0
/*
 * The device: one open file of /dev/twheel.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "common/util.h"
#include "twheelctl/device.h"

/* What the user can do: lines below the message. */
static const char *open_advice(int error)
{
	switch (error) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return "\nThe module twheel is not loaded. As root:\n"
		       "    modprobe twheel\n"
		       "If it is not installed, in the sources: \"make deb\" builds the package\n"
		       "twheel-dkms for Debian, \"make modules_install\" installs it elsewhere.";
	case EACCES:
	case EPERM:
		return "\nRun this as root, or as a member of the group twheel:\n"
		       "    adduser USER twheel\n"
		       "A user is a member from the next login on.";
	default:
		return "";
	}
}

static int check_abi(const struct device *dev, const char *path)
{
	if (dev->info.abi == TWHEEL_ABI_VERSION)
		return 0;
	warnx("%s has interface version %u, not %u: use the module's own twheelctl",
	      path, dev->info.abi, TWHEEL_ABI_VERSION);
	return -EPROTO;
}

static int get_info(struct device *dev, const char *path)
{
	int error;

	dev->info = (struct twheel_info){ .size = sizeof(dev->info) };
	if (ioctl(dev->fd, TWHEEL_IOC_INFO, &dev->info) >= 0)
		return check_abi(dev, path);
	error = errno;
	if (error == ENOTTY)
		warnx("%s is not a twheel device; usually that is %s", path,
		      DEVICE_PATH);
	else
		warnx("%s: the INFO ioctl failed: %s", path, strerror(error));
	return -error;
}

/* Open a device and ask what it is. */
int device_open(struct device *dev, const char *path)
{
	int ret;

	dev->words = NULL;
	dev->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (dev->fd < 0) {
		ret = -errno;
		warnx("cannot open %s: %s%s", path, strerror(-ret),
		      open_advice(-ret));
		return ret;
	}
	ret = get_info(dev, path);
	if (ret)
		close(dev->fd);
	return ret;
}

/* Maps the deadlines. They stay mapped until the program ends. */
static int map_words(struct device *dev, __u32 nr)
{
	void *words = mmap(NULL, nr * sizeof(*dev->words), PROT_READ | PROT_WRITE,
			   MAP_SHARED, dev->fd, 0);

	if (words == MAP_FAILED)
		return -errno;
	dev->words = words;
	return 0;
}

/*
 * Set the context up, and map its deadlines. Read the device's info again, because
 * the limit of events may have changed.
 */
int device_configure(struct device *dev, const struct twheel_config *config)
{
	if (ioctl(dev->fd, TWHEEL_IOC_CONFIG, config) < 0 ||
	    ioctl(dev->fd, TWHEEL_IOC_INFO, &dev->info) < 0)
		return -errno;
	return config->nr_deadlines ? map_words(dev, config->nr_deadlines) : 0;
}

/*
 * A WATCH without an id belongs to the ADD before it in the same call. Only the first
 * @done commands were run: give the WATCHes after them, which go into another call, the id
 * of their ADD.
 */
static void name_add(struct twheel_cmd *cmds, size_t done, size_t nr)
{
	size_t add = done;

	while (add && cmds[add - 1].op != TWHEEL_OP_ADD)
		add--;
	if (!add)
		return;
	for (size_t i = done; i < nr && cmds[i].op != TWHEEL_OP_ADD; i++)
		if (cmds[i].op == TWHEEL_OP_WATCH && !cmds[i].id)
			cmds[i].id = cmds[add - 1].id;
}

/*
 * Run all of some commands, in order.
 *
 * A signal can interrupt the kernel between two commands: submit the rest again.
 */
int device_submit(struct device *dev, struct twheel_cmd *cmds, size_t nr)
{
	size_t done = 0;

	while (done < nr) {
		struct twheel_submit submit = {
			.size = sizeof(submit),
			.cmds = (unsigned long)(cmds + done),
			.nr = nr - done,
			.cmd_size = sizeof(*cmds),
		};
		int ret = ioctl(dev->fd, TWHEEL_IOC_SUBMIT, &submit);

		if (ret < 0 && errno != EINTR)
			return -errno;
		if (ret == 0 || ret > (int)(nr - done))
			return -EPROTO;
		if (ret < 0)
			continue;
		done += ret;
		name_add(cmds, done, nr);
	}
	return 0;
}

/*
 * Read the records that are ready.
 *
 * Return: the number of records, 0 if none is ready, or a negative errno.
 */
int device_read(struct device *dev, struct twheel_record *records, size_t nr)
{
	ssize_t ret = read(dev->fd, records, nr * sizeof(*records));

	if (ret < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (ret == 0 || ret % sizeof(*records))
		return -EPROTO;
	return ret / sizeof(*records);
}

/*
 * List the next events of the context.
 *
 * @cursor: 0 at first; later the value of the previous call.
 *
 * Return: the number of events, 0 at the end, or a negative errno.
 */
int device_list(struct device *dev, struct twheel_entry *entries, size_t nr,
		__u64 *cursor)
{
	struct twheel_list list = {
		.size = sizeof(list),
		.nr = nr,
		.entry_size = sizeof(*entries),
		.cursor = *cursor,
		.entries = (unsigned long)entries,
	};
	int ret = ioctl(dev->fd, TWHEEL_IOC_LIST, &list);

	*cursor = list.cursor;
	return ret < 0 ? -errno : ret;
}

/* Returns whether the text has a line with this name. */
static bool parse_counter(const char *text, const char *name, __u64 *value)
{
	size_t len = strlen(name);
	const char *line = text;

	while (line) {
		if (!strncmp(line, name, len) &&
		    sscanf(line + len, ":\t%llu", value) == 1)
			return true;
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	return false;
}

static int parse_counters(const char *text, struct counters *counters)
{
	const struct {
		const char *name;
		__u64 *value;
	} fields[] = {
		{ "added",	&counters->added },
		{ "armed",	&counters->armed },
		{ "ready",	&counters->ready },
		{ "finished",	&counters->finished },
		{ "cancelled",	&counters->cancelled },
		{ "completed",	&counters->completed },
		{ "records",	&counters->records },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (parse_counter(text, fields[i].name, fields[i].value))
			continue;
		warnx("fdinfo of the device has no line \"%s:\"", fields[i].name);
		return -EPROTO;
	}
	/* Only a context that shares deadlines has these lines. */
	counters->deadlines = 0;
	counters->postponed = 0;
	parse_counter(text, "deadlines", &counters->deadlines);
	parse_counter(text, "postponed", &counters->postponed);
	return 0;
}

/*
 * Read the context's counters from fdinfo.
 *
 * One read() returns all of them, so that they belong together.
 */
int device_counters(struct device *dev, struct counters *counters)
{
	char path[64], text[4096];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", dev->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (len < 0) {
		len = -errno;
		warn("cannot read %s", path);
	} else {
		text[len] = '\0';
	}
	if (fd >= 0)
		close(fd);
	return len < 0 ? len : parse_counters(text, counters);
}
