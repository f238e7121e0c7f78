/* SPDX-License-Identifier: GPL-2.0 */
/* What librdkafka reports of a record that was to be written. */
#ifndef RELAY_CLIENT_REPORT_H
#define RELAY_CLIENT_REPORT_H

#include <librdkafka/rdkafka.h>

/*
 * The error of a report. librdkafka reports a refused batch as written if the broker accepted
 * the batch after it: it relies on brokers to accept nothing after a gap. But a broker without
 * state of the producer accepts any batch as the first one. Such a report has no offset: no
 * broker has acknowledged the record, so it is to be sent again.
 */
static inline rd_kafka_resp_err_t client_report_error(const rd_kafka_message_t *message)
{
	if (!message->err && message->offset == RD_KAFKA_OFFSET_INVALID)
		return RD_KAFKA_RESP_ERR__RETRY;
	return message->err;
}

#endif /* RELAY_CLIENT_REPORT_H */
