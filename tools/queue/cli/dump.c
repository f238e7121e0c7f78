// SPDX-License-Identifier: GPL-2.0
/*
 * A store as lines of JSON: the format, which load.c reads, and the dump.
 *
 * A tube with a policy is a line {"tube": name, "policy": {...}}, before all jobs. A job is
 *
 *	{"id", "tube", "state": "ready" | "delayed" | "wall" | "buried", "pri",
 *	 "due_ns" (delayed, wall) or "order" (buried), "created_ns", "delay_ns", "ttr_ns",
 *	 "reserves", "timeouts", "releases", "buries", "kicks", "attempts",
 *	 "origin", "died_ns", "schedule", "missed", "reason", "key", "body"}
 *
 * The fields of the last line are left out if the job does not have them, except the body.
 * Times are on the wall clock, ns since 1970. That includes "due_ns" of "delayed" jobs and
 * "created_ns", which the store has on the queue's clock, see alarm/clock.h. Bytes that are
 * not UTF-8 are "body64", "reason64" or "key64", in base64. 64-bit numbers are written as
 * signed.
 *
 * A schedule is a line behind all jobs:
 *
 *	{"every": name, "tube", "id", "pri", "interval_ns", "next_ns", "ttr_ns", "missed",
 *	 "last", "body"}
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "queue/cli/base64.h"
#include "queue/cli/dump.h"
#include "queue/integrity/scan.h"
#include "queue/store/numbers.h"
#include "queue/store/read.h"
#include "queue/store/state.h"

const char *const store_state_names[4] = {
	[JOB_READY] = "ready", [JOB_DELAYED] = "delayed", [JOB_WALL] = "wall",
	[JOB_BURIED] = "buried",
};

const struct store_json_number store_json_numbers[NR_STORE_JSON_NUMBERS] = {
	{ "pri", offsetof(struct job_record, place.pri), 4 },
	{ "delay_ns", offsetof(struct job_record, delay_ns), 8 },
	{ "ttr_ns", offsetof(struct job_record, ttr_ns), 8 },
	{ "reserves", offsetof(struct job_record, reserves), 4 },
	{ "timeouts", offsetof(struct job_record, timeouts), 4 },
	{ "releases", offsetof(struct job_record, releases), 4 },
	{ "buries", offsetof(struct job_record, buries), 4 },
	{ "kicks", offsetof(struct job_record, kicks), 4 },
	{ "attempts", offsetof(struct job_record, attempts), 4 },
	{ "died_ns", offsetof(struct job_record, died_ns), 8 },
	{ "schedule", offsetof(struct job_record, schedule), 8 },
	{ "missed", offsetof(struct job_record, missed), 8 },
};

struct dump {
	struct store *store;
	FILE *out;
	uint64_t skew_ns;
	int ret;
};

static void set_u64(json_t *object, const char *name, uint64_t number)
{
	json_object_set_new(object, name, json_integer((json_int_t)number));
}

static void set_bytes(json_t *object, const char *name, const void *bytes, size_t len)
{
	json_t *string = json_stringn(bytes, len);
	char name64[16], *text;

	if (string) {
		json_object_set_new(object, name, string);
		return;
	}
	text = base64_encode(bytes, len);
	snprintf(name64, sizeof(name64), "%s64", name);
	json_object_set_new(object, name64, json_string(text));
	free(text);
}

static void set_numbers(json_t *object, const struct job_record *job)
{
	const struct store_json_number *number;
	const char *bytes = (const char *)job;
	uint32_t u32;
	uint64_t u64 = 0;
	size_t i;

	for (i = 0; i < NR_STORE_JSON_NUMBERS; i++) {
		number = &store_json_numbers[i];
		memcpy(&u32, bytes + number->at, sizeof(u32));
		memcpy(&u64, bytes + number->at, number->size);
		set_u64(object, number->name, number->size == 4 ? u32 : u64);
	}
	if (!job->died_ns)
		json_object_del(object, "died_ns");
	if (!job->schedule) {
		json_object_del(object, "schedule");
		json_object_del(object, "missed");
	}
}

static int write_line(struct dump *dump, json_t *object)
{
	int ret;

	errno = 0;
	ret = json_dumpf(object, dump->out, JSON_COMPACT);

	json_decref(object);
	if (!ret && fputc('\n', dump->out) != EOF)
		return 0;
	return errno ? -errno : -EIO;
}

static int set_tube(struct dump *dump, json_t *object, const char *name, uint32_t number)
{
	struct tube_record tube;
	int ret = store_get_tube(dump->store, number, &tube);

	if (!ret)
		json_object_set_new(object, name, json_string(tube.name));
	return ret == -ENOENT ? -EBADMSG : ret;
}

static int set_place(struct dump *dump, json_t *object, const struct job_place *place)
{
	set_u64(object, "id", place->id);
	json_object_set_new(object, "state", json_string(store_state_names[place->state]));
	if (place->state == JOB_DELAYED)
		set_u64(object, "due_ns", place->order + dump->skew_ns);
	else if (place->state == JOB_WALL)
		set_u64(object, "due_ns", place->order);
	else if (place->state == JOB_BURIED)
		set_u64(object, "order", place->order);
	return set_tube(dump, object, "tube", place->tube);
}

static int dump_job(struct dump *dump, const struct job_record *job)
{
	json_t *object = json_object();
	const void *body;
	size_t len;
	int ret = store_get_body(dump->store, job->place.id, &body, &len);

	if (!ret)
		ret = set_place(dump, object, &job->place);
	if (!ret && job->origin)
		ret = set_tube(dump, object, "origin", job->origin);
	if (ret) {
		json_decref(object);
		return ret == -ENOENT ? -EBADMSG : ret;
	}
	set_u64(object, "created_ns", job->created_ns + dump->skew_ns);
	set_numbers(object, job);
	if (job->reason_len)
		set_bytes(object, "reason", job->reason, job->reason_len);
	if (job->key_len)
		set_bytes(object, "key", job->key, job->key_len);
	set_bytes(object, "body", body, len);
	return write_line(dump, object);
}

static bool dump_next(void *context, const struct store_entry *entry)
{
	struct dump *dump = context;

	if (entry->kind != 'j')
		return false;
	dump->ret = entry->sound ? dump_job(dump, &entry->job) : -EBADMSG;
	return !dump->ret;
}

static int dump_schedule(struct dump *dump, const struct schedule_record *schedule)
{
	json_t *object = json_object();
	const void *body;
	size_t len;
	int ret = store_get_schedule_body(dump->store, schedule->id, &body, &len);

	set_bytes(object, "every", schedule->name, schedule->name_len);
	if (!ret)
		ret = set_tube(dump, object, "tube", schedule->tube);
	if (ret) {
		json_decref(object);
		return ret == -ENOENT ? -EBADMSG : ret;
	}
	set_u64(object, "id", schedule->id);
	set_u64(object, "pri", schedule->pri);
	set_u64(object, "interval_ns", schedule->interval_ns);
	set_u64(object, "next_ns", schedule->next_ns);
	set_u64(object, "ttr_ns", schedule->ttr_ns);
	set_u64(object, "missed", schedule->missed);
	set_u64(object, "last", schedule->last);
	set_bytes(object, "body", body, len);
	return write_line(dump, object);
}

static bool dump_next_schedule(void *context, const struct store_entry *entry)
{
	struct dump *dump = context;

	if (entry->kind != 'e')
		return false;
	dump->ret = entry->sound ? dump_schedule(dump, &entry->schedule) : -EBADMSG;
	return !dump->ret;
}

static bool dump_tube(void *context, const struct tube_record *tube)
{
	const struct retry_policy *policy = &tube->policy;
	struct dump *dump = context;
	json_t *object;

	if (!policy->max_attempts)
		return true;
	object = json_pack("{s:s, s:{s:I, s:I, s:f, s:I, s:I, s:s}}", "tube", tube->name,
			   "policy", "max_attempts", (json_int_t)policy->max_attempts,
			   "base_ns", (json_int_t)policy->base_ns, "factor", policy->factor,
			   "cap_ns", (json_int_t)policy->cap_ns, "jitter_percent",
			   (json_int_t)policy->jitter_percent, "dead", policy->dead);
	dump->ret = object ? write_line(dump, object) : -ENOMEM;
	return !dump->ret;
}

int store_dump(struct store *store, FILE *out)
{
	struct dump dump = { .store = store, .out = out };
	int ret = store_each_tube(store, dump_tube, &dump);

	if (!ret && !dump.ret)
		ret = store_get_number(store, NUMBER_SKEW, 0, &dump.skew_ns);
	if (!ret && !dump.ret)
		ret = store_scan_entries(store, 'j', dump_next, &dump);
	if (!ret && !dump.ret)
		ret = store_scan_entries(store, 'e', dump_next_schedule, &dump);
	if (!ret)
		ret = dump.ret;
	return !ret && fflush(out) ? -errno : ret;
}
