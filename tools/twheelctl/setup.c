// SPDX-License-Identifier: GPL-2.0
/*
 * Setting a context up: the options --clock, --slack, --cpu and --max-events, and
 * --deadlines of the commands that have it.
 */
#include <err.h>
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "common.h"
#include "options.h"
#include "setup.h"

enum {
	KEY_CLOCK = 512,
	KEY_SLACK,
	KEY_CPU,
	KEY_MAX_EVENTS,
};

/* The clocks that an event can go by. */
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
	  "What the events go by: monotonic (the default), boottime or realtime",
	  1 },
	{ "slack", KEY_SLACK, "TIME", 0,
	  "Let each event be up to TIME late, such as 10ms, so that neighbours share an interrupt",
	  1 },
	{ "cpu", KEY_CPU, "N", 0,
	  "Arm all events on this CPU; default the one that arms", 1 },
	{ "max-events", KEY_MAX_EVENTS, "N", 0,
	  "Allow N events at once; default as the device has it", 1 },
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
	/* Here, as the child is told to begin after its parent, which may choose others. */
	setup->config.size = sizeof(setup->config);
	setup->config.clockid = CLOCK_MONOTONIC;
	state->child_inputs[0] = setup;
	state->child_inputs[1] = settings;
}

/* Whether the device can do what is asked for at all. */
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
		warnx("%s: this module cannot do that; twheelctl info tells what it can",
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
 * Open a device, set its context up, and go by its clock from then on.
 *
 * Return: 0, or a negative errno after a message.
 */
int setup_open(struct device *dev, const char *path, const struct setup *setup)
{
	int ret = device_open(dev, path);

	if (!ret && setup->given)
		ret = configure(dev, setup);
	clock_use(setup->config.clockid);
	return ret;
}
