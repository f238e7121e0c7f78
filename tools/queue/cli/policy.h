/* SPDX-License-Identifier: GPL-2.0 */
/* twheelq policy: how failed jobs of a tube are retried. */
#ifndef QUEUE_CLI_POLICY_H
#define QUEUE_CLI_POLICY_H

int policy_main(int argc, char **argv);

#endif /* QUEUE_CLI_POLICY_H */
