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

#include "common/log.h"
#include "common/text.h"
#include "common/time.h"
#include "queue/cli/base64.h"
#include "queue/cli/dump.h"
#include "queue/cli/load.h"
#include "queue/integrity/open.h"
#include "queue/store/batch.h"
#include "queue/store/fault.h"
#include "queue/store/name.h"
#include "queue/store/numbers.h"
#include "queue/store/read.h"
#include "queue/store/schedule.h"
#include "queue/store/space.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"
#include "queue/store/writer.h"

/* The lines and the bytes that are put before a flush. */
#define LINES_A_PIECE	1000
#define PIECE_BYTES	(1u << 20)
/* There have to be ids above it: for later jobs, and for the gaps of repairs and backups. */
#define LOAD_ID_MAX	((1ull << 61) - 1)

#define KEY_BYTES	"letters, digits and \"-+/;.$_():@,=*\""

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
 * @in: the lines.
 * @start: where they begin in it.
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
	FILE *in;
	off_t start;
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

/* --- fields ------------------------------------------------------------------------------- */

/* Text without a NUL; NULL: there is no such field. */
static const char *get_text(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

/* 0 if there is no such field. */
static bool get_u64(const json_t *object, const char *name, uint64_t *number)
{
	const json_t *value = json_object_get(object, name);

	*number = (uint64_t)json_integer_value(value);
	return !value || (json_is_integer(value) && json_integer_value(value) >= 0);
}

/* The same, but it is at most @most, and anything else is said. */
static int get_number(struct load *load, const json_t *object, const char *name, uint64_t most,
		      uint64_t *number)
{
	if (get_u64(object, name, number) && *number <= most)
		return 0;
	return wrong(load, "\"%s\" is not a whole number from 0 to %" PRIu64, name, most);
}

/* The name comes from a file, which may have bytes that a terminal takes for commands. */
static int wrong_field(struct load *load, const char *name, const char *what)
{
	json_t *string = json_string(name);
	char *quoted = json_dumps(string, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	int ret = wrong(load, "%s has no field %s", what, quoted ? quoted : "of such a name");

	free(quoted);
	json_decref(string);
	return ret;
}

/* A misspelt field would count as left out. */
static int check_fields(struct load *load, const json_t *object, const char *const *names,
			const char *what)
{
	const char *name, *const *at;
	json_t *value;

	json_object_foreach((json_t *)object, name, value) {
		for (at = names; *at && strcmp(*at, name); at++)
			;
		if (!*at)
			return wrong_field(load, name, what);
	}
	return 0;
}

static int get_id(struct load *load, const json_t *object, uint64_t *id)
{
	if (get_u64(object, "id", id) && *id && *id <= LOAD_ID_MAX)
		return 0;
	return wrong(load, "need an \"id\" of 1 to %llu", LOAD_ID_MAX);
}

/* As in a put, a time to run of 0 is a second. */
static uint64_t ttr_ns(uint64_t ns)
{
	return ns ? ns : NSEC_PER_SEC;
}

/* A time on the wall clock, which may have been set, becomes one on the queue's clock. */
static uint64_t queue_time_ns(const struct load *load, int64_t wall_ns)
{
	int64_t skew_ns = (int64_t)load->skew_ns, ns;

	if (__builtin_sub_overflow(wall_ns, skew_ns, &ns))
		return skew_ns < 0 ? INT64_MAX : 0;
	return ns > 0 ? (uint64_t)ns : 0;
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

/* Find or create the tube whose name is the field @field. */
static int get_tube(struct load *load, const json_t *object, const char *field,
		    struct load_tube **tube)
{
	struct load_tube key = { .record.tube = load->next_tube };
	const char *name = get_text(object, field);

	if (!name || !name_is_tube(name, strlen(name)))
		return wrong(load, "need the name of a tube as \"%s\"", field);
	strcpy(key.record.name, name);
	*tube = RB_FIND(load_tubes, &load->tubes, &key);
	if (*tube)
		return 0;
	*tube = add_tube(load, &key.record);
	if (load->put) {
		store_put_tube(load->store, &(*tube)->record);
		store_put_number(load->store, NUMBER_TUBE, load->next_tube);
	}
	return 0;
}

static int get_policy(struct load *load, const json_t *object, struct retry_policy *policy)
{
	static const char *const fields[] = {
		"max_attempts", "base_ns", "factor", "cap_ns", "jitter_percent", "dead", NULL,
	};
	const char *dead = get_text(object, "dead");
	uint64_t attempts, jitter;
	int ret;

	memset(policy, 0, sizeof(*policy));
	ret = check_fields(load, object, fields, "a policy") ?:
		get_number(load, object, "max_attempts", UINT32_MAX, &attempts) ?:
		get_number(load, object, "base_ns", TEXT_DURATION_MAX_NS, &policy->base_ns) ?:
		get_number(load, object, "cap_ns", TEXT_DURATION_MAX_NS, &policy->cap_ns) ?:
		get_number(load, object, "jitter_percent", 100, &jitter);
	if (ret)
		return ret;
	if (!dead || (*dead && !name_is_tube(dead, strlen(dead))))
		return wrong(load, "\"dead\" is neither the name of a tube nor empty");
	policy->max_attempts = (uint32_t)attempts;
	policy->factor = json_number_value(json_object_get(object, "factor"));
	policy->jitter_percent = (uint32_t)jitter;
	strcpy(policy->dead, dead);
	if (!retry_policy_is_valid(policy))
		return wrong(load,
			     "need a \"max_attempts\" of at least 1, and a \"factor\" of 1 to 1000");
	return 0;
}

static int load_policy(struct load *load, const json_t *object)
{
	static const char *const fields[] = { "tube", "policy", NULL };
	struct retry_policy policy;
	struct load_tube *tube;
	int ret = check_fields(load, object, fields, "a line with a policy") ?:
		get_policy(load, json_object_get(object, "policy"), &policy) ?:
		get_tube(load, object, "tube", &tube);

	if (ret)
		return ret;
	tube->record.policy = policy;
	if (load->put)
		store_put_tube(load->store, &tube->record);
	return 0;
}

/* --- jobs --------------------------------------------------------------------------------- */

static int get_numbers(struct load *load, const json_t *object, struct job_record *job)
{
	const struct store_json_number *number;
	char *bytes = (char *)job;
	uint64_t u64;
	uint32_t u32;
	size_t i;
	int ret;

	for (i = 0; i < NR_STORE_JSON_NUMBERS; i++) {
		number = &store_json_numbers[i];
		ret = get_number(load, object, number->name,
				 number->size == 4 ? UINT32_MAX : INT64_MAX, &u64);
		if (ret)
			return ret;
		u32 = (uint32_t)u64;
		memcpy(bytes + number->at, number->size == 4 ? (void *)&u32 : (void *)&u64,
		       number->size);
	}
	if (job->ttr_ns > TEXT_DURATION_MAX_NS)
		return wrong(load, "\"ttr_ns\" is more than %llu", TEXT_DURATION_MAX_NS);
	job->ttr_ns = ttr_ns(job->ttr_ns);
	return 0;
}

/* Get the bytes of the field @name, or of @name and "64". The caller frees *@bytes. */
static bool get_bytes(const json_t *object, const char *name, uint8_t **bytes, size_t *len)
{
	const json_t *text = json_object_get(object, name), *encoded;
	char name64[16];

	*len = 0;
	*bytes = NULL;
	snprintf(name64, sizeof(name64), "%s64", name);
	encoded = json_object_get(object, name64);
	if (encoded)
		return !text && json_is_string(encoded) &&
			base64_decode(json_string_value(encoded), json_string_length(encoded),
				      bytes, len);
	if (!text)
		return true;
	if (!json_is_string(text))
		return false;
	*len = json_string_length(text);
	*bytes = malloc(*len + 1);
	if (*bytes)
		memcpy(*bytes, json_string_value(text), *len);
	return *bytes;
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

/* The caller frees *@body, which is NULL if there is no such field. */
static int get_body(struct load *load, const json_t *object, uint8_t **body, uint32_t *body_len)
{
	size_t len;

	if (!get_bytes(object, "body", body, &len))
		return wrong(load, "\"body\" is not text, or \"body64\" not base64");
	*body_len = (uint32_t)len;
	if (len <= JOB_BODY_MAX)
		return 0;
	free(*body);
	return wrong(load, "the body is longer than 1 GiB");
}

/* The state, or a negative number. */
static int state_of(const char *name)
{
	int state = JOB_BURIED;

	while (state >= 0 && (!name || strcmp(name, store_state_names[state])))
		state--;
	return state;
}

static int get_state(struct load *load, const json_t *object, struct job_place *place)
{
	const json_t *due = json_object_get(object, "due_ns");
	int state = state_of(get_text(object, "state")), ret;

	if (state < 0)
		return wrong(load, "need a \"state\": ready, delayed, wall or buried");
	place->state = (uint8_t)state;
	ret = state == JOB_BURIED ?
		get_number(load, object, "order", INT64_MAX, &place->order) : 0;
	if (ret)
		return ret;
	if (state != JOB_DELAYED && state != JOB_WALL)
		return 0;
	if (!json_is_integer(due) || (state == JOB_WALL && json_integer_value(due) < 0))
		return wrong(load, "need the time when the job is due as \"due_ns\"");
	place->order = state == JOB_WALL ? (uint64_t)json_integer_value(due) :
		queue_time_ns(load, json_integer_value(due));
	return 0;
}

/* A job from elsewhere, of which nobody knows how old it is, is new. */
static int get_created(struct load *load, const json_t *object, struct job_record *job)
{
	const json_t *created = json_object_get(object, "created_ns");

	if (created && !json_is_integer(created))
		return wrong(load, "\"created_ns\" is not a whole number");
	job->created_ns = queue_time_ns(load, created ? json_integer_value(created) :
					(int64_t)time_now_ns(CLOCK_REALTIME));
	return 0;
}

static int get_tubes(struct load *load, const json_t *object, struct job_record *job)
{
	struct load_tube *tube;
	int ret = get_tube(load, object, "tube", &tube);

	if (ret)
		return ret;
	job->place.tube = tube->record.tube;
	if (!json_object_get(object, "origin"))
		return 0;
	ret = get_tube(load, object, "origin", &tube);
	if (!ret)
		job->origin = tube->record.tube;
	return ret;
}

static int get_key(struct load *load, const json_t *object, struct job_record *job)
{
	int ret = get_field(load, object, "key", job->key, JOB_KEY_MAX, &job->key_len);

	if (!ret && job->key_len && !name_is_key(job->key, job->key_len))
		ret = wrong(load, "\"key\" is not of " KEY_BYTES);
	return ret;
}

static int check_death(struct load *load, const struct job_record *job)
{
	/* When a job dies, its key is free for another one. */
	if (job->key_len && (job->origin || job->died_ns))
		return wrong(load, "a dead job has no \"key\"");
	if (!job->origin != !job->died_ns)
		return wrong(load, "a dead job has \"origin\" and \"died_ns\", others neither");
	return 0;
}

static int get_job(struct load *load, const json_t *object, struct job_record *job)
{
	static const char *const fields[] = {
		"id", "tube", "state", "pri", "due_ns", "order", "created_ns", "delay_ns", "ttr_ns",
		"reserves", "timeouts", "releases", "buries", "kicks", "attempts", "origin",
		"died_ns", "schedule", "missed", "reason", "reason64", "key", "key64", "body",
		"body64", NULL,
	};
	int ret;

	memset(job, 0, sizeof(*job));
	ret = check_fields(load, object, fields, "a job") ?:
		get_id(load, object, &job->place.id) ?:
		get_numbers(load, object, job) ?:
		get_created(load, object, job) ?:
		get_tubes(load, object, job) ?:
		get_state(load, object, &job->place) ?:
		get_key(load, object, job) ?:
		check_death(load, job) ?:
		get_field(load, object, "reason", job->reason, JOB_REASON_MAX, &job->reason_len);
	job->place.keyed = job->key_len != 0;
	job->place.scheduled = job->schedule != 0;
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

/* --- room --------------------------------------------------------------------------------- */

/* Flush what was put, from time to time. */
static void flush_piece(struct load *load)
{
	if (load->put && (load->line % LINES_A_PIECE == 0 ||
			  store_batch_bytes(load->store) >= PIECE_BYTES))
		store_flush(load->store);
}

static int find_room(struct load *load, size_t bytes)
{
	if (store_has_room_for(load->store, bytes))
		return 0;
	wrong(load, "there is no room for it; the jobs before it were loaded");
	return -ENOSPC;
}

/* --- schedules ---------------------------------------------------------------------------- */

static int get_schedule(struct load *load, const json_t *object,
			struct schedule_record *schedule)
{
	static const char *const fields[] = {
		"every", "tube", "id", "pri", "interval_ns", "next_ns", "ttr_ns", "missed", "last",
		"body", "body64", NULL,
	};
	const char *name = get_text(object, "every");
	struct load_tube *tube;
	uint64_t pri;
	int ret;

	memset(schedule, 0, sizeof(*schedule));
	if (!name || !name_is_key(name, strlen(name)))
		return wrong(load, "\"every\" is not a name of " KEY_BYTES);
	schedule->name_len = (uint8_t)strlen(name);
	memcpy(schedule->name, name, schedule->name_len);
	ret = check_fields(load, object, fields, "a schedule") ?:
		get_id(load, object, &schedule->id) ?:
		get_number(load, object, "pri", UINT32_MAX, &pri) ?:
		get_number(load, object, "interval_ns", TEXT_DURATION_MAX_NS,
			   &schedule->interval_ns) ?:
		get_number(load, object, "next_ns", INT64_MAX, &schedule->next_ns) ?:
		get_number(load, object, "ttr_ns", TEXT_DURATION_MAX_NS, &schedule->ttr_ns) ?:
		get_number(load, object, "missed", INT64_MAX, &schedule->missed) ?:
		get_number(load, object, "last", INT64_MAX, &schedule->last);
	if (ret)
		return ret;
	if (schedule->interval_ns < NSEC_PER_SEC || !schedule->next_ns)
		return wrong(load, "need \"interval_ns\" of a second or more, and \"next_ns\"");
	ret = get_tube(load, object, "tube", &tube);
	if (ret)
		return ret;
	schedule->ttr_ns = ttr_ns(schedule->ttr_ns);
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
	uint32_t len;
	int ret = get_schedule(load, object, &schedule);

	if (!ret)
		ret = get_body(load, object, &body, &len);
	if (ret)
		return ret;
	schedule.body_len = len;
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
	uint32_t len;
	int ret = get_job(load, object, &job);

	if (!ret)
		ret = get_body(load, object, &body, &len);
	if (ret)
		return ret;
	job.body_len = len;
	if (load->put)
		store_put(load->store, &job, body ? body : (void *)"");
	else
		ret = check_job(load, &job);
	free(body);
	return ret;
}

static int load_line(struct load *load, const char *line, size_t len)
{
	json_error_t error;
	json_t *object;
	int ret = load->put ? find_room(load, len) : 0;

	if (ret)
		return ret;
	object = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	if (!json_is_object(object)) {
		json_decref(object);
		return wrong(load, "not a line of JSON: %s", object ? "no object" : error.text);
	}
	if (json_object_get(object, "policy"))
		ret = load_policy(load, object);
	else if (json_object_get(object, "every"))
		ret = load_schedule(load, object);
	else
		ret = load_job(load, object);
	json_decref(object);
	if (!ret)
		flush_piece(load);
	return ret;
}

static int cannot_read(void)
{
	int error = errno;

	log_say(LOG_ERR, "the jobs cannot be read: %s", strerror(error));
	return -error;
}

static int load_lines(struct load *load)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int ret = 0;

	if (fseeko(load->in, load->start, SEEK_SET))
		return cannot_read();
	for (load->line = 1; !ret && (len = getline(&line, &size, load->in)) > 0; load->line++)
		ret = load_line(load, line, (size_t)len);
	/* Of a line for which there is no memory, ferror() is not told. */
	if (!ret && !feof(load->in))
		ret = cannot_read();
	free(line);
	return ret;
}

/* Returns @in if it can be read twice, else a copy; NULL on an error. */
static FILE *seekable(FILE *in, off_t *start)
{
	char bytes[4096];
	FILE *copy;
	int error;
	size_t n;

	*start = ftello(in);
	if (*start >= 0)
		return in;
	*start = 0;
	copy = tmpfile();
	if (!copy)
		return NULL;
	while ((n = fread(bytes, 1, sizeof(bytes), in)))
		fwrite(bytes, 1, n, copy);
	if (!ferror(in) && !ferror(copy) && !fflush(copy))
		return copy;
	error = errno;
	fclose(copy);
	errno = error;
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
	uint64_t next_tube;
	int ret = store_get_number(load->store, NUMBER_TUBE, 1, &next_tube);

	if (ret)
		return ret;
	forget_tubes(load);
	load->put = put;
	load->next_tube = (uint32_t)next_tube;
	return store_each_tube(load->store, take_tube, load);
}

static int load_all(struct load *load)
{
	int ret = begin(load, false);

	if (!ret)
		ret = store_get_number(load->store, NUMBER_SKEW, 0, &load->skew_ns);
	if (!ret)
		ret = load_lines(load);
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
	return ret ? ret : load_lines(load);
}

int store_load(const struct store_config *config, FILE *in)
{
	struct load load = { .line = 0 };
	int ret;

	load.in = seekable(in, &load.start);
	if (!load.in)
		return cannot_read();
	ret = store_open(&load.store, config);
	if (ret) {
		store_cannot_open(config->dir, ret);
	} else {
		ret = load_all(&load);
		store_close(load.store);
	}
	forget_tubes(&load);
	free(load.ids.seen);
	free(load.keys.seen);
	free(load.names.seen);
	if (load.in != in)
		fclose(load.in);
	return ret;
}
