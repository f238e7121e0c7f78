// SPDX-License-Identifier: GPL-2.0
/*
 * The values of options.
 */
#include "clock.h"
#include "number.h"
#include "options.h"

/* A whole number. */
__u64 option_count(struct argp_state *state, const char *name, const char *text,
		   __u64 min, __u64 max)
{
	const char *wrong;
	__u64 value;

	wrong = count_parse(text, &value);
	if (wrong || value < min || value > max)
		argp_error(state, "--%s \"%s\" is not a whole number from %llu to %llu",
			   name, text, min, max);
	return value;
}

/* A time in seconds, without a unit. */
__u64 option_seconds(struct argp_state *state, const char *name,
		     const char *text, __u64 min_ns)
{
	const char *wrong;
	__u64 ns;

	wrong = seconds_parse(text, &ns);
	if (wrong)
		argp_error(state, "--%s \"%s\" %s", name, text, wrong);
	if (ns < min_ns)
		argp_error(state, "--%s \"%s\" is less than %g", name, text,
			   (double)min_ns / NSEC_PER_SEC);
	return ns;
}

/* A time with its unit. */
__u64 option_duration(struct argp_state *state, const char *name,
		      const char *text)
{
	const char *wrong;
	__u64 ns;

	wrong = duration_parse(text, &ns);
	if (wrong)
		argp_error(state, "--%s \"%s\" %s", name, text, wrong);
	return ns;
}
