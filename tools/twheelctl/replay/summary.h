/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Prints the summary of a replay.
 */
#ifndef _TWHEELCTL_SUMMARY_H
#define _TWHEELCTL_SUMMARY_H

#include <stdio.h>

#include "twheelctl/replay/player.h"

/* The number of interrupts of all wheels, if it is known. */
struct interrupts {
	bool known;
	__u64 before;
	__u64 after;
};

bool summary_is_good(const struct player *player);
void summary_print(const struct player *player,
		   const struct interrupts *interrupts, FILE *out);
void summary_print_json(const struct player *player,
			const struct interrupts *interrupts, FILE *out);

#endif /* _TWHEELCTL_SUMMARY_H */
