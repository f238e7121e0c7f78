/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of a round: main has a descriptor of each file that is still open, and nobody else has.
 */
#ifndef TORMENTOR_DRAIN_H
#define TORMENTOR_DRAIN_H

/*
 * Read all records of a file, until no event waits whose time is over; list those that are left,
 * and read its fdinfo. All of it goes to the log *@log.
 */
void drain(int *log, unsigned int number, int fd);

#endif /* TORMENTOR_DRAIN_H */
