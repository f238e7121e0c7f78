// SPDX-License-Identifier: GPL-2.0
/*
 * Load of the lines that store_dump() has written, see dump.c.
 *
 * The lines are read twice. The first pass checks all of them, also against each other and
 * against the store, so that a wrong line is named and nothing is loaded. The second pass puts
 * the jobs. Input that cannot be read twice is copied to a temporary file first.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "queue/cli/base64.h"
#include "queue/cli/dump.h"
#include "queue/cli/load.h"
#include "queue/integrity/open.h"
#include "queue/store/batch.h"
#include "queue/store/fault.h"
#include "queue/store/read.h"
#include "queue/store/schedule.h"
#include "queue/store/space.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"

#define JOBS_A_COMMIT	1000

/* An id or the hash of a key, and the line that has it. */
struct seen {
	uint64_t what;
	uint64_t line;
};

struct seen_list {
	struct seen *seen;
	size_t nr;
	size_t max;
};

/* A tube of the store, by name. */
struct load_tube {
	struct tube_record record;

	RB_ENTRY(load_tube) entry;
};

RB_HEAD(load_tubes, load_tube);

/**
 * struct load - state of a load
 * @store: the store.
 * @line: number of the current line.
 * @put: this is the second pass.
 * @skew_ns: the wall clock minus the queue's clock.
 * @next_tube: number of the next new tube.
 * @tubes: tubes of the store, and new ones.
 * @ids: ids of the jobs of the lines.
 * @keys: hashes of their keys with their tubes.
 * @names: the same of the names of the schedules.
 */
struct load {
	struct store *store;
	uint64_t line;
	bool put;
	uint64_t skew_ns;
	uint32_t next_tube;
	struct load_tubes tubes;
	struct seen_list ids;
	struct seen_list keys;
	struct seen_list names;
};

static int compare_names(const struct load_tube *a, const struct load_tube *b)
{
	return strcmp(a->record.name, b->record.name);
}

RB_PROTOTYPE(load_tubes, load_tube, entry, compare_names)
RB_GENERATE(load_tubes, load_tube, entry, compare_names)

static int __attribute__((format(printf, 2, 3)))
wrong(const struct load *load, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	store_say(load->store, LOG_ERR, "line %" PRIu64 ": %s", load->line, text);
	return -EINVAL;
}

/* --- tubes -------------------------------------------------------------------------------- */

static struct load_tube *add_tube(struct load *load, const struct tube_record *record)
{
	struct load_tube *tube = calloc(1, sizeof(*tube));

	if (!tube)
		abort();
	tube->record = *record;
	RB_INSERT(load_tubes, &load->tubes, tube);
	if (record->tube >= load->next_tube)
		load->next_tube = record->tube + 1;
	return tube;
}

static bool take_tube(void *context, const struct tube_record *record)
{
	add_tube(context, record);
	return true;
}

/* Find or create the tube with a name; NULL if the name is not valid. */
static struct load_tube *get_tube(struct load *load, const char *name)
{
	struct load_tube key = { .record.tube = load->next_tube }, *tube;
	size_t len = name ? strlen(name) : 0;

	if (!len || len > TUBE_NAME_MAX)
		return NULL;
	memcpy(key.record.name, name, len);
	tube = RB_FIND(load_tubes, &load->tubes, &key);
	if (tube)
		return tube;
	tube = add_tube(load, &key.record);
	if (load->put) {
		store_put_tube(load->store, &tube->record);
		store_put_number(load->store, NUMBER_TUBE, load->next_tube);
	}
	return tube;
}

static int load_policy(struct load *load, const char *name, const json_t *object)
{
	struct load_tube *tube = get_tube(load, name);
	json_int_t attempts = 0, base = 0, cap = 0, jitter = 0;
	struct retry_policy *policy;
	const char *dead = "";
	double factor = 0;

	if (!tube)
		return wrong(load, "need a \"tube\" of 1 to %d bytes", TUBE_NAME_MAX);
	if (json_unpack((json_t *)object, "{s:I, s:I, s:F, s:I, s:I, s:s}", "max_attempts",
			&attempts, "base_ns", &base, "factor", &factor, "cap_ns", &cap,
			"jitter_percent", &jitter, "dead", &dead) ||
	    attempts < 1 || attempts > UINT32_MAX || jitter < 0 || jitter > 100 ||
	    strlen(dead) > TUBE_NAME_MAX)
		return wrong(load, "the policy is not one");
	policy = &tube->record.policy;
	policy->max_attempts = (uint32_t)attempts;
	policy->base_ns = (uint64_t)base;
	policy->factor = factor;
	policy->cap_ns = (uint64_t)cap;
	policy->jitter_percent = (uint32_t)jitter;
	memset(policy->dead, 0, sizeof(policy->dead));
	memcpy(policy->dead, dead, strlen(dead));
	if (load->put)
		store_put_tube(load->store, &tube->record);
	return 0;
}

/* --- jobs --------------------------------------------------------------------------------- */

static bool get_u64(const json_t *object, const char *name, uint64_t *number)
{
	const json_t *value = json_object_get(object, name);

	*number = value ? (uint64_t)json_integer_value(value) : 0;
	return !value || json_is_integer(value);
}

static int get_numbers(struct load *load, const json_t *object, struct job_record *job)
{
	const struct store_json_number *number;
	char *bytes = (char *)job;
	uint64_t u64;
	uint32_t u32;
	size_t i;

	for (i = 0; i < NR_STORE_JSON_NUMBERS; i++) {
		number = &store_json_numbers[i];
		if (!get_u64(object, number->name, &u64) ||
		    (number->size == 4 && u64 > UINT32_MAX))
			return wrong(load, "\"%s\" is not such a number", number->name);
		u32 = (uint32_t)u64;
		memcpy(bytes + number->at, number->size == 4 ? (void *)&u32 : (void *)&u64,
		       number->size);
	}
	return 0;
}

/* Get the bytes of the field @name, or of @name and "64". The caller frees *@bytes. */
static bool get_bytes(const json_t *object, const char *name, uint8_t **bytes, size_t *len)
{
	const json_t *text = json_object_get(object, name);
	char name64[16];

	*len = 0;
	*bytes = NULL;
	if (json_is_string(text)) {
		*len = json_string_length(text);
		*bytes = malloc(*len + 1);
		if (*bytes)
			memcpy(*bytes, json_string_value(text), *len);
		return *bytes;
	}
	snprintf(name64, sizeof(name64), "%s64", name);
	if (!text)
		text = json_object_get(object, name64);
	if (!text)
		return true;
	return json_is_string(text) && base64_decode(json_string_value(text),
						     json_string_length(text), bytes, len);
}

/* The same, but copy them to a field of the record. */
static int get_field(struct load *load, const json_t *object, const char *name, char *field,
		     size_t most, uint16_t *field_len)
{
	uint8_t *bytes;
	size_t len;
	bool ok = get_bytes(object, name, &bytes, &len) && len <= most;

	if (ok && len)
		memcpy(field, bytes, len);
	*field_len = (uint16_t)len;
	free(bytes);
	return ok ? 0 : wrong(load, "\"%s\" is not text of at most %zu bytes", name, most);
}

static int get_state(struct load *load, const json_t *object, struct job_place *place)
{
	const char *name = json_string_value(json_object_get(object, "state"));

	for (place->state = 0; place->state <= JOB_BURIED; place->state++) {
		if (!name || strcmp(name, store_state_names[place->state]))
			continue;
		if (place->state == JOB_READY)
			return 0;
		if (!get_u64(object, place->state == JOB_BURIED ? "order" : "due_ns",
			     &place->order))
			break;
		if (place->state == JOB_DELAYED)
			place->order -= load->skew_ns;
		return 0;
	}
	return wrong(load, "need a \"state\" of ready, delayed, wall, buried, and its time");
}

static int get_tubes(struct load *load, const json_t *object, struct job_record *job)
{
	const json_t *origin = json_object_get(object, "origin");
	struct load_tube *tube;

	tube = get_tube(load, json_string_value(json_object_get(object, "tube")));
	if (!tube)
		return wrong(load, "need a \"tube\" of 1 to %d bytes", TUBE_NAME_MAX);
	job->place.tube = tube->record.tube;
	if (!origin)
		return 0;
	tube = get_tube(load, json_string_value(origin));
	if (!tube)
		return wrong(load, "need an \"origin\" of 1 to %d bytes", TUBE_NAME_MAX);
	job->origin = tube->record.tube;
	return 0;
}

static int get_job(struct load *load, const json_t *object, struct job_record *job)
{
	int ret;

	memset(job, 0, sizeof(*job));
	if (!get_u64(object, "id", &job->place.id) || !job->place.id ||
	    job->place.id > INT64_MAX)
		return wrong(load, "need an \"id\"");
	ret = get_numbers(load, object, job);
	if (!ret)
		ret = get_tubes(load, object, job);
	if (!ret)
		ret = get_state(load, object, &job->place);
	if (!ret)
		ret = get_field(load, object, "key", job->key, JOB_KEY_MAX, &job->key_len);
	if (!ret)
		ret = get_field(load, object, "reason", job->reason, JOB_REASON_MAX,
				&job->reason_len);
	job->place.keyed = job->key_len != 0;
	job->place.scheduled = job->schedule != 0;
	job->created_ns -= load->skew_ns;
	return ret;
}

/* --- what was seen ------------------------------------------------------------------------ */

static void see(struct load *load, struct seen_list *list, uint64_t what)
{
	if (list->nr == list->max) {
		list->max = list->max ? list->max * 2 : 1024;
		list->seen = reallocarray(list->seen, list->max, sizeof(*list->seen));
		if (!list->seen)
			abort();
	}
	list->seen[list->nr++] = (struct seen){ .what = what, .line = load->line };
}

static uint64_t hash_key(uint32_t tube, const char *key, size_t len)
{
	uint64_t hash = (14695981039346656037ull ^ tube) * 1099511628211ull;
	size_t i;

	for (i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)key[i]) * 1099511628211ull;
	return hash;
}

static int by_what(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static int see_twice(struct load *load, struct seen_list *list, const char *what)
{
	size_t i;

	if (list->nr)
		qsort(list->seen, list->nr, sizeof(*list->seen), by_what);
	for (i = 1; i < list->nr; i++) {
		if (list->seen[i].what != list->seen[i - 1].what)
			continue;
		load->line = list->seen[i].line;
		return wrong(load, "the %s is that of line %" PRIu64 " too", what,
			     list->seen[i - 1].line);
	}
	return 0;
}

static int check_job(struct load *load, const struct job_record *job)
{
	struct job_record there;
	uint64_t id;
	int ret = store_get(load->store, job->place.id, &there);

	if (!ret)
		return wrong(load, "the store has a job %" PRIu64, job->place.id);
	see(load, &load->ids, job->place.id);
	if (ret != -ENOENT || !job->key_len)
		return ret == -ENOENT ? 0 : ret;
	see(load, &load->keys, hash_key(job->place.tube, job->key, job->key_len));
	ret = store_get_key(load->store, job->place.tube, job->key, job->key_len, &id);
	if (!ret)
		return wrong(load, "the store has job %" PRIu64 " with this key", id);
	return ret == -ENOENT ? 0 : ret;
}

/* --- schedules ---------------------------------------------------------------------------- */

static int get_schedule(struct load *load, const json_t *object,
			struct schedule_record *schedule)
{
	const char *tube_name = json_string_value(json_object_get(object, "tube"));
	const char *name = json_string_value(json_object_get(object, "every"));
	struct load_tube *tube;
	uint64_t pri;

	memset(schedule, 0, sizeof(*schedule));
	if (!name || !*name || strlen(name) > JOB_KEY_MAX)
		return wrong(load, "\"every\" is not a name of 1 to %d bytes", JOB_KEY_MAX);
	schedule->name_len = (uint8_t)strlen(name);
	memcpy(schedule->name, name, schedule->name_len);
	if (!get_u64(object, "id", &schedule->id) || !schedule->id || schedule->id > INT64_MAX)
		return wrong(load, "need an \"id\"");
	if (!get_u64(object, "pri", &pri) || pri > UINT32_MAX ||
	    !get_u64(object, "interval_ns", &schedule->interval_ns) ||
	    schedule->interval_ns < NSEC_PER_SEC ||
	    schedule->interval_ns > TEXT_DURATION_MAX_NS ||
	    !get_u64(object, "next_ns", &schedule->next_ns) || !schedule->next_ns ||
	    !get_u64(object, "ttr_ns", &schedule->ttr_ns) ||
	    !get_u64(object, "missed", &schedule->missed) ||
	    !get_u64(object, "last", &schedule->last))
		return wrong(load, "the schedule is not one");
	tube = get_tube(load, tube_name);
	if (!tube)
		return wrong(load, "need a \"tube\" of 1 to %d bytes", TUBE_NAME_MAX);
	schedule->pri = (uint32_t)pri;
	schedule->tube = tube->record.tube;
	schedule->at_ns = schedule->next_ns;
	return 0;
}

static int check_schedule(struct load *load, const struct schedule_record *schedule)
{
	struct schedule_record there;
	uint64_t id;
	int ret = store_get_schedule(load->store, schedule->id, &there);

	if (!ret)
		return wrong(load, "the store has a schedule %" PRIu64, schedule->id);
	if (ret != -ENOENT)
		return ret;
	see(load, &load->ids, schedule->id);
	see(load, &load->names, hash_key(schedule->tube, schedule->name, schedule->name_len));
	ret = store_find_schedule(load->store, schedule->tube, schedule->name, &id);
	if (!ret)
		return wrong(load, "the store has a schedule of this name");
	return ret == -ENOENT ? 0 : ret;
}

static int load_schedule(struct load *load, const json_t *object)
{
	struct schedule_record schedule;
	uint8_t *body;
	size_t len;
	int ret = get_schedule(load, object, &schedule);

	if (ret)
		return ret;
	if (!get_bytes(object, "body", &body, &len) || len > UINT32_MAX)
		return wrong(load, "\"body\" is not text, or \"body64\" not base64");
	schedule.body_len = (uint32_t)len;
	if (load->put)
		store_put_schedule(load->store, &schedule, body ? body : (void *)"");
	else
		ret = check_schedule(load, &schedule);
	free(body);
	return ret;
}

/* --- lines -------------------------------------------------------------------------------- */

static int load_job(struct load *load, const json_t *object)
{
	struct job_record job;
	uint8_t *body;
	size_t len;
	int ret = get_job(load, object, &job);

	if (ret)
		return ret;
	if (!get_bytes(object, "body", &body, &len) || len > UINT32_MAX)
		return wrong(load, "\"body\" is not text, or \"body64\" not base64");
	job.body_len = (uint32_t)len;
	if (load->put)
		store_put(load->store, &job, body ? body : (void *)"");
	else
		ret = check_job(load, &job);
	free(body);
	return ret;
}

/* Flush what was put, from time to time. */
static int flush_piece(struct load *load)
{
	if (!load->put || load->line % JOBS_A_COMMIT)
		return 0;
	store_flush(load->store);
	if (store_has_room(load->store))
		return 0;
	wrong(load, "there is no room for more; those before it were loaded");
	return -ENOSPC;
}

static int load_line(struct load *load, const char *line, size_t len)
{
	json_error_t error;
	json_t *object = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	const json_t *policy;
	int ret;

	if (!json_is_object(object)) {
		json_decref(object);
		return wrong(load, "not a line of JSON: %s", object ? "no object" : error.text);
	}
	policy = json_object_get(object, "policy");
	if (policy)
		ret = load_policy(load, json_string_value(json_object_get(object, "tube")),
				  policy);
	else if (json_object_get(object, "every"))
		ret = load_schedule(load, object);
	else
		ret = load_job(load, object);
	json_decref(object);
	return ret ? ret : flush_piece(load);
}

static int load_lines(struct load *load, FILE *in)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int ret = 0;

	rewind(in);
	for (load->line = 1; !ret && (len = getline(&line, &size, in)) > 0; load->line++)
		ret = load_line(load, line, (size_t)len);
	free(line);
	return !ret && ferror(in) ? -EIO : ret;
}

/* Returns @in if it can be read twice, else a copy; NULL on an error. */
static FILE *seekable(FILE *in)
{
	char bytes[4096];
	FILE *copy;
	size_t n;

	if (!fseeko(in, 0, SEEK_CUR))
		return in;
	copy = tmpfile();
	if (!copy)
		return NULL;
	while ((n = fread(bytes, 1, sizeof(bytes), in)))
		fwrite(bytes, 1, n, copy);
	if (!ferror(in) && !ferror(copy) && !fflush(copy))
		return copy;
	fclose(copy);
	return NULL;
}

static void forget_tubes(struct load *load)
{
	struct load_tube *tube;

	while ((tube = RB_MIN(load_tubes, &load->tubes))) {
		RB_REMOVE(load_tubes, &load->tubes, tube);
		free(tube);
	}
}

/* Forget the tubes that the first pass has created. */
static int begin(struct load *load, bool put)
{
	forget_tubes(load);
	load->put = put;
	load->next_tube = (uint32_t)store_get_number(load->store, NUMBER_TUBE, 1);
	return store_each_tube(load->store, take_tube, load);
}

static int load_all(struct load *load, FILE *in)
{
	int ret = begin(load, false);

	load->skew_ns = store_get_number(load->store, NUMBER_SKEW, 0);
	if (!ret)
		ret = load_lines(load, in);
	if (!ret)
		ret = see_twice(load, &load->ids, "id");
	if (!ret)
		ret = see_twice(load, &load->keys, "key");
	if (!ret)
		ret = see_twice(load, &load->names, "name");
	if (!ret)
		ret = begin(load, true);
	/* Sorted: the last one is the highest. Later ids may have been given and deleted. */
	if (!ret && load->ids.nr)
		store_skip_ids(load->store, load->ids.seen[load->ids.nr - 1].what);
	return ret ? ret : load_lines(load, in);
}

int store_load(const struct store_config *config, FILE *in)
{
	struct load load = { .line = 0 };
	FILE *lines = seekable(in);
	int ret;

	if (!lines)
		return -EIO;
	ret = store_open(&load.store, config);
	if (!ret) {
		ret = load_all(&load, lines);
		store_close(load.store);
	}
	forget_tubes(&load);
	free(load.ids.seen);
	free(load.keys.seen);
	free(load.names.seen);
	if (lines != in)
		fclose(lines);
	return ret;
}
