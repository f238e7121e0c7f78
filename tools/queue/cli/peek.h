/* SPDX-License-Identifier: GPL-2.0 */
/* twheelq peek and jobs: show a job, and list those of a tube. */
#ifndef QUEUE_CLI_PEEK_H
#define QUEUE_CLI_PEEK_H

int peek_main(int argc, char **argv);
int jobs_main(int argc, char **argv);

#endif /* QUEUE_CLI_PEEK_H */
