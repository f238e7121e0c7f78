/* SPDX-License-Identifier: GPL-2.0 */
/* twheelq kick, delete, purge and pause: change jobs and tubes. */
#ifndef QUEUE_CLI_CHANGE_H
#define QUEUE_CLI_CHANGE_H

int kick_main(int argc, char **argv);
int delete_main(int argc, char **argv);
int purge_main(int argc, char **argv);
int pause_main(int argc, char **argv);

#endif /* QUEUE_CLI_CHANGE_H */
