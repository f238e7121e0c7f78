// SPDX-License-Identifier: GPL-2.0
/*
 * twheelq backup: ask a daemon for a backup, and copy it out of the daemon's directory.
 *
 * The marker of the store is copied last, when all else is on disk: a copy that is not whole
 * is not taken for a store. The backup in the daemon's directory is removed in the end; before,
 * it gets a name by which the next start of the daemon would remove it.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/tree.h"
#include "common/util.h"
#include "queue/cli/backup.h"
#include "queue/cli/person.h"
#include "queue/integrity/open.h"
#include "queue/store/backup.h"
#include "queue/store/read.h"

#define MARKER		"twheelq"
#define STORE_MEMORY	(64 * 1024 * 1024)

/**
 * struct backup - the state of the command
 * @person: --connect and --json.
 * @dir: DIR, where the copy goes.
 * @dir_fd: the same, open.
 * @store_fd: the daemon's directory.
 * @backups_fd: its backups.
 * @from_fd: the backup that was made.
 * @name: its name.
 * @bytes: what was copied, in bytes.
 */
struct backup {
	struct person person;
	const char *dir;
	int dir_fd;
	int store_fd;
	int backups_fd;
	int from_fd;
	char name[64];
	uint64_t bytes;
};

static atomic_bool stopped;

static void stop(int number)
{
	(void)number;
	stopped = true;
}

static void catch_signals(void)
{
	const struct sigaction action = { .sa_handler = stop };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* --- before ------------------------------------------------------------------------------- */

static int find_file(int dir_fd, const char *name, void *context)
{
	(void)dir_fd;
	(void)context;
	return strcmp(name, "lost+found") ? -ENOTEMPTY : 0;
}

static void open_dir(struct backup *backup)
{
	int ret;

	if (mkdir(backup->dir, 0700) && errno != EEXIST)
		err(EXIT_CANNOT, "cannot make %s", backup->dir);
	backup->dir_fd = open(backup->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (backup->dir_fd < 0)
		err(EXIT_CANNOT, "cannot open %s", backup->dir);
	ret = tree_each(backup->dir_fd, find_file, NULL);
	if (ret == -ENOTEMPTY)
		errx(EXIT_CANNOT, "%s is not empty", backup->dir);
	if (ret)
		errx(EXIT_CANNOT, "cannot read %s: %s", backup->dir, strerror(-ret));
}

/* The daemon says where its store is; it has to be on this machine. */
static void open_store(struct backup *backup)
{
	char *yaml, *path;

	connection_send(backup->person.connection, "stats");
	yaml = connection_receive(backup->person.connection);
	path = yaml ? person_value(yaml, "disk-directory") : NULL;
	if (!path || !*path)
		errx(EXIT_CANNOT, "%s does not say where its jobs are: it is an older one",
		     backup->person.address);
	backup->store_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (backup->store_fd < 0 || faccessat(backup->store_fd, MARKER, R_OK, 0))
		err(EXIT_CANNOT, "on the daemon's machine, as its user? Cannot read %s", path);
	free(path);
	free(yaml);
}

/* --- the backup --------------------------------------------------------------------------- */

static void ask_for_backup(struct backup *backup)
{
	snprintf(backup->name, sizeof(backup->name), "twheelq-backup-%lld-%d",
		 (long long)time(NULL), getpid());
	connection_wait_long(backup->person.connection);
	person_tell(&backup->person, "BACKUP", "backup %s", backup->name);
	catch_signals();
	backup->backups_fd = tree_open(backup->store_fd, BACKUPS_DIR);
	backup->from_fd = backup->backups_fd < 0 ? -1 :
			  tree_open(backup->backups_fd, backup->name);
	if (backup->from_fd < 0)
		errx(EXIT_CANNOT, "cannot open backups/%s of the daemon: remove it by hand",
		     backup->name);
}

static int copy_one(int from_fd, const char *name, void *context)
{
	struct backup *backup = context;

	if (!strcmp(name, MARKER))
		return 0;
	return tree_copy(from_fd, backup->dir_fd, name, &backup->bytes, &stopped);
}

static int sync_parent(int dir_fd)
{
	int fd = openat(dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;

	if (fd < 0 || fsync(fd))
		ret = -errno;
	if (fd >= 0)
		close(fd);
	return ret;
}

static int copy_all(struct backup *backup)
{
	int ret = tree_each(backup->from_fd, copy_one, backup);

	if (!ret && fsync(backup->dir_fd))
		ret = -errno;
	if (!ret)
		ret = tree_copy(backup->from_fd, backup->dir_fd, MARKER, &backup->bytes, &stopped);
	if (!ret && fsync(backup->dir_fd))
		ret = -errno;
	return ret ? ret : sync_parent(backup->dir_fd);
}

/* --- after -------------------------------------------------------------------------------- */

static int remove_one(int dir_fd, const char *name, void *context)
{
	(void)context;
	return strcmp(name, "lost+found") ? tree_remove(dir_fd, name) : 0;
}

static void remove_backup(const struct backup *backup)
{
	char hidden[sizeof(backup->name) + 1];
	int ret;

	snprintf(hidden, sizeof(hidden), ".%s", backup->name);
	if (renameat(backup->backups_fd, backup->name, backup->backups_fd, hidden))
		ret = -errno;
	else
		ret = tree_remove(backup->backups_fd, hidden);
	if (ret)
		warnx("cannot remove backups/%s of the daemon: %s", backup->name, strerror(-ret));
}

static bool count_jobs(void *context, const struct tube_record *tube)
{
	uint64_t *jobs = context;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tube->counts.nr); i++)
		*jobs += tube->counts.nr[i];
	return true;
}

/* Open the copy: it is a store. Returns an exit status. */
static int read_copy(const struct backup *backup, uint64_t *jobs)
{
	const struct store_config config = {
		.dir = backup->dir, .read_only = true, .memory = STORE_MEMORY, .log = log_say,
	};
	struct store *store;
	int ret = store_open_unscanned(&store, &config);

	if (ret)
		return store_cannot_open(backup->dir, ret);
	ret = store_each_tube(store, count_jobs, jobs);
	store_close(store);
	return store_status(ret);
}

static int end_backup(struct backup *backup)
{
	char text[PERSON_JOBS_TEXT];
	uint64_t jobs = 0;
	int status = read_copy(backup, &jobs);

	if (status)
		return status;
	if (backup->person.json)
		person_print_json(json_pack("{s:s, s:I, s:I}", "directory", backup->dir, "bytes",
					    (json_int_t)backup->bytes, "jobs", (json_int_t)jobs));
	else
		printf("%s has a backup: %s, %" PRIu64 " bytes\n", backup->dir,
		       person_jobs(text, jobs), backup->bytes);
	return 0;
}

static void take_operand(struct argp_state *state, char *text, unsigned int nr, void *values)
{
	struct backup *backup = values;

	if (nr)
		argp_error(state, "\"%s\" is one argument too many", text);
	if (!*text)
		argp_error(state, "DIR is empty");
	backup->dir = text;
}

static void check_operands(struct argp_state *state, const void *values)
{
	const struct backup *backup = values;

	if (!backup->dir)
		argp_error(state, "DIR is missing");
}

static const struct option_rule rules[] = { PERSON_CONNECT, PERSON_JSON };

static const struct option_table table = {
	.rules = rules,
	.nr = ARRAY_SIZE(rules),
	.operands = "DIR",
	.doc = "Copy the jobs of a running daemon of this machine to DIR, which is new or\n"
	       "empty. The copy has all that was confirmed before; a daemon can serve it.",
	.operand = take_operand,
	.check = check_operands,
};

int backup_main(int argc, char **argv)
{
	struct backup backup = { .dir = NULL };
	int ret;

	person_begin(&table, &backup, argc, argv);
	open_dir(&backup);
	open_store(&backup);
	ask_for_backup(&backup);
	ret = copy_all(&backup);
	remove_backup(&backup);
	if (ret) {
		tree_each(backup.dir_fd, remove_one, NULL);
		warnx("no backup in %s: %s", backup.dir,
		      stopped ? "it was stopped" : strerror(-ret));
		return person_end(&backup.person, ret == -EINTR ? EXIT_CANNOT : store_status(ret));
	}
	return person_end(&backup.person, end_backup(&backup));
}
