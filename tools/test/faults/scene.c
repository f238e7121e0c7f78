// SPDX-License-Identifier: GPL-2.0
/* A call that is made again and again, each time with another fault. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/device/util.h"

#include "fault.h"
#include "scene.h"

/* Where walk_ends() lets a piece end. */
static struct {
	bool wanted;
	unsigned int piece;
	size_t whole;
	int behind;
	size_t size;
} end;

static const char * const piece_names[PIECES] = {
	[ARGUMENT] = "argument",
	[COMMANDS] = "commands",
	[RECORDS] = "records",
	[ENTRIES] = "entries",
	[MASK] = "mask",
};

static struct scene scene;

long result_of(long ret)
{
	return ret < 0 ? -errno : ret;
}

int count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int files = 0;

	ASSERT(dir);
	while (readdir(dir))
		files++;
	closedir(dir);
	return files;
}

void scene_open(struct scene *scene)
{
	const struct twheel_config *config = scene->walk->config;

	scene->fd = config ? device_open_configured(O_RDWR | O_NONBLOCK | O_CLOEXEC, config) :
		    device_open_nonblock();
}

__u64 scene_run(struct scene *scene, struct twheel_cmd cmd)
{
	__u64 last_add = 0;

	run(scene->fd, &cmd);
	ASSERT_GE(cmd.result, 0);
	ledger_command(&scene->ledger, &cmd, &last_add);
	return cmd.id;
}

void *scene_piece(struct scene *scene, unsigned int piece, size_t size)
{
	struct piece *placed = &scene->pieces[piece];
	size_t whole = (size + 7) & ~7UL;

	if (end.wanted && end.piece == piece) {
		end.size = size;
		piece_place(placed, size, end.whole, end.behind);
	} else {
		piece_place(placed, size, whole, PROT_NONE);
	}
	return placed->image;
}

static bool is_allowed(const struct walk *walk, long ret)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(walk->errors) && walk->errors[i]; i++) {
		if (ret == -walk->errors[i])
			return true;
	}
	return false;
}

static void begin_attempt(const struct walk *walk)
{
	unsigned int i;

	scene.walk = walk;
	scene.fd = -1;
	memset(&scene.ledger, 0, sizeof(scene.ledger));
	for (i = 0; i < PIECES; i++)
		scene.pieces[i].size = 0;
	walk->prepare(&scene);
	for (i = 0; i < PIECES; i++) {
		if (scene.pieces[i].size)
			piece_map(&scene.pieces[i]);
	}
}

static void end_attempt(long ret, bool faulty)
{
	const struct walk *walk = scene.walk;
	unsigned int i;

	scene.faulty = faulty;
	scene.ends = end.wanted;
	for (i = 0; i < PIECES; i++) {
		if (scene.pieces[i].size)
			piece_open(&scene.pieces[i]);
	}
	if (ret < 0 && !is_allowed(walk, ret))
		test_fail(__FILE__, __LINE__, "seen -%s, which is not documented",
			  strerrorname_np(-ret));
	walk->check(&scene, ret);
	if (scene.fd >= 0) {
		ledger_check(&scene.ledger, scene.fd);
		ledger_close(&scene.ledger, scene.fd);
	}
	if (walk->finish)
		walk->finish(&scene);
	if (scene.fd >= 0)
		close(scene.fd);
}

static void make_pieces(void)
{
	unsigned int i;

	for (i = 0; i < PIECES; i++)
		piece_make(&scene.pieces[i], i);
}

/* Returns how many faults it met. */
static unsigned int walk_mode(const struct walk *walk, bool all, unsigned int *refused)
{
	unsigned int nth;

	for (nth = 1; nth < FAULTS_MAX; nth++) {
		bool fired;
		long ret;

		begin_attempt(walk);
		test_about("%s: %s%u", walk->name, all ? "from " : "", nth);
		faults_begin(nth, all);
		ret = walk->call(&scene);
		fired = faults_end();
		if (!fired && ret < 0)
			test_fail(__FILE__, __LINE__, "seen -%s, without a fault",
				  strerrorname_np(-ret));
		end_attempt(ret, fired);
		if (!fired)
			return nth - 1;
		*refused += ret < 0;
	}
	test_fail(__FILE__, __LINE__, "%s never ends without a fault", walk->name);
}

void walk_faults(const struct walk *walk)
{
	unsigned int refused = 0, points;

	faults_open();
	make_pieces();
	points = walk_mode(walk, false, &refused);
	if (!walk->alone)
		points += walk_mode(walk, true, &refused);
	printf("# %s: %u points, %u refused\n", walk->name, points, refused);
}

static unsigned int walk_end(const struct walk *walk, int behind)
{
	unsigned int points = 0;

	end.behind = behind;
	/* Of something long, all places within a record are met, but not those of each one. */
	for (end.whole = 0;; end.whole += end.size > 1024 ? 56 : 8) {
		long ret;

		begin_attempt(walk);
		test_about("%s: %zu of %zu bytes are %s", walk->name, end.whole, end.size,
			   behind == PROT_NONE ? "there" : "writable");
		if (end.whole >= end.size)
			break;
		ret = walk->call(&scene);
		end_attempt(ret, true);
		points++;
	}
	end_attempt(walk->call(&scene), false);
	return points;
}

void walk_ends(const struct walk *walk, unsigned int piece)
{
	unsigned int points;

	make_pieces();
	end.wanted = true;
	end.piece = piece;
	points = walk_end(walk, PROT_NONE);
	points += walk_end(walk, PROT_READ);
	end.wanted = false;
	printf("# %s_%s_end: %u points\n", walk->name, piece_names[piece], points);
}
