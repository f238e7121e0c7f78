// SPDX-License-Identifier: GPL-2.0
/*
 * Sets a context up by the options --clock, --slack, --cpu, --max-events and, in the
 * commands that have it, --deadlines.
 */
#include <err.h>
#include <errno.h>
#include <string.h>

#include "common/time.h"
#include "common/wait.h"
#include "common/util.h"
#include "common/options.h"
#include "twheelctl/setup.h"

enum {
	KEY_CLOCK = 512,
	KEY_SLACK,
	KEY_CPU,
	KEY_MAX_EVENTS,
};

/* The clocks that events can use. */
static const struct clock_name {
	const char *name;
	clockid_t id;
} clock_names[] = {
	{ "monotonic", CLOCK_MONOTONIC },
	{ "boottime",  CLOCK_BOOTTIME },
	{ "realtime",  CLOCK_REALTIME },
};

static clockid_t clock_option(struct argp_state *state, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(clock_names); i++)
		if (!strcmp(text, clock_names[i].name))
			return clock_names[i].id;
	argp_error(state, "--clock \"%s\" is not monotonic, boottime or realtime",
		   text);
	return CLOCK_MONOTONIC;
}

static error_t parse_setup(int key, char *arg, struct argp_state *state)
{
	struct setup *setup = state->input;
	struct twheel_config *config = &setup->config;

	switch (key) {
	case KEY_CLOCK:
		config->clockid = clock_option(state, arg);
		break;
	case KEY_SLACK:
		config->slack_ns = option_duration(state, "slack", arg);
		break;
	case KEY_CPU:
		config->flags |= TWHEEL_CONFIG_CPU;
		config->cpu = option_count(state, "cpu", arg, 0, ~0U);
		break;
	case KEY_MAX_EVENTS:
		config->max_events = option_count(state, "max-events", arg, 1,
						  ~0ULL);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	setup->given = true;
	return 0;
}

static const struct argp_option setup_options[] = {
	{ "clock", KEY_CLOCK, "CLOCK", 0,
	  "The clock of the events: monotonic (the default), boottime or realtime",
	  1 },
	{ "slack", KEY_SLACK, "TIME", 0,
	  "Allow each event to be up to TIME late, such as 10ms, so that several share an interrupt",
	  1 },
	{ "cpu", KEY_CPU, "N", 0,
	  "Arm all events on this CPU; default: the CPU that arms an event", 1 },
	{ "max-events", KEY_MAX_EVENTS, "N", 0,
	  "Allow N events at once; default: the limit of the device", 1 },
	{ 0 }
};

static const struct argp setup_argp = {
	.options = setup_options,
	.parser = parse_setup,
};

const struct argp_child setup_children[] = {
	{ .argp = &setup_argp },
	{ .argp = &settings_argp },
	{ 0 }
};

void setup_children_init(struct argp_state *state, struct settings *settings,
			 struct setup *setup)
{
	/* argp starts a child after its parent, and the parent may change these defaults. */
	setup->config.size = sizeof(setup->config);
	setup->config.clockid = CLOCK_MONOTONIC;
	state->child_inputs[0] = setup;
	state->child_inputs[1] = settings;
}

/* Check that the device has each feature that the options need. */
static int check_features(const struct device *dev,
			  const struct twheel_config *config)
{
	const struct {
		const char *option;
		bool wanted;
		__u64 feature;
	} needs[] = {
		{ "--clock", config->clockid != CLOCK_MONOTONIC,
		  TWHEEL_FEATURE_CLOCKS },
		{ "--slack", config->slack_ns, TWHEEL_FEATURE_SLACK },
		{ "--cpu", config->flags & TWHEEL_CONFIG_CPU,
		  TWHEEL_FEATURE_CPU },
		{ "--deadlines", config->nr_deadlines,
		  TWHEEL_FEATURE_DEADLINES },
	};

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		if (!needs[i].wanted || dev->info.features & needs[i].feature)
			continue;
		warnx("%s: this module cannot do that; twheelctl info lists its features",
		      needs[i].option);
		return -EOPNOTSUPP;
	}
	return 0;
}

static void explain(const struct device *dev, const struct twheel_config *config,
		    int error)
{
	bool has_cpu = config->flags & TWHEEL_CONFIG_CPU;
	__u64 max_events = config->max_events ? config->max_events :
			   dev->info.max_events;

	if (error == ENOSPC)
		warnx("--max-events %llu: more than the module's parameter max_events allows",
		      config->max_events);
	else if (config->nr_deadlines > max_events)
		warnx("--deadlines: %u words, but only %llu events are allowed; see --max-events",
		      config->nr_deadlines, max_events);
	else if (error == EPERM && has_cpu)
		warnx("--cpu %u: this process may not run there; see taskset, or CAP_SYS_NICE",
		      config->cpu);
	else if (has_cpu && error != EBUSY)
		warnx("--cpu %u: %s; is there such a CPU, and is it online?",
		      config->cpu, strerror(error));
	else
		warnx("the device cannot be set up: %s", strerror(error));
}

static int configure(struct device *dev, const struct setup *setup)
{
	int ret = check_features(dev, &setup->config);

	if (ret)
		return ret;
	ret = device_configure(dev, &setup->config);
	if (ret)
		explain(dev, &setup->config, -ret);
	return ret;
}

/*
 * Open a device, set its context up, and use its clock from then on.
 *
 * Return: 0, or a negative errno after a message.
 */
int setup_open(struct device *dev, const char *path, const struct setup *setup)
{
	int ret = device_open(dev, path);

	if (!ret && setup->given)
		ret = configure(dev, setup);
	wait_choose_clock(setup->config.clockid);
	return ret;
}
