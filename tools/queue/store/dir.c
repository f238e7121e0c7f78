// SPDX-License-Identifier: GPL-2.0
/*
 * The directory of a store: its marker, its lock, its damage mark, its witness.
 *
 *	twheelq		the marker: this is a store, and its version
 *	twheelq.new	the same, while the store is being created
 *	synced		the witness: the number of the last change that was synced
 *	damaged		the damage mark: the damage that was found while the store was in use;
 *			or a repair was started and has not ended
 *	reserve		the ballast, see space.c
 *	backup		this is a backup that was never used, see backup.c
 *	backups/	backups of this store
 *	db/		RocksDB's files
 *
 * A directory that has no marker and is not empty belongs to something else: nothing in it is
 * changed. The lock is flock() of the directory itself, held while the store is open.
 *
 * The witness is written after each sync, with one system call and no sync of its own. It is
 * never newer than the log, and after a crash of the process alone it is exact. It shows that
 * synced changes are missing where RocksDB sees nothing wrong, for example when the log was
 * cut at the end of a record.
 *
 * A daemon whose files somebody removes or replaces sees no error. So db/ and RocksDB's newest log
 * are looked for before each promise: store_dir_has_files().
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tree.h"
#include "queue/store/dir.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/state.h"

#define MARKER		"twheelq"
#define MARKER_NEW	"twheelq.new"
#define WITNESS		"synced"
#define DAMAGED		"damaged"
#define BACKUP		"backup"

/* --- the marker --------------------------------------------------------------------------- */

/* Returns the version of a marker; 0, the file is not a marker; or a negative errno. */
static int marker_version(const struct store *store, const char *name)
{
	char text[32] = "", whole[32];
	int fd = openat(store->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int version = 0;
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len < 0)
		return -EIO;
	if (sscanf(text, "twheelq store %9d", &version) != 1 || version < 1)
		return 0;
	snprintf(whole, sizeof(whole), "twheelq store %d\n", version);
	return strcmp(text, whole) ? 0 : version;
}

/* Write a marker, and sync it and its directory. */
static int make_marker(int dir_fd, const char *name)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "twheelq store %d\n", STORE_VERSION);
	int ret = tree_write_file(dir_fd, name, text, len);

	return !ret && fsync(dir_fd) ? -errno : ret;
}

int store_dir_made(struct store *store)
{
	if (renameat(store->dir_fd, MARKER_NEW, store->dir_fd, MARKER) || fsync(store->dir_fd))
		return -errno;
	return 0;
}

/* --- the damage mark ---------------------------------------------------------------------- */

bool store_dir_mark(struct store *store, const char *what)
{
	int fd = openat(store->dir_fd, DAMAGED,
			O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool marked = fd >= 0 && dprintf(fd, "%s\n", what) >= 0 && !fsync(fd) &&
		!fsync(store->dir_fd);

	if (!marked)
		store_say(store, LOG_ERR, "%s/%s: cannot be written: %m", store->dir, DAMAGED);
	if (fd >= 0)
		close(fd);
	return marked;
}

/* A mark that cannot be opened for one of these may say anything, or not be there. */
static bool is_temporary(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EACCES;
}

/* Returns 1 if there is a mark, 0 if not, or a negative errno. One that is damaged is empty. */
static int read_mark(const struct store *store, char *what, size_t room)
{
	int fd = openat(store->dir_fd, DAMAGED, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t len = -1;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && is_temporary(errno)) {
		len = -errno;
		store_say(store, LOG_ERR, "%s/%s: cannot be read: %m", store->dir, DAMAGED);
		return (int)len;
	}
	if (fd >= 0) {
		len = read(fd, what, room - 1);
		close(fd);
	}
	what[len < 0 ? 0 : len] = '\0';
	what[strcspn(what, "\n")] = '\0';
	return 1;
}

int store_dir_is_copied(const struct store *store)
{
	char what[80];
	int ret = read_mark(store, what, sizeof(what));

	return ret > 0 ? !strcmp(what, MARK_COPIED) : ret;
}

/* A mark that is damaged may be one of an unfinished repair. */
int store_dir_is_marked(struct store *store, bool *unfinished)
{
	char what[80];
	int ret = read_mark(store, what, sizeof(what));

	*unfinished = false;
	if (ret <= 0)
		return ret;
	*unfinished = !*what || !strcmp(what, MARK_UNFINISHED) || !strcmp(what, MARK_COPIED);
	if (*unfinished)
		store_say(store, LOG_ERR, "%s: damaged: " MARK_UNFINISHED, store->dir);
	else
		store_say(store, LOG_ERR, "%s: damaged: found while the store was in use: %s",
			  store->dir, what);
	return 1;
}

void store_dir_unmark(struct store *store)
{
	if (unlinkat(store->dir_fd, DAMAGED, 0) ? errno != ENOENT : fsync(store->dir_fd))
		store_say(store, LOG_ERR, "%s/%s: cannot be removed: %m", store->dir, DAMAGED);
}

/* --- the directory ------------------------------------------------------------------------ */

static DIR *open_list(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list && fd >= 0)
		close(fd);
	return list;
}

/* Files of a new file system, and of a store whose creation was interrupted. */
static bool is_ignored(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, "lost+found") ||
		!strcmp(name, MARKER_NEW);
}

static bool is_empty(const struct store *store)
{
	DIR *list = open_list(store->dir_fd, ".");
	const struct dirent *file;
	bool empty = true;

	if (!list)
		return false;
	while (empty && (file = readdir(list)))
		empty = is_ignored(file->d_name);
	closedir(list);
	return empty;
}

/* A directory without a marker: empty, a store whose creation was interrupted, or foreign. */
static int check_unmarked(struct store *store)
{
	bool started = marker_version(store, MARKER_NEW) == STORE_VERSION;

	if (!started && !is_empty(store)) {
		if (!faccessat(store->dir_fd, WITNESS, F_OK, AT_SYMLINK_NOFOLLOW))
			store_say(store, LOG_ERR,
				  "%s/%s: is missing: a job store has the line \"twheelq store %d\" there",
				  store->dir, MARKER, STORE_VERSION);
		return -ENOTEMPTY;
	}
	if (!store->config.create || store->config.read_only)
		return -ENODATA;
	store->fresh = true;
	return make_marker(store->dir_fd, MARKER_NEW);
}

static int check_marker(struct store *store)
{
	int version = marker_version(store, MARKER);

	if (version == -ENOENT)
		return check_unmarked(store);
	if (version < 0)
		return version;
	if (version == STORE_VERSION)
		return 0;
	if (version)
		store_say(store, LOG_ERR, "%s: has version %d; this program knows version %d",
			  store->dir, version, STORE_VERSION);
	else
		store_say(store, LOG_ERR,
			  "%s/%s: is damaged, or not of a job store: its only line has to be \"twheelq store %d\"",
			  store->dir, MARKER, STORE_VERSION);
	return -EPROTO;
}

/*
 * RocksDB opens, makes and removes files by their paths. If the path of the directory leads to
 * another store meanwhile, as after a mount or a rename, these must not be the other's.
 */
static void choose_path(struct store *store)
{
	char by_fd[40];

	snprintf(by_fd, sizeof(by_fd), STORE_FD_PATHS "%d", store->dir_fd);
	store->path = strdup(store->config.read_only || access(by_fd, X_OK) ? store->dir : by_fd);
	if (!store->path || asprintf(&store->db_path, "%s/db", store->path) < 0 ||
	    asprintf(&store->db_name, "%s/db", store->dir) < 0)
		abort();
}

int store_dir_open(struct store *store)
{
	if (store->config.create && !store->config.read_only &&
	    mkdir(store->dir, 0700) && errno != EEXIST)
		return -errno;
	store->dir_fd = open(store->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->dir_fd < 0)
		return -errno;
	if (flock(store->dir_fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	choose_path(store);
	return check_marker(store);
}

void store_dir_close(struct store *store)
{
	if (store->syncer.witness_fd >= 0)
		close(store->syncer.witness_fd);
	if (store->db_fd >= 0)
		close(store->db_fd);
	if (store->dir_fd >= 0)
		close(store->dir_fd);
	free(store->db_name);
	free(store->db_path);
	free(store->path);
}

/* --- the witness -------------------------------------------------------------------------- */

/* Two numbers; the second is the first with all bits changed. */
#define WITNESS_LEN 16

static size_t witness_bytes(uint8_t bytes[WITNESS_LEN], uint64_t changes)
{
	size_t len = store_encode_u64(bytes, changes);

	return len + store_encode_u64(bytes + len, ~changes);
}

void store_witness_write(struct store *store, uint64_t changes)
{
	uint8_t bytes[WITNESS_LEN];
	size_t len = witness_bytes(bytes, changes);

	/* If this fails, some damage is not detected after a crash; nothing else is lost. */
	(void)!pwrite(store->syncer.witness_fd, bytes, len, 0);
}

/* Returns 0; -ENOENT, it is empty; -EBADMSG, it is damaged; another errno. */
static int witness_read(const struct store *store, uint64_t *changes)
{
	uint8_t bytes[WITNESS_LEN];
	uint64_t inverted;
	ssize_t len = pread(store->syncer.witness_fd, bytes, sizeof(bytes), 0);

	if (len < 0)
		return -errno;
	if (!len)
		return -ENOENT;
	if (len < WITNESS_LEN)
		return -EBADMSG;
	store_decode_u64(bytes, 8, changes);
	store_decode_u64(bytes + 8, 8, &inverted);
	return *changes == ~inverted ? 0 : -EBADMSG;
}

uint64_t store_witness(const struct store *store)
{
	uint64_t changes;

	return witness_read(store, &changes) ? 0 : changes;
}

static int witness_check(struct store *store)
{
	uint64_t changes = 0;
	int ret = witness_read(store, &changes);

	if (ret == -ENOENT && store->fresh)
		return 0;
	if (ret) {
		store_say(store, LOG_WARNING,
			  "%s/%s: cannot be read; a lost end of the log is not detected",
			  store->dir, WITNESS);
		return 0;
	}
	if (changes <= store->changes)
		return 0;
	store_say(store, LOG_ERR,
		  "%s: damaged: change %" PRIu64 " was synced, but the last one found is %"
		  PRIu64, store->dir, changes, store->changes);
	return -EBADMSG;
}

int store_witness_open(struct store *store)
{
	bool read_only = store->config.read_only;

	/* The witness of a store whose creation was interrupted is not valid. */
	if (store->fresh)
		unlinkat(store->dir_fd, WITNESS, 0);
	store->syncer.witness_fd = openat(store->dir_fd, WITNESS,
					  read_only ? O_RDONLY | O_CLOEXEC | O_NOFOLLOW :
					  O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (store->syncer.witness_fd < 0)
		return read_only && errno == ENOENT ? 0 : -errno;
	return witness_check(store);
}

/* --- removed files ------------------------------------------------------------------------ */

/* A list of db/ may have none of the logs if RocksDB goes on to another one meanwhile. */
#define LOOKS		3

/* By its name: a descriptor would keep the space of a log that RocksDB has removed. */
static bool has_log(const struct store *store, uint64_t number)
{
	struct stat stat;
	char name[32];

	if (!number)
		return false;
	snprintf(name, sizeof(name), "%06" PRIu64 ".log", number);
	return !fstatat(store->db_fd, name, &stat, AT_SYMLINK_NOFOLLOW) || errno != ENOENT;
}

/* The number of the newest of RocksDB's logs, which are called NUMBER.log; 0: there is none. */
static uint64_t newest_log(DIR *list)
{
	const struct dirent *file;
	uint64_t newest = 0, number;
	char *end;

	while ((file = readdir(list))) {
		number = strtoull(file->d_name, &end, 10);
		if (end != file->d_name && !strcmp(end, ".log") && number > newest)
			newest = number;
	}
	return newest;
}

/*
 * RocksDB removes a log only when there is a newer one. If the directory cannot be read, because
 * too many files are open, assume that nothing is missing.
 */
static bool has_newer_log(struct store *store)
{
	uint64_t newest;
	DIR *list;
	int i;

	for (i = 0; i < LOOKS; i++) {
		list = open_list(store->db_fd, ".");
		if (!list)
			return errno != ENOENT;
		newest = newest_log(list);
		closedir(list);
		if (newest > store->syncer.log_number && has_log(store, newest)) {
			store->syncer.log_number = newest;
			return true;
		}
	}
	return false;
}

int store_dir_note_db(struct store *store)
{
	struct stat stat;

	/* A repair has put another one in its place. */
	if (store->db_fd >= 0)
		close(store->db_fd);
	/* While it is open, its inode keeps its number, on each file system. */
	store->db_fd = openat(store->dir_fd, "db", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (store->db_fd < 0 || fstat(store->db_fd, &stat))
		return -errno;
	store->db_device = stat.st_dev;
	store->db_inode = stat.st_ino;
	return 0;
}

/* Else whoever starts the daemon again would find another store, or none. */
static bool is_db_where_it_was(const struct store *store)
{
	struct stat db;

	/* Other errors do not say that it has gone. */
	if (stat(store->db_name, &db))
		return errno != ENOENT && errno != ENOTDIR;
	return db.st_dev == store->db_device && db.st_ino == store->db_inode;
}

bool store_dir_has_files(struct store *store)
{
	return is_db_where_it_was(store) &&
		(has_log(store, store->syncer.log_number) || has_newer_log(store));
}

/* --- backups ------------------------------------------------------------------------------ */

int store_dir_make_backup(int dir_fd, uint64_t changes)
{
	uint8_t bytes[WITNESS_LEN];
	int ret = tree_write_file(dir_fd, WITNESS, bytes, witness_bytes(bytes, changes));

	if (!ret)
		ret = tree_write_file(dir_fd, BACKUP, "", 0);
	return ret ? ret : make_marker(dir_fd, MARKER);
}

bool store_dir_is_backup(const struct store *store)
{
	return !faccessat(store->dir_fd, BACKUP, F_OK, AT_SYMLINK_NOFOLLOW);
}

void store_dir_not_backup(struct store *store)
{
	if (unlinkat(store->dir_fd, BACKUP, 0) || fsync(store->dir_fd))
		store_say(store, LOG_ERR, "%s/" BACKUP ": cannot be removed: %m", store->dir);
}

void store_dir_path(const struct store *store, char *path, size_t size)
{
	char link[32];
	ssize_t len;

	snprintf(link, sizeof(link), STORE_FD_PATHS "%d", store->dir_fd);
	len = readlink(link, path, size - 1);
	path[len > 0 ? len : 0] = '\0';
}

/* --- disk usage --------------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len >= end_len && !strcmp(name + len - end_len, end);
}

/* Of files whose names end so. */
static uint64_t list_bytes(int dir_fd, const char *name, const char *end)
{
	DIR *list = open_list(dir_fd, name);
	const struct dirent *file;
	uint64_t bytes = 0;
	struct stat stat;

	if (!list)
		return 0;
	while ((file = readdir(list)))
		if (strcmp(file->d_name, "reserve") && ends_with(file->d_name, end) &&
		    !fstatat(dirfd(list), file->d_name, &stat, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(stat.st_mode))
			bytes += (uint64_t)stat.st_blocks * 512;
	closedir(list);
	return bytes;
}

uint64_t store_dir_bytes(struct store *store)
{
	return list_bytes(store->dir_fd, ".", "") + list_bytes(store->dir_fd, "db", "");
}

uint64_t store_dir_log_bytes(struct store *store)
{
	return list_bytes(store->dir_fd, "db", ".log");
}
