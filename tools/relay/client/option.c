// SPDX-License-Identifier: GPL-2.0
/* Options that the relay and its commands have in common. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "common/log.h"
#include "relay/client/option.h"
#include "relay/rules/rules.h"

/* Leaves room for the width of a bucket, for ".invalid" and for "-cancelled". */
#define TOPIC_MAX	(RELAY_TOPIC_MAX - 16)

char *client_option_split(struct argp_state *state, const char *option, char *arg)
{
	char *equals = strchr(arg, '=');

	if (!equals || equals == arg)
		argp_error(state, "%s \"%s\" is not NAME=VALUE", option, arg);
	else
		*equals++ = '\0';
	return equals;
}

void client_check_name(struct argp_state *state, const char *option, const char *arg, size_t max)
{
	size_t len = 0;

	while (isalnum((unsigned char)arg[len]) || (arg[len] && strchr("._-", arg[len])))
		len++;
	if (!len || arg[len] || len > max)
		argp_error(state, "%s \"%s\" is not up to %zu letters, digits and \"._-\"", option,
			   arg, max);
}

void client_check_topic(struct argp_state *state, const char *option, const char *arg, size_t max)
{
	client_check_name(state, option, arg, max);
	if (!strcmp(arg, ".") || !strcmp(arg, ".."))
		argp_error(state, "%s \"%s\": Kafka takes no topic of this name", option, arg);
}

const char *client_option_topic(struct argp_state *state, const char *arg)
{
	client_check_topic(state, "--topic", arg, TOPIC_MAX);
	return arg;
}

void client_option_setting(struct argp_state *state, char *arg, struct relay_settings *settings)
{
	struct relay_setting *setting = calloc(1, sizeof(*setting));

	if (!setting) {
		argp_failure(state, EXIT_CANNOT, ENOMEM, "-X");
		return;
	}
	setting->value = client_option_split(state, "-X", arg);
	setting->name = arg;
	STAILQ_INSERT_TAIL(settings, setting, entry);
}

void client_option_config(struct argp_state *state, char *path, struct relay_settings *settings)
{
	char why[RELAY_CONFIG_WHY];
	int status = relay_config_read(path, settings, why);

	if (status)
		argp_failure(state, status, 0, "--config: %s", why);
	if (relay_config_is_open(path))
		log_say(LOG_WARNING, "everybody can read %s; chmod o-r if it has a secret", path);
}

void client_settings_free(struct relay_settings *settings)
{
	struct relay_setting *setting;

	while ((setting = STAILQ_FIRST(settings))) {
		STAILQ_REMOVE_HEAD(settings, entry);
		free(setting);
	}
}
