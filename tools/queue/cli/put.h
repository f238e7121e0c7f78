/* SPDX-License-Identifier: GPL-2.0 */
/* twheelq put: put a job. */
#ifndef QUEUE_CLI_PUT_H
#define QUEUE_CLI_PUT_H

int put_main(int argc, char **argv);

#endif /* QUEUE_CLI_PUT_H */
