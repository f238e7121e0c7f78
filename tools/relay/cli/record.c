// SPDX-License-Identifier: GPL-2.0
/* What a record that waits says about itself. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/retry_policy.h"
#include "relay/cli/record.h"

/* The default id: the place of its first appearance, which is this one. */
static void find_id(struct record *record, const rd_kafka_message_t *message)
{
	record->id = scan_header(message, record->takes_back ? RELAY_CANCEL : RELAY_ID);
	if (record->id.len)
		return;
	snprintf(record->own_id, sizeof(record->own_id), "%s-%" PRId32 "-%" PRId64,
		 rd_kafka_topic_name(message->rkt), message->partition, message->offset);
	record->id = (struct relay_text){ record->own_id, strlen(record->own_id) };
}

static bool has_due(const struct relay_record *headers, const struct relay_decision *decision)
{
	if (decision->action == RELAY_REFUSE)
		return false;
	return headers->width_ms || decision->action == RELAY_TAKE_BACK ||
		headers->deliver_at.data || headers->delay.data;
}

void record_read(struct record *record, const struct relay_rules *rules, uint64_t width_ms,
		 const rd_kafka_message_t *message, uint64_t now_ms)
{
	const struct relay_record headers = {
		.width_ms = width_ms,
		.timestamp_ms = scan_timestamp(message),
		.policy = &retry_policy_default,
		.target = scan_header(message, RELAY_TARGET),
		.deliver_at = scan_header(message, RELAY_DELIVER_AT),
		.delay = scan_header(message, RELAY_DELAY),
		.attempt = scan_header(message, RELAY_ATTEMPT),
		.due = scan_header(message, RELAY_DUE),
		.parked = scan_header(message, RELAY_PARKED),
		.tries = scan_header(message, RELAY_TRIES),
		.held_since = scan_header(message, RELAY_HELD_SINCE),
		.cancel = scan_header(message, RELAY_CANCEL),
	};
	struct relay_decision decision;

	relay_decide(rules, &headers, now_ms, &decision);
	record->target = headers.target;
	record->timestamp_ms = headers.timestamp_ms;
	record->has_due = has_due(&headers, &decision);
	record->due_ms = decision.due_ms;
	record->attempt = decision.attempt;
	record->tries = decision.tries;
	record->held_since_ms = decision.held_since_ms;
	record->takes_back = decision.action == RELAY_TAKE_BACK;
	record->why = decision.action == RELAY_REFUSE ? decision.reason : NULL;
	find_id(record, message);
}

bool record_is_done(const struct place *place, const rd_kafka_message_t *message)
{
	return done_map_has(&place->done, place->committed < 0, message->offset,
			    scan_timestamp(message), scan_epoch(message));
}
