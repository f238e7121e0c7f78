// SPDX-License-Identifier: GPL-2.0
/* The rules of the relay: what is to be done with a record. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "relay/rules/rules.h"
#include "common/retry_policy.h"
#include "common/util.h"

#define NS_PER_MS	1000000ULL

/* The head of a bucket waits longer than its width by this part of H. */
#define LINGER_PART	32

/* --- buckets -------------------------------------------------------------------------- */

void relay_rules_init(struct relay_rules *rules, const char *topic, uint64_t horizon_ms,
		      uint64_t scale)
{
	uint64_t width_ms;

	*rules = (struct relay_rules){ .topic = topic, .scale = scale };
	rules->horizon_ms = horizon_ms / scale;
	rules->linger_ms = rules->horizon_ms / LINGER_PART;
	for (width_ms = horizon_ms; width_ms <= RELAY_WIDEST_MS; width_ms *= 2) {
		rules->width_ms[rules->nr_buckets] = width_ms / scale;
		rules->width_s[rules->nr_buckets] = width_ms / 1000;
		rules->nr_buckets++;
	}
}

unsigned int relay_bucket(const struct relay_rules *rules, uint64_t remaining_ms)
{
	unsigned int bucket = rules->nr_buckets - 1;

	while (bucket && rules->width_ms[bucket] > remaining_ms - rules->horizon_ms)
		bucket--;
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

static bool value_is(const struct relay_text *text, const char *string)
{
	return text->len == strlen(string) && !memcmp(text->data, string, text->len);
}

/*
 * Only producers write to the topic of delays, and only relays to buckets: neither is a target.
 * All names that look like buckets are refused, so that none is used as a target by mistake.
 */
static bool is_own_topic(const struct relay_rules *rules, const struct relay_text *target)
{
	size_t len = strlen(rules->topic), infix_len = strlen(RELAY_BUCKET_INFIX), digits;
	char name[RELAY_TOPIC_MAX + 1];
	const char *rest = name + len;

	snprintf(name, sizeof(name), "%.*s", (int)target->len, target->data);
	if (strncmp(name, rules->topic, len))
		return false;
	if (!*rest)
		return true;
	if (strncmp(rest, RELAY_BUCKET_INFIX, infix_len))
		return false;
	rest += infix_len;
	digits = strspn(rest, "0123456789");
	return digits && !strcmp(rest + digits, RELAY_BUCKET_SUFFIX);
}

/* Returns what is wrong with the target, or NULL. */
static const char *check_target(const struct relay_rules *rules, const struct relay_text *target)
{
	if (!target->data || !target->len)
		return "there is no " RELAY_TARGET;
	if (target->len > RELAY_TARGET_MAX)
		return RELAY_TARGET " is longer than 244 bytes";
	if (!has_topic_letters(target) || value_is(target, ".") || value_is(target, ".."))
		return RELAY_TARGET " is not a name of a topic";
	if (is_own_topic(rules, target))
		return RELAY_TARGET " is a topic of the relay's own";
	return NULL;
}

/* Returns what is wrong with the number of attempts, or NULL. */
static const char *check_attempt(const struct relay_record *record, uint32_t *attempt)
{
	uint64_t number = 0;

	if (record->attempt.data && !parse_number(&record->attempt, UINT32_MAX, &number))
		return RELAY_ATTEMPT " is not a number from 0 to 4294967295";
	*attempt = number;
	return NULL;
}

/* --- when a record is due ------------------------------------------------------------- */

static const char *due_at(const struct relay_record *record, struct relay_decision *decision)
{
	if (record->delay.data)
		return "there are both " RELAY_DELIVER_AT " and " RELAY_DELAY;
	if (!parse_number(&record->deliver_at, INT64_MAX, &decision->due_ms))
		return RELAY_DELIVER_AT " is not a time in ms since 1970";
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
 */
static uint64_t ready_ms(const struct relay_record *record, uint64_t now_ms)
{
	uint64_t parked_ms;

	if (!record->parked.data || !parse_number(&record->parked, INT64_MAX, &parked_ms))
		return 0;
	if (parked_ms > now_ms + RELAY_CLOCKS_DIFFER_MS)
		return 0;
	return parked_ms + record->width_ms;
}

static enum relay_action by_time(const struct relay_rules *rules,
				 const struct relay_record *record, uint64_t now_ms,
				 struct relay_decision *decision)
{
	if (decision->due_ms <= now_ms)
		return RELAY_DELIVER;
	if (decision->due_ms - now_ms < 2 * rules->horizon_ms)
		return RELAY_NEAR;
	decision->until_ms = record->width_ms ? ready_ms(record, now_ms) : 0;
	/* It would wait longer than that only if its bucket is too wide. */
	if (decision->until_ms > decision->due_ms - rules->horizon_ms)
		decision->until_ms = decision->due_ms - rules->horizon_ms;
	if (decision->until_ms > now_ms)
		return RELAY_WAIT;
	decision->bucket = relay_bucket(rules, decision->due_ms - now_ms);
	return RELAY_PARK;
}

void relay_decide(const struct relay_rules *rules, const struct relay_record *record,
		  uint64_t now_ms, struct relay_decision *decision)
{
	*decision = (struct relay_decision){ .action = RELAY_ACTIONS };
	decision->reason = check_target(rules, &record->target) ?:
			   check_attempt(record, &decision->attempt) ?:
			   find_due(rules, record, decision);
	/* A parked record was accepted by another relay, whose clock may differ. */
	if (!decision->reason && !record->width_ms &&
	    decision->due_ms > now_ms + RELAY_DELAY_MAX_MS)
		decision->reason = "it is due in more than 10 years";
	if (decision->reason)
		decision->action = RELAY_REFUSE;
	else if (decision->action != RELAY_BURY)
		decision->action = by_time(rules, record, now_ms, decision);
}

/* --- memory --------------------------------------------------------------------------- */

static const struct {
	unsigned int pause;	/* from this many eighths of the cap on */
	unsigned int resume;	/* below this many eighths */
} shares[RELAY_KINDS] = {
	[RELAY_INPUT] = { 6, 5 },
	[RELAY_BUCKET] = { 8, 7 },
};

static void update_pauses(struct relay_pressure *pressure)
{
	uint64_t eighth = pressure->cap / 8;
	unsigned int kind;

	for (kind = 0; kind < RELAY_KINDS; kind++) {
		if (pressure->bytes >= shares[kind].pause * eighth)
			pressure->paused[kind] = true;
		else if (pressure->bytes < shares[kind].resume * eighth)
			pressure->paused[kind] = false;
	}
}

void relay_pressure_add(struct relay_pressure *pressure, uint64_t bytes)
{
	pressure->bytes += bytes;
	update_pauses(pressure);
}

void relay_pressure_sub(struct relay_pressure *pressure, uint64_t bytes)
{
	pressure->bytes -= bytes;
	update_pauses(pressure);
}
