/* SPDX-License-Identifier: GPL-2.0 */
/* twheelq every: periodic jobs. */
#ifndef QUEUE_CLI_EVERY_H
#define QUEUE_CLI_EVERY_H

int every_main(int argc, char **argv);

#endif /* QUEUE_CLI_EVERY_H */
