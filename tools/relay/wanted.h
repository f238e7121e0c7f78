/* SPDX-License-Identifier: GPL-2.0 */
/* The settings that the relay's topics should have. Pure: no Kafka, no clock. */
#ifndef RELAY_WANTED_H
#define RELAY_WANTED_H

#include "relay/topics.h"

/* Room for the value of a setting. */
#define RELAY_WANTED_TEXT	32

enum relay_opinion {
	RELAY_RIGHT,
	RELAY_DOUBTFUL,		/* it works, with a risk or slowly */
	RELAY_WRONG,		/* records would be lost, or be delivered again */
};

/**
 * struct relay_judgement - what is wrong with a setting
 * @opinion: how bad that is; if it is RELAY_RIGHT, the others are not set.
 * @right: what would be right, for example "600000 or less".
 * @why: what the setting is needed for.
 */
struct relay_judgement {
	enum relay_opinion opinion;
	char right[RELAY_WANTED_TEXT + 8];
	const char *why;
};

/* The number of settings that some topics should have. */
unsigned int relay_wanted_nr(void);

/*
 * The setting of number @i: its name, and the @value with which a topic is created; NULL if the
 * topic does not need it.
 */
const char *relay_wanted(const struct relay_topic *topic, unsigned int i,
			 char value[RELAY_WANTED_TEXT]);

/* Judge the value of a setting. */
struct relay_judgement relay_wanted_judge(const struct relay_topic *topic, const char *name,
					  const char *value);

#endif /* RELAY_WANTED_H */
