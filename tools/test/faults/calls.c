// SPDX-License-Identifier: GPL-2.0
/* Calls that several walks have. */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"
#include "fault.h"

#define COMMANDS_MAX	200

static size_t command_size(const struct walk *walk)
{
	return walk->stride ? walk->stride : sizeof(struct twheel_cmd);
}

unsigned int prepare_commands(struct scene *scene)
{
	static struct twheel_cmd cmds[COMMANDS_MAX];
	size_t size = command_size(scene->walk);
	unsigned int nr = scene->walk->commands(scene, cmds), i;
	char *image = scene_piece(scene, COMMANDS, nr * size);

	ASSERT_LE(nr, COMMANDS_MAX);
	memset(image, 0, nr * size);
	for (i = 0; i < nr; i++)
		memcpy(image + i * size, &cmds[i], sizeof(cmds[i]));
	return nr;
}

/* A command of a call without a fault has memory. */
void check_commands(struct scene *scene, unsigned int done)
{
	const char *cmds = scene->pieces[COMMANDS].user;
	__u64 last_add = 0;
	unsigned int i;

	for (i = 0; i < done; i++) {
		struct twheel_cmd cmd;

		memcpy(&cmd, cmds + i * command_size(scene->walk), sizeof(cmd));
		if (!scene->faulty)
			ASSERT_GE(cmd.result, 0);
		ledger_command(&scene->ledger, &cmd, &last_add);
	}
}

void check_records(struct scene *scene, unsigned int nr, size_t stride)
{
	const char *records = scene->pieces[RECORDS].user;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct twheel_record record;

		memcpy(&record, records + i * stride, sizeof(record));
		ASSERT(ledger_next(&scene->ledger));
		ASSERT_EQ(record.data, ledger_next(&scene->ledger)->data);
		ledger_record(&scene->ledger, &record);
	}
}

void prepare_submit(struct scene *scene)
{
	struct twheel_submit *submit;
	unsigned int nr;

	scene_open(scene);
	if (scene->walk->before)
		scene->walk->before(scene);
	nr = prepare_commands(scene);
	submit = scene_piece(scene, ARGUMENT, sizeof(*submit));
	*submit = (struct twheel_submit){
		.size = sizeof(*submit),
		.cmds = (uintptr_t)scene->pieces[COMMANDS].user,
		.nr = nr,
		.cmd_size = command_size(scene->walk),
	};
	scene->other = nr;
}

long call_submit(struct scene *scene)
{
	return result_of(ioctl(scene->fd, TWHEEL_IOC_SUBMIT, scene->pieces[ARGUMENT].user));
}

void check_submit(struct scene *scene, long ret)
{
	ASSERT_NE(ret, 0);
	ASSERT_LE(ret, scene->other);
	if (!scene->faulty)
		ASSERT_EQ(ret, scene->other);
	if (ret > 0)
		check_commands(scene, ret);
}

/* The thread that sets the faults up keeps the capability, which this takes. */
void become_counted(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	faults_open();
	ASSERT_EQ(syscall(SYS_capget, &header, data), 0);
	data[0].effective &= ~(1U << CAP_SYS_RESOURCE);
	ASSERT_EQ(syscall(SYS_capset, &header, data), 0);
}

/* The READY ones have the least data, in their order. */
void make_events(struct scene *scene)
{
	unsigned int i;

	for (i = 0; i < scene->walk->nr_ready; i++)
		scene_run(scene, make_add(0, 0, i));
	for (i = 0; i < scene->walk->nr; i++)
		scene_run(scene, make_add(0, FAR_NS, 10000 + i));
}

void prepare_events(struct scene *scene)
{
	scene_open(scene);
	make_events(scene);
}
