/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The values of options.
 *
 * What cannot be taken is a usage error that names the option and the value.
 */
#ifndef _TWHEELCTL_OPTIONS_H
#define _TWHEELCTL_OPTIONS_H

#include <argp.h>
#include <linux/types.h>

__u64 option_count(struct argp_state *state, const char *name, const char *text,
		   __u64 min, __u64 max);
__u64 option_seconds(struct argp_state *state, const char *name,
		     const char *text, __u64 min_ns);
__u64 option_duration(struct argp_state *state, const char *name,
		      const char *text);

#endif /* _TWHEELCTL_OPTIONS_H */
