/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Options that the relay and its commands have in common: the topic of delays, and settings of
 * librdkafka. A wrong value ends the program with EXIT_USAGE.
 */
#ifndef RELAY_CLIENT_OPTION_H
#define RELAY_CLIENT_OPTION_H

#include <argp.h>
#include <stddef.h>

#include "relay/client/config.h"

/* The topic of delays, and what the default group begins with; the topic follows. */
#define CLIENT_TOPIC		"delays"
#define CLIENT_GROUP_PREFIX	"twheelq-"

/* Split "NAME=VALUE", and return the value. */
char *client_option_split(struct argp_state *state, const char *option, char *arg);

/* Refuse what is not made of the characters of a topic's name, or has more than @max of them. */
void client_check_name(struct argp_state *state, const char *option, const char *arg, size_t max);

/* The same, and names that no topic can have. */
void client_check_topic(struct argp_state *state, const char *option, const char *arg, size_t max);

/* --topic */
const char *client_option_topic(struct argp_state *state, const char *arg);

/* -X and --config */
void client_option_setting(struct argp_state *state, char *arg, struct relay_settings *settings);
void client_option_config(struct argp_state *state, char *path, struct relay_settings *settings);

void client_settings_free(struct relay_settings *settings);

#endif /* RELAY_CLIENT_OPTION_H */
