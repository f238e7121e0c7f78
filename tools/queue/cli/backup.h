/* SPDX-License-Identifier: GPL-2.0 */
/* twheelq backup: copy the store of a running daemon. */
#ifndef QUEUE_CLI_BACKUP_H
#define QUEUE_CLI_BACKUP_H

int backup_main(int argc, char **argv);

#endif /* QUEUE_CLI_BACKUP_H */
