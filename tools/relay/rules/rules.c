// SPDX-License-Identifier: GPL-2.0
/* The rules of the relay: what is to be done with a record. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "relay/rules/rules.h"
#include "common/retry_policy.h"
#include "common/util.h"

#define NS_PER_MS	1000000ULL

/* The head of a bucket waits longer than its width by this part of it, or of H if that is less. */
#define LINGER_PART	32

/* Small buckets: for records that give way, and for those whose target cannot be written. */
static const uint64_t small_s[] = { 10, 60 };

/* --- buckets -------------------------------------------------------------------------- */

static void add_bucket(struct relay_rules *rules, uint64_t width_s)
{
	rules->width_ms[rules->nr_buckets] = width_s * 1000 / rules->scale;
	rules->width_s[rules->nr_buckets] = width_s;
	rules->nr_buckets++;
}

void relay_rules_init(struct relay_rules *rules, const char *topic, uint64_t horizon_ms,
		      uint64_t scale)
{
	uint64_t horizon_s = horizon_ms / 1000, width_s;
	size_t i;

	*rules = (struct relay_rules){ .topic = topic, .scale = scale };
	rules->horizon_ms = horizon_ms / scale;
	rules->linger_ms = rules->horizon_ms / LINGER_PART;
	for (i = 0; i < ARRAY_SIZE(small_s) && small_s[i] < horizon_s; i++)
		add_bucket(rules, small_s[i]);
	rules->nr_small = rules->nr_buckets;
	for (width_s = horizon_s; width_s <= RELAY_WIDEST_MS / 1000; width_s *= 2)
		add_bucket(rules, width_s);
}

unsigned int relay_bucket(const struct relay_rules *rules, uint64_t remaining_ms)
{
	unsigned int bucket = rules->nr_buckets - 1;

	while (bucket > rules->nr_small &&
	       rules->width_ms[bucket] > remaining_ms - rules->horizon_ms)
		bucket--;
	return bucket;
}

uint64_t relay_linger_ms(const struct relay_rules *rules, uint64_t width_ms)
{
	return MIN(width_ms / LINGER_PART, rules->linger_ms);
}

/* How long before a record is due it leaves a bucket at the latest: all but the linger. */
static uint64_t leave_ms(const struct relay_rules *rules, uint64_t width_ms)
{
	return RELAY_MARGIN_MS / rules->scale + relay_linger_ms(rules, width_ms);
}

int relay_give_way_bucket(const struct relay_rules *rules, uint64_t remaining_ms)
{
	int bucket;

	for (bucket = rules->nr_buckets - 1; bucket >= 0; bucket--) {
		uint64_t width_ms = rules->width_ms[bucket];

		if (width_ms + leave_ms(rules, width_ms) <= remaining_ms)
			break;
	}
	return bucket;
}

unsigned int relay_hold_bucket(const struct relay_rules *rules, uint32_t tries)
{
	uint64_t least_s = small_s[MIN(tries, ARRAY_SIZE(small_s) - 1)];
	unsigned int bucket = tries < ARRAY_SIZE(small_s) ? 0 : rules->nr_small;

	while (bucket + 1 < rules->nr_buckets && rules->width_s[bucket] < least_s)
		bucket++;
	return bucket;
}

void relay_bucket_name(const struct relay_rules *rules, uint64_t width_s,
		       char name[RELAY_TOPIC_MAX + 1])
{
	snprintf(name, RELAY_TOPIC_MAX + 1, "%s" RELAY_BUCKET_INFIX "%" PRIu64
		 RELAY_BUCKET_SUFFIX, rules->topic, width_s);
}

bool relay_is_bucket(const struct relay_rules *rules, const char *topic, uint64_t *width_ms)
{
	char name[RELAY_TOPIC_MAX + 1];
	size_t len = strlen(rules->topic) + sizeof(RELAY_BUCKET_INFIX) - 1;
	uint64_t width_s;

	if (strlen(topic) <= len || sscanf(topic + len, "%9" SCNu64, &width_s) != 1)
		return false;
	/* Only one spelling is a bucket's: without a sign or leading zeros. */
	relay_bucket_name(rules, width_s, name);
	*width_ms = width_s * 1000 / rules->scale;
	return width_s && !strcmp(topic, name);
}

/* --- headers -------------------------------------------------------------------------- */

/* Parse decimal digits and nothing else, up to @max. */
static bool parse_number(const struct relay_text *text, uint64_t max, uint64_t *number)
{
	size_t i;

	*number = 0;
	for (i = 0; i < text->len; i++) {
		unsigned int digit = (unsigned char)text->data[i] - '0';

		if (digit > 9 || *number > (max - digit) / 10)
			return false;
		*number = *number * 10 + digit;
	}
	return text->len;
}

static bool has_topic_letters(const struct relay_text *name)
{
	size_t i;

	for (i = 0; i < name->len; i++)
		if (!isalnum((unsigned char)name->data[i]) && !memchr("._-", name->data[i], 3))
			return false;
	return true;
}

/* Is it the rest of a bucket's name? All that look so are: none is a target by mistake. */
static bool is_bucket_rest(const char *rest)
{
	size_t infix_len = strlen(RELAY_BUCKET_INFIX), digits;

	if (strncmp(rest, RELAY_BUCKET_INFIX, infix_len))
		return false;
	rest += infix_len;
	digits = strspn(rest, "0123456789");
	return digits && !strcmp(rest + digits, RELAY_BUCKET_SUFFIX);
}

/* Only producers write to the topic of delays, and only relays to the others: none is a target. */
static bool is_own_topic(const struct relay_rules *rules, const char *name)
{
	size_t len = strlen(rules->topic);
	const char *rest = name + len;

	if (strncmp(name, rules->topic, len))
		return false;
	return !*rest || !strcmp(rest, RELAY_DONE_SUFFIX) ||
		!strcmp(rest, RELAY_CANCELLED_SUFFIX) || !strcmp(rest, RELAY_INVALID_SUFFIX) ||
		is_bucket_rest(rest);
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	return len > suffix_len && !strcmp(name + len - suffix_len, suffix);
}

static bool is_allowed(const struct relay_rules *rules, const char *name)
{
	return !rules->targets || !regexec(rules->targets, name, 0, NULL, 0);
}

/* The same for dead letters, which are allowed if their target is. */
static bool is_allowed_dead(const struct relay_rules *rules, const char *name)
{
	char target[RELAY_TOPIC_MAX + 1];

	if (!has_suffix(name, RELAY_DEAD_SUFFIX))
		return false;
	snprintf(target, sizeof(target), "%.*s",
		 (int)(strlen(name) - strlen(RELAY_DEAD_SUFFIX)), name);
	return is_allowed(rules, target);
}

/* Returns what is wrong with a name that has only the letters of one, or NULL. */
static const char *check_name(const struct relay_rules *rules, const char *name, bool held)
{
	bool may_be_long = held && has_suffix(name, RELAY_DEAD_SUFFIX);

	if (strlen(name) > RELAY_TARGET_MAX && !may_be_long)
		return RELAY_TARGET " is longer than 244 bytes";
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return RELAY_TARGET " is not a name of a topic";
	if (!strncmp(name, "__", 2))
		return RELAY_TARGET " begins with __, as the topics of Kafka itself";
	if (is_own_topic(rules, name))
		return RELAY_TARGET " is a topic of the relay's own";
	if (!is_allowed(rules, name) && !(held && is_allowed_dead(rules, name)))
		return RELAY_TARGET " is not one of the allowed targets (--targets)";
	return NULL;
}

/* Returns what is wrong with the target, or NULL. @held: the record has tries. */
static const char *check_target(const struct relay_rules *rules, const struct relay_text *target,
				bool held)
{
	char name[RELAY_TOPIC_MAX + 1];

	if (!target->data || !target->len)
		return "there is no " RELAY_TARGET;
	if (target->len > RELAY_TOPIC_MAX)
		return RELAY_TARGET " is longer than 244 bytes";
	if (!has_topic_letters(target))
		return RELAY_TARGET " is not a name of a topic";
	snprintf(name, sizeof(name), "%.*s", (int)target->len, target->data);
	return check_name(rules, name, held);
}

/* Returns what is wrong with the number of attempts, or NULL. */
static const char *check_attempt(const struct relay_record *record, uint32_t *attempt)
{
	uint64_t number = 0;

	if (record->attempt.data && !parse_number(&record->attempt, UINT32_MAX, &number))
		return RELAY_ATTEMPT " is not a number from 1 to 4294967295";
	*attempt = number;
	return NULL;
}

/* Only a relay writes these headers, into a bucket. Other ones, and wrong ones, are ignored. */
static void read_tries(const struct relay_record *record, struct relay_decision *decision)
{
	uint64_t number;

	if (!record->width_ms || !record->tries.data ||
	    !parse_number(&record->tries, UINT32_MAX, &number) || !number)
		return;
	decision->tries = number;
	if (record->held_since.data && parse_number(&record->held_since, INT64_MAX, &number))
		decision->held_since_ms = number;
}

/* --- when a record is due ------------------------------------------------------------- */

static const char *due_at(const struct relay_record *record, struct relay_decision *decision)
{
	if (record->delay.data)
		return "there are both " RELAY_DELIVER_AT " and " RELAY_DELAY;
	if (!parse_number(&record->deliver_at, INT64_MAX, &decision->due_ms))
		return RELAY_DELIVER_AT " is not a time in ms since 1970";
	if (decision->due_ms < RELAY_TIME_MIN_MS)
		return RELAY_DELIVER_AT
			" is before 2001: it must be in ms since 1970, and is probably in seconds";
	return NULL;
}

static const char *due_after(const struct relay_rules *rules, const struct relay_record *record,
			     struct relay_decision *decision)
{
	uint64_t delay_ms;

	if (!parse_number(&record->delay, RELAY_DELAY_MAX_MS, &delay_ms))
		return RELAY_DELAY " is not a time in ms of at most 10 years";
	if (record->timestamp_ms < 0)
		return "the record has no timestamp";
	decision->due_ms = record->timestamp_ms + delay_ms / rules->scale;
	return NULL;
}

/* A number from -1 to 1 (the finish of splitmix64). */
static double share_of(uint64_t seed)
{
	seed += 0x9e3779b97f4a7c15;
	seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
	seed = (seed ^ seed >> 27) * 0x94d049bb133111eb;
	seed ^= seed >> 31;
	return seed / (double)UINT64_MAX * 2 - 1;
}

static const char *due_by_policy(const struct relay_rules *rules,
				 const struct relay_record *record,
				 struct relay_decision *decision)
{
	uint64_t delay_ns;

	if (!decision->attempt)
		return RELAY_ATTEMPT " of a retry is 0";
	if (record->timestamp_ms < 0)
		return "the record has no timestamp";
	decision->due_ms = record->timestamp_ms;
	if (decision->attempt >= record->policy->max_attempts) {
		decision->action = RELAY_BURY;
		return NULL;
	}
	delay_ns = retry_policy_delay_ns(record->policy, decision->attempt,
					 share_of(record->seed));
	decision->due_ms += delay_ns / NS_PER_MS / rules->scale;
	return NULL;
}

static const char *due_of_parked(const struct relay_record *record,
				 struct relay_decision *decision)
{
	if (!record->due.data || !parse_number(&record->due, INT64_MAX, &decision->due_ms))
		return RELAY_DUE " of a parked record is not a time in ms since 1970";
	return NULL;
}

/* Find out when a record is due. Returns why that is impossible, or NULL. */
static const char *find_due(const struct relay_rules *rules, const struct relay_record *record,
			    struct relay_decision *decision)
{
	if (record->width_ms)
		return due_of_parked(record, decision);
	if (record->deliver_at.data)
		return due_at(record, decision);
	if (record->delay.data)
		return due_after(rules, record, decision);
	if (record->attempt.data)
		return due_by_policy(rules, record, decision);
	return "there is no " RELAY_DELIVER_AT ", " RELAY_DELAY " or " RELAY_ATTEMPT;
}

/* --- what is to be done --------------------------------------------------------------- */

/*
 * When the head of a bucket is ready. It is ready at once if no relay has parked it, or if it
 * says that it was parked in the future: otherwise all records behind it would wait for that.
 * It waits less than its width only if its bucket is too wide: what is parked for its time has H
 * left after its width, and would be parked again and again if it had to leave before that.
 */
static uint64_t ready_ms(const struct relay_rules *rules, const struct relay_record *record,
			 uint64_t now_ms, const struct relay_decision *decision)
{
	uint64_t before_ms = MIN(leave_ms(rules, record->width_ms), rules->horizon_ms);
	uint64_t parked_ms;

	if (!record->parked.data || !parse_number(&record->parked, INT64_MAX, &parked_ms))
		return 0;
	if (parked_ms > now_ms + RELAY_CLOCKS_DIFFER_MS)
		return 0;
	parked_ms += record->width_ms;
	if (decision->tries)
		return parked_ms;
	return MIN(parked_ms, decision->due_ms - MIN(decision->due_ms, before_ms));
}

static enum relay_action by_time(const struct relay_rules *rules,
				 const struct relay_record *record, uint64_t now_ms,
				 struct relay_decision *decision)
{
	if (record->width_ms)
		decision->until_ms = ready_ms(rules, record, now_ms, decision);
	if (decision->until_ms > now_ms)
		return RELAY_WAIT;
	if (decision->due_ms <= now_ms)
		return RELAY_DELIVER;
	if (decision->due_ms - now_ms < 2 * rules->horizon_ms)
		return RELAY_NEAR;
	decision->bucket = relay_bucket(rules, decision->due_ms - now_ms);
	return RELAY_PARK;
}

/* Returns what is wrong with a record that takes another one back, or NULL. */
static const char *check_cancel(const struct relay_record *record,
				struct relay_decision *decision)
{
	if (!record->cancel.len || record->cancel.len > RELAY_ID_MAX)
		return RELAY_CANCEL " is not an id of 1 to 512 bytes";
	if (!record->due.data)
		return "there is no " RELAY_DUE ", the time of the record to take back";
	if (!parse_number(&record->due, INT64_MAX, &decision->due_ms))
		return RELAY_DUE " is not a time in ms since 1970";
	if (decision->due_ms < RELAY_TIME_MIN_MS)
		return RELAY_DUE
			" is before 2001: it must be in ms since 1970, and is probably in seconds";
	decision->action = RELAY_TAKE_BACK;
	return NULL;
}

static const char *check_headers(const struct relay_rules *rules,
				 const struct relay_record *record,
				 struct relay_decision *decision)
{
	/* A record that is parked already takes nothing back. */
	if (record->cancel.data && !record->width_ms)
		return check_cancel(record, decision);
	read_tries(record, decision);
	return check_target(rules, &record->target, decision->tries) ?:
	       check_attempt(record, &decision->attempt) ?:
	       find_due(rules, record, decision);
}

void relay_decide(const struct relay_rules *rules, const struct relay_record *record,
		  uint64_t now_ms, struct relay_decision *decision)
{
	*decision = (struct relay_decision){ .action = RELAY_ACTIONS };
	decision->reason = check_headers(rules, record, decision);
	/* A parked record was accepted by another relay, whose clock may differ. */
	if (!decision->reason && !record->width_ms &&
	    decision->due_ms > now_ms + RELAY_DELAY_MAX_MS)
		decision->reason = "it is due in more than 10 years";
	if (decision->reason)
		decision->action = RELAY_REFUSE;
	else if (decision->action == RELAY_ACTIONS)
		decision->action = by_time(rules, record, now_ms, decision);
}

bool relay_cancel_is_late(const struct relay_rules *rules, uint64_t due_ms, uint64_t now_ms)
{
	return due_ms < now_ms + RELAY_CANCEL_BEFORE_MS / rules->scale;
}

enum relay_hold relay_hold(const struct relay_holding *holding)
{
	uint64_t hold_ms = holding->hold_ms;

	if (holding->lasting)
		hold_ms = MIN(hold_ms, RELAY_HOLD_LASTING_MS);
	if (holding->held_since_ms && holding->now_ms > holding->held_since_ms &&
	    holding->now_ms - holding->held_since_ms >= holding->hold_max_ms)
		return RELAY_HOLD_REFUSE;
	if (holding->above_half || holding->failing_ms >= hold_ms)
		return RELAY_HOLD_PARK;
	return RELAY_HOLD_WAIT;
}

/* --- memory --------------------------------------------------------------------------- */

/* From how many eighths of the cap on it begins, and below how many it ends. */
struct share {
	unsigned int begin;
	unsigned int end;
};

static const struct share give_way = { 6, 5 };

static const struct share pauses[RELAY_KINDS] = {
	[RELAY_INPUT] = { 7, 6 },
	[RELAY_BUCKET] = { 8, 7 },
};

static void update(const struct relay_pressure *pressure, const struct share *share, bool *on)
{
	uint64_t eighth = pressure->cap / 8;

	if (pressure->bytes >= share->begin * eighth)
		*on = true;
	else if (pressure->bytes < share->end * eighth)
		*on = false;
}

static void update_all(struct relay_pressure *pressure)
{
	unsigned int kind;

	update(pressure, &give_way, &pressure->give_way);
	for (kind = 0; kind < RELAY_KINDS; kind++)
		update(pressure, &pauses[kind], &pressure->paused[kind]);
}

void relay_pressure_add(struct relay_pressure *pressure, uint64_t bytes)
{
	pressure->bytes += bytes;
	update_all(pressure);
}

void relay_pressure_sub(struct relay_pressure *pressure, uint64_t bytes)
{
	pressure->bytes -= bytes;
	update_all(pressure);
}
