/* SPDX-License-Identifier: GPL-2.0 */
/* The settings of the topics. */
#ifndef RELAY_SETTINGS_H
#define RELAY_SETTINGS_H

#include "relay/state.h"

enum relay_opinion {
	RELAY_RIGHT,
	RELAY_DOUBTFUL,		/* right or wrong by the number of records */
	RELAY_WRONG,		/* records would be lost */
};

/* Judge a setting of a topic. */
enum relay_opinion relay_settings_judge(const struct relay_rules *rules, const char *topic,
					const char *name, const char *value);

/* Ask the brokers for the settings of the relay's topics. */
void relay_settings_ask(struct relay *relay);

/* Check the answer, if it is there. */
void relay_settings_check(struct relay *relay);

/* Do not wait for the answer any more. */
void relay_settings_end(struct relay *relay);

#endif /* RELAY_SETTINGS_H */
