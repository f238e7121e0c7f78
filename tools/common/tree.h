/* SPDX-License-Identifier: GPL-2.0 */
/* Trees of files: removing, syncing and copying them. No symbolic link is followed. */
#ifndef COMMON_TREE_H
#define COMMON_TREE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Open a directory of another one. Returns a file descriptor or a negative errno. */
int tree_open(int dir_fd, const char *name);

/*
 * Call @each for each name in a directory, but "." and "..", until it returns an error.
 * Returns 0 or a negative errno.
 */
int tree_each(int dir_fd, int (*each)(int dir_fd, const char *name, void *context),
	      void *context);

/* Remove a file, or a directory with all that is in it. It is no error if there is none. */
int tree_remove(int dir_fd, const char *name);

/* Create or replace a file with these bytes, and sync it. Returns 0 or a negative errno. */
int tree_write_file(int dir_fd, const char *name, const void *bytes, size_t len);

/* Sync a file of a directory. Returns 0 or a negative errno. */
int tree_sync_file(int dir_fd, const char *name);

/*
 * Copy a file, or a directory with all that is in it, and sync the copy. Adds what is copied
 * to @bytes. When *@stop is set, it ends with -EINTR. Returns 0 or a negative errno.
 */
int tree_copy(int from_fd, int to_fd, const char *name, uint64_t *bytes,
	      const atomic_bool *stop);

#endif /* COMMON_TREE_H */
