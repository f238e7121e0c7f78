// SPDX-License-Identifier: GPL-2.0
/* Trees of files: removing, syncing and copying them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tree.h"

#define COPY_SIZE	(1u << 20)

int tree_open(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

int tree_each(int dir_fd, int (*each)(int dir_fd, const char *name, void *context),
	      void *context)
{
	int fd = tree_open(dir_fd, "."), ret = 0;
	const struct dirent *file;
	DIR *list;

	if (fd < 0)
		return fd;
	list = fdopendir(fd);
	if (!list) {
		close(fd);
		return -ENOMEM;
	}
	while (!ret && (errno = 0, file = readdir(list)))
		if (strcmp(file->d_name, ".") && strcmp(file->d_name, ".."))
			ret = each(dir_fd, file->d_name, context);
	if (!ret && errno)
		ret = -errno;
	closedir(list);
	return ret;
}

/* --- removing ----------------------------------------------------------------------------- */

static int remove_one(int dir_fd, const char *name, void *context)
{
	(void)context;
	return tree_remove(dir_fd, name);
}

static int remove_dir(int dir_fd, const char *name)
{
	int fd = tree_open(dir_fd, name), ret;

	if (fd < 0)
		return fd;
	ret = tree_each(fd, remove_one, NULL);
	close(fd);
	if (!ret && unlinkat(dir_fd, name, AT_REMOVEDIR) && errno != ENOENT)
		ret = -errno;
	return ret;
}

int tree_remove(int dir_fd, const char *name)
{
	if (!unlinkat(dir_fd, name, 0) || errno == ENOENT)
		return 0;
	return errno == EISDIR ? remove_dir(dir_fd, name) : -errno;
}

/* --- writing and syncing ------------------------------------------------------------------ */

static int write_all(int fd, const char *bytes, size_t len)
{
	ssize_t written;

	while (len) {
		written = write(fd, bytes, len);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		bytes += written;
		len -= written;
	}
	return 0;
}

/* Sync a file, and close it. @ret: an earlier error, or 0. */
static int sync_and_close(int fd, int ret)
{
	if (!ret && fsync(fd))
		ret = -errno;
	if (close(fd) && !ret)
		ret = -errno;
	return ret;
}

static int make_file(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? -errno : fd;
}

int tree_write_file(int dir_fd, const char *name, const void *bytes, size_t len)
{
	int fd = make_file(dir_fd, name);

	return fd < 0 ? fd : sync_and_close(fd, write_all(fd, bytes, len));
}

int tree_sync_file(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : sync_and_close(fd, 0);
}

/* --- copying ------------------------------------------------------------------------------ */

/**
 * struct copy - a copy of a directory
 * @to_fd: the new directory.
 * @bytes: what was copied, in bytes.
 * @stop: is set when the copy is to end.
 */
struct copy {
	int to_fd;
	uint64_t *bytes;
	const atomic_bool *stop;
};

static int copy_bytes(int from, int to, const struct copy *copy)
{
	char *buffer = malloc(COPY_SIZE);
	int ret = buffer ? 0 : -ENOMEM;
	ssize_t got;

	while (!ret) {
		got = read(from, buffer, COPY_SIZE);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			ret = got ? -errno : 0;
			break;
		}
		ret = *copy->stop ? -EINTR : write_all(to, buffer, got);
		*copy->bytes += got;
	}
	free(buffer);
	return ret;
}

static int copy_file(int from_fd, const char *name, const struct copy *copy)
{
	int from = openat(from_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), to, ret;

	if (from < 0)
		return -errno;
	to = make_file(copy->to_fd, name);
	ret = to < 0 ? to : sync_and_close(to, copy_bytes(from, to, copy));
	close(from);
	return ret;
}

static int copy_one(int from_fd, const char *name, void *context)
{
	const struct copy *copy = context;

	return tree_copy(from_fd, copy->to_fd, name, copy->bytes, copy->stop);
}

static int copy_dir(int from_fd, const char *name, const struct copy *copy)
{
	struct copy inner = *copy;
	int from, ret;

	if (mkdirat(copy->to_fd, name, 0700))
		return -errno;
	from = tree_open(from_fd, name);
	if (from < 0)
		return from;
	inner.to_fd = tree_open(copy->to_fd, name);
	ret = inner.to_fd;
	if (ret >= 0)
		ret = sync_and_close(inner.to_fd, tree_each(from, copy_one, &inner));
	close(from);
	return ret;
}

int tree_copy(int from_fd, int to_fd, const char *name, uint64_t *bytes,
	      const atomic_bool *stop)
{
	const struct copy copy = { .to_fd = to_fd, .bytes = bytes, .stop = stop };
	struct stat stat;

	if (fstatat(from_fd, name, &stat, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (S_ISDIR(stat.st_mode))
		return copy_dir(from_fd, name, &copy);
	return S_ISREG(stat.st_mode) ? copy_file(from_fd, name, &copy) : -EINVAL;
}
