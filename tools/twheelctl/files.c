// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl files: lists the files of the device that processes have open.
 *
 * /proc/PID/task/TID/fd has a link for each open file of a thread, and fdinfo beside it what
 * the module tells about it: a line "name:<tab>number" each. Threads share their files. But
 * the first one may have ended, and then has none, and others may have files of their own.
 */
#include <ctype.h>
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/kcmp.h>

#include "common/options.h"
#include "common/util.h"
#include "twheelctl/command.h"
#include "twheelctl/json.h"

struct files_options {
	struct settings *settings;
	const char *proc;
	bool json;
};

/* The numbers in fdinfo, in the order of the output. */
enum number {
	CLOCKID,
	MAX_EVENTS,
	ARMED,
	READY,
	ADDED,
	FINISHED,
	CANCELLED,
	COMPLETED,
	RECORDS,
	NR_REQUIRED,
	SLACK_NS = NR_REQUIRED,
	WAKE_COUNT,
	WAKE_DELAY_NS,
	DEADLINES,
	POSTPONED,
	CPU,
	MOVED,
	NR_NUMBERS
};

static const char * const number_names[] = {
	"clockid", "max_events", "armed", "ready", "added", "finished", "cancelled",
	"completed", "records", "slack_ns", "wake_count", "wake_delay_ns", "deadlines",
	"postponed", "cpu", "moved",
};

_Static_assert(ARRAY_SIZE(number_names) == NR_NUMBERS, "each number has a name");

/**
 * struct open_file - a file of the device that a process has open
 * @pid: the process.
 * @tid: the thread that has it.
 * @fd: the number of the file there.
 * @command: the name of the process; only printable characters of ASCII.
 * @has: a bit for each number that fdinfo has.
 * @numbers: the numbers.
 */
struct open_file {
	unsigned int pid;
	unsigned int tid;
	unsigned int fd;
	char command[32];
	unsigned int has;
	unsigned long long numbers[NR_NUMBERS];
};

/**
 * struct search - a search through all processes
 * @options: the options.
 * @device: the number of the device, if @has_device.
 * @has_device: there is a device of that path.
 * @found: how many open files were found.
 * @hidden: how many processes did not let us look.
 */
struct search {
	const struct files_options *options;
	dev_t device;
	bool has_device;
	unsigned long found;
	unsigned long hidden;
};

static bool has(const struct open_file *file, enum number number)
{
	return file->has >> number & 1;
}

/* --- output ----------------------------------------------------------------- */

static const char *clock_name(const struct open_file *file)
{
	switch (file->numbers[CLOCKID]) {
	case 0:
		return "realtime";
	case 1:
		return "monotonic";
	case 7:
		return "boottime";
	default:
		return "unknown";
	}
}

/* JSON's integers have 63 bits here.  A time of 2^63 and more is never. */
static json_t *json_number(unsigned long long number)
{
	return json_integer(number > INT64_MAX ? INT64_MAX : (json_int_t)number);
}

static void print_json(const struct open_file *file)
{
	json_t *object = json_pack("{s:i, s:s, s:i, s:s}", "pid", (int)file->pid,
				   "command", file->command, "fd", (int)file->fd,
				   "clock", clock_name(file));

	for (unsigned int i = CLOCKID + 1; i < NR_NUMBERS; i++)
		if (has(file, i))
			json_object_set_new(object, number_names[i],
					    json_number(file->numbers[i]));
	json_line(object, stdout);
}

static void print_header(void)
{
	printf("%7s %-15s %4s %-9s %10s %10s %10s %12s %12s %12s %12s\n", "PID", "COMMAND",
	       "FD", "CLOCK", "MAX", "ARMED", "READY", "ADDED", "FINISHED", "CANCELLED",
	       "COMPLETED");
}

static void print_text(const struct open_file *file)
{
	printf("%7u %-15s %4u %-9s %10llu %10llu %10llu %12llu %12llu %12llu %12llu\n",
	       file->pid, file->command, file->fd, clock_name(file),
	       file->numbers[MAX_EVENTS], file->numbers[ARMED], file->numbers[READY],
	       file->numbers[ADDED], file->numbers[FINISHED], file->numbers[CANCELLED],
	       file->numbers[COMPLETED]);
}

static void print_file(struct search *search, const struct open_file *file)
{
	if (search->options->json) {
		print_json(file);
	} else {
		if (!search->found)
			print_header();
		print_text(file);
	}
	search->found++;
}

/* End the program for a lack, which is not about this process or file alone. */
static void check_error(const char *path, int error)
{
	if (error == ENOMEM || error == EMFILE || error == ENFILE || error == ENOTDIR)
		errx(STATUS_FAILURE, "cannot read %s: %s", path, strerror(error));
}

/* --- one file --------------------------------------------------------------- */

/* Take a line "name:<tab>number" of fdinfo, if we know the name. */
static void take_line(struct open_file *file, const char *line)
{
	for (unsigned int i = 0; i < NR_NUMBERS; i++) {
		size_t len = strlen(number_names[i]);

		if (!strncmp(line, number_names[i], len) &&
		    sscanf(line + len, ":%llu", &file->numbers[i]) == 1)
			file->has |= 1U << i;
	}
}

/* Returns whether fdinfo has the numbers of a file of our device. */
static bool read_fdinfo(struct open_file *file, const char *proc)
{
	const unsigned int required = (1U << NR_REQUIRED) - 1;
	char path[4096], line[256];
	FILE *info;

	snprintf(path, sizeof(path), "%s/%u/task/%u/fdinfo/%u", proc, file->pid, file->tid,
		 file->fd);
	info = fopen(path, "re");
	if (!info) {
		check_error(path, errno);
		return false;
	}
	while (fgets(line, sizeof(line), info))
		take_line(file, line);
	fclose(info);
	return (file->has & required) == required;
}

/* A process chooses its name, which must not control the terminal. */
static void read_command(struct open_file *file, const char *proc)
{
	char path[4096];
	FILE *comm;

	snprintf(path, sizeof(path), "%s/%u/comm", proc, file->pid);
	comm = fopen(path, "re");
	if (!comm)
		check_error(path, errno);
	if (!comm || !fgets(file->command, sizeof(file->command), comm))
		strcpy(file->command, "?");
	if (comm)
		fclose(comm);
	file->command[strcspn(file->command, "\n")] = '\0';
	for (char *c = file->command; *c; c++)
		if (!isascii(*c) || !isprint(*c))
			*c = '?';
}

/* The device may have another path there, so its number counts, too. */
static bool is_device(const struct search *search, const char *path)
{
	const char *device = search->options->settings->device;
	char target[4096];
	ssize_t len = readlink(path, target, sizeof(target) - 1);
	struct stat stats;

	if (len < 0) {
		check_error(path, errno);
		return false;
	}
	target[len] = '\0';
	if (!strcmp(target, device))
		return true;
	return search->has_device && !stat(path, &stats) && S_ISCHR(stats.st_mode) &&
	       stats.st_rdev == search->device;
}

/* --- all files -------------------------------------------------------------- */

static int is_number(const struct dirent *entry)
{
	return entry->d_name[strspn(entry->d_name, "0123456789")] == '\0';
}

static int compare_numbers(const struct dirent **a, const struct dirent **b)
{
	unsigned long x = strtoul((*a)->d_name, NULL, 10);
	unsigned long y = strtoul((*b)->d_name, NULL, 10);

	return (x > y) - (x < y);
}

/*
 * The numbers that a directory has as names, in their order.
 *
 * Return: how many there are, in memory for the caller to free, or a negative errno.
 */
static int read_numbers(const char *path, unsigned int **numbers)
{
	struct dirent **entries;
	int nr = scandir(path, &entries, is_number, compare_numbers);

	if (nr < 0)
		return -errno;
	*numbers = calloc(nr + 1, sizeof(**numbers));
	if (!*numbers)
		errx(STATUS_FAILURE, "out of memory");
	for (int i = 0; i < nr; i++) {
		(*numbers)[i] = strtoul(entries[i]->d_name, NULL, 10);
		free(entries[i]);
	}
	free(entries);
	return nr;
}

static void look_at_file(struct search *search, unsigned int pid, unsigned int tid,
			 unsigned int fd)
{
	const char *proc = search->options->proc;
	struct open_file file = { .pid = pid, .tid = tid, .fd = fd };
	char path[4096];

	snprintf(path, sizeof(path), "%s/%u/task/%u/fd/%u", proc, pid, tid, fd);
	if (!is_device(search, path) || !read_fdinfo(&file, proc))
		return;
	read_command(&file, proc);
	print_file(search, &file);
}

/* Return: how many open files the thread has, or a negative errno. */
static int look_at_thread(struct search *search, unsigned int pid, unsigned int tid)
{
	unsigned int *fds;
	char path[4096];
	int nr;

	snprintf(path, sizeof(path), "%s/%u/task/%u/fd", search->options->proc, pid, tid);
	nr = read_numbers(path, &fds);
	if (nr < 0) {
		check_error(path, -nr);
		return nr;
	}
	for (int i = 0; i < nr; i++)
		look_at_file(search, pid, tid, fds[i]);
	free(fds);
	return nr;
}

/* Returns whether two threads do not share their files, as far as the kernel can tell. */
static bool have_own_files(unsigned int tid, unsigned int other)
{
	return syscall(SYS_kcmp, tid, other, KCMP_FILES, 0, 0) > 0;
}

static void look_at_process(struct search *search, unsigned int pid)
{
	unsigned int *tids, first = 0;
	char path[4096];
	int nr, files = 0;

	snprintf(path, sizeof(path), "%s/%u/task", search->options->proc, pid);
	nr = read_numbers(path, &tids);
	if (nr < 0) {
		check_error(path, -nr);
		search->hidden += nr == -EPERM || nr == -EACCES;
		return;
	}
	for (int i = 0; i < nr && files != -EACCES; i++) {
		if (first && !have_own_files(first, tids[i]))
			continue;
		files = look_at_thread(search, pid, tids[i]);
		if (files > 0 && !first)
			first = tids[i];
	}
	if (files == -EACCES)
		search->hidden++;
	free(tids);
}

static error_t parse_files(int key, char *arg, struct argp_state *state)
{
	struct files_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = options->settings;
		return 0;
	case 'j':
		options->json = true;
		return 0;
	case 'P':
		options->proc = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option files_argp_options[] = {
	{ "json", 'j', NULL, 0, "Print one line of JSON for each file, with all numbers", 0 },
	{ "proc", 'P', "PATH", 0, "Where the system shows processes; default /proc", 0 },
	{ 0 }
};

static const struct argp files_argp = {
	.options = files_argp_options,
	.parser = parse_files,
	.children = settings_child,
	.doc = "Lists the files of the device that processes have open: the process and its\n"
	       "name, the number of the file there, its clock, how many events it may have,\n"
	       "how many are armed and ready now, and how many have been added, finished,\n"
	       "cancelled and completed. A file that several processes share, or that has\n"
	       "several numbers, is listed as often. Only root sees the files of all users.\n"
	       "\vExamples:\n"
	       "  twheelctl files\n"
	       "  twheelctl files --json | jq 'select(.ready > 0)'",
};

enum status files_main(int argc, char **argv, struct settings *settings)
{
	struct files_options options = { .settings = settings, .proc = "/proc" };
	struct search search = { .options = &options };
	unsigned int *pids;
	struct stat stats;
	int nr;

	options_argp(&files_argp, argc, argv, 0, &options);
	search.has_device = !stat(settings->device, &stats) && S_ISCHR(stats.st_mode);
	if (search.has_device)
		search.device = stats.st_rdev;
	nr = read_numbers(options.proc, &pids);
	if (nr < 0) {
		warnx("cannot read %s: %s", options.proc, strerror(-nr));
		return STATUS_FAILURE;
	}
	for (int i = 0; i < nr; i++)
		look_at_process(&search, pids[i]);
	free(pids);
	if (!search.found && !options.json)
		puts("no process has the device open");
	if (search.hidden)
		warnx("%lu processes did not let us look: only root sees those of all users",
		      search.hidden);
	return STATUS_OK;
}
