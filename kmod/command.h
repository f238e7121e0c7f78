/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Commands: from user memory to actions on a context and back.
 */
#ifndef TWHEEL_COMMAND_H
#define TWHEEL_COMMAND_H

#include "batch.h"

int twheel_command_run(struct context_batch *batch, struct twheel_cmd *cmd);
long command_submit_one(struct context *context, struct twheel_cmd __user *user);
long command_submit(struct context *context, const struct twheel_submit *submit,
		    unsigned int how);
long command_enter(struct context *context, struct twheel_enter *enter);
long command_list(struct context *context, struct twheel_list *list);

#endif /* TWHEEL_COMMAND_H */
