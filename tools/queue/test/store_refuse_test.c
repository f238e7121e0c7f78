// SPDX-License-Identifier: GPL-2.0
/* A directory that cannot be opened is left unchanged; a failed log write ends the process. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/integrity/check.h"
#include "queue/integrity/open.h"
#include "queue/store/batch.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"
#include "queue/test/store_lib.h"

static int try_open(struct store_config config)
{
	struct store *store;
	int ret;

	*log_text = 0;
	ret = store_open(&store, &config);
	if (ret)
		ASSERT(!store);
	else
		store_close(store);
	return ret;
}

static void write_file(const char *name, const char *text)
{
	char path[200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
	file = fopen(path, "w");
	ASSERT(file);
	fputs(text, file);
	fclose(file);
}

static void see_file(const char *name, const char *expected)
{
	char path[200], text[200] = "";
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
	file = fopen(path, "r");
	ASSERT(file);
	ASSERT(fgets(text, sizeof(text), file));
	fclose(file);
	ASSERT(!strcmp(text, expected));
}

static unsigned int nr_files(void)
{
	DIR *list = opendir(test_dir());
	unsigned int nr = 0;

	ASSERT(list);
	while (readdir(list))
		nr++;
	closedir(list);
	return nr - 2;
}

static unsigned int nr_lines(const char *text)
{
	unsigned int nr = 0;

	while ((text = strstr(text, "RocksDB: "))) {
		text++;
		nr++;
	}
	return nr;
}

TEST(errors_of_rocksdb_do_not_flood_the_log)
{
	struct store *store = open_store();
	char *error = NULL;
	int n;

	*log_text = 0;
	rocksdb_options_set_create_if_missing(store->options, 0);
	for (n = 0; n < 100; n++) {
		ASSERT(!rocksdb_open(store->options, "/dev/null/none", &error));
		rocksdb_free(error);
		error = NULL;
	}
	ASSERT_GT(nr_lines(log_text), 0);
	ASSERT_LT(nr_lines(log_text), 50);
	store_close(store);
}

TEST(a_store_that_is_not_there_is_not_made_unless_asked)
{
	struct store_config config = test_config(test_dir());

	config.create = false;
	ASSERT_EQ(try_open(config), -ENOENT);
	mkdir(test_dir(), 0700);
	ASSERT_EQ(try_open(config), -ENODATA);
	ASSERT_EQ(nr_files(), 0);
	config.create = true;
	config.read_only = true;
	ASSERT_EQ(try_open(config), -ENODATA);
	ASSERT_EQ(nr_files(), 0);
}

TEST(a_directory_of_others_is_not_touched)
{
	mkdir(test_dir(), 0700);
	write_file("novel", "Call me Ishmael.");
	ASSERT_EQ(try_open(test_config(test_dir())), -ENOTEMPTY);
	see_file("novel", "Call me Ishmael.");
	ASSERT_EQ(nr_files(), 1);
}

TEST(a_store_that_has_lost_its_marker_says_what_it_lacks)
{
	char path[100];

	store_close(open_store());
	snprintf(path, sizeof(path), "%s/twheelq", test_dir());
	ASSERT_EQ(unlink(path), 0);
	ASSERT_EQ(try_open(test_config(test_dir())), -ENOTEMPTY);
	ASSERT(strstr(log_text, "/twheelq: is missing: a job store has the line"));
	write_file("twheelq", "twheelq store 1\n");
	store_close(open_store());
}

TEST(a_marker_that_is_none_is_not_taken_for_one)
{
	static const char *const markers[] = {
		"twheelq store 0\n", "twheelq store -1\n", "twheelq store\n", "x", "\n",
		"twheelq store 1", "twheelq store 1\nand more", "Twheelq store 1\n",
		"twheelq store 11111111111111111\n", NULL
	};
	size_t i;

	mkdir(test_dir(), 0700);
	for (i = 0; markers[i]; i++) {
		test_about("%s", markers[i]);
		write_file("twheelq", markers[i]);
		ASSERT_EQ(try_open(test_config(test_dir())), -EPROTO);
		ASSERT_EQ(nr_files(), 1);
	}
}

/* With the words that version 1 writes: a mark may be older than the program. */
TEST(a_repair_that_was_interrupted_is_done_again)
{
	struct store_config config = test_config(test_dir());
	struct store *store = open_store();

	put_tube(store, 1, "one");
	store_close(store);
	write_file("damaged", "a repair did not come to its end\n");
	ASSERT_EQ(store_open(&store, &config), -EBADMSG);
	config.repair = true;
	*log_text = 0;
	ASSERT_EQ(store_open(&store, &config), 0);
	ASSERT(strstr(log_text, "repair"));
	ASSERT(!strstr(log_text, "while the store was in use"));
	store_close(store);
}

TEST(a_store_of_a_newer_version_is_refused)
{
	ASSERT_EQ(try_open(test_config(test_dir())), 0);
	write_file("twheelq", "twheelq store 2\n");
	ASSERT_EQ(try_open(test_config(test_dir())), -EPROTO);
	ASSERT(strstr(log_text, "has version 2; this program knows version 1"));
	write_file("twheelq", "twheelq store 1\n");
	ASSERT_EQ(try_open(test_config(test_dir())), 0);
}

TEST(a_store_whose_making_was_broken_off_is_made)
{
	char marker[200], begun[200];

	mkdir(test_dir(), 0700);
	write_file("twheelq.new", "");
	ASSERT_EQ(try_open(test_config(test_dir())), 0);
	remove_tree(test_dir());
	ASSERT_EQ(try_open(test_config(test_dir())), 0);
	snprintf(marker, sizeof(marker), "%s/twheelq", test_dir());
	snprintf(begun, sizeof(begun), "%s/twheelq.new", test_dir());
	ASSERT_EQ(rename(marker, begun), 0);
	ASSERT_EQ(try_open(test_config(test_dir())), 0);
	ASSERT_EQ(access(marker, F_OK), 0);
	ASSERT_NE(access(begun, F_OK), 0);
}

TEST(a_store_is_of_one_process_at_a_time)
{
	struct store *store = open_store();
	struct store_config config = test_config(test_dir());
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		int ret = try_open(config);

		config.read_only = true;
		_exit(ret == -EBUSY && try_open(config) == -EBUSY ? 0 : 1);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_EQ(status, 0);
	store_close(store);
	ASSERT_EQ(try_open(config), 0);
}

TEST(a_read_only_file_system_is_refused_for_writing_and_can_be_checked)
{
	struct job_record job = make_job(1, JOB_READY, 1, 0, 0);
	struct store_config config = test_config(test_dir());
	struct store *store = open_store();

	put_tube(store, 1, "one");
	put_job(store, &job);
	store_close(store);
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(test_dir(), test_dir(), NULL, MS_BIND, NULL) ||
	    mount("none", test_dir(), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL))
		test_skip("nothing can be mounted: %s", strerror(errno));
	ASSERT_EQ(try_open(config), -EROFS);
	ASSERT_EQ(store_check(&config, stdout), 0);
	config.read_only = true;
	ASSERT_EQ(store_open(&store, &config), 0);
	see_body(store, &job);
	store_close(store);
	ASSERT_EQ(umount2(test_dir(), MNT_DETACH), 0);
}

/* --- errors of the log ----------------------------------------------------------------------- */

/* Replaces the C library's for RocksDB; fails when the test asks for it. */
static bool sync_fails;

int fdatasync(int fd)
{
	if (!sync_fails)
		return fsync(fd);
	errno = EIO;
	return -1;
}

TEST(a_log_that_cannot_be_synced_ends_the_process_before_anything_is_promised)
{
	int status, fds[2];
	uint64_t told = 0;
	pid_t pid;

	ASSERT_EQ(pipe(fds), 0);
	test_dir();
	pid = fork();
	if (!pid) {
		struct store *store = open_store();
		struct job_record job = make_job(1, JOB_READY, 1, 0, 0);
		uint64_t seq;

		put_tube(store, 1, "one");
		put_job(store, &job);
		sync_fails = true;
		seq = store_commit(store);
		while (store_synced(store) < seq)
			usleep(1000);
		(void)!write(fds[1], &seq, sizeof(seq));
		_exit(0);
	}
	close(fds[1]);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT(WIFEXITED(status));
	ASSERT_EQ(WEXITSTATUS(status), 74);
	ASSERT_EQ(read(fds[0], &told, sizeof(told)), 0);
}
