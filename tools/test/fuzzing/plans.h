/* SPDX-License-Identifier: GPL-2.0 */
/* What the bytes of a plan mean: numbers, sizes, times, commands. */
#ifndef FUZZING_PLANS_H
#define FUZZING_PLANS_H

#include <linux/twheel.h>
#include <stddef.h>

#include "files.h"
#include "program.h"

uint64_t plan_number(uint8_t byte);
uint64_t plan_time(uint8_t byte, bool absolute, int clock);
uint32_t plan_size(uint8_t byte, size_t natural);
uint32_t plan_count(uint8_t byte);
void plan_command(struct twheel_cmd *cmd, const struct command_plan *plan,
		  const struct file_note *note);

#endif /* FUZZING_PLANS_H */
