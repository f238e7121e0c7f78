/* SPDX-License-Identifier: GPL-2.0 */
/* Calls that several walks have. */
#ifndef FAULTS_CALLS_H
#define FAULTS_CALLS_H

#include "scene.h"

/* Fill the piece COMMANDS; returns how many there are. */
unsigned int prepare_commands(struct scene *scene);

/* The results of the first @done commands, for the ledger. */
void check_commands(struct scene *scene, unsigned int done);

/* The first @nr records, for the ledger: they are the oldest, in their order. */
void check_records(struct scene *scene, unsigned int nr, size_t stride);

/* SUBMIT by ioctl(). */
void prepare_submit(struct scene *scene);
long call_submit(struct scene *scene);
void check_submit(struct scene *scene, long ret);

/* From now on the files that are opened are counted to the user. */
void become_counted(void);

/* Make walk->nr_ready READY events and walk->nr ARMED ones. */
void make_events(struct scene *scene);
void prepare_events(struct scene *scene);

#endif /* FAULTS_CALLS_H */
