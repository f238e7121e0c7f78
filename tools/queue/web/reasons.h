/* SPDX-License-Identifier: GPL-2.0 */
/* Why the dead jobs of a tube have died: counted by reason. */
#ifndef QUEUE_WEB_REASONS_H
#define QUEUE_WEB_REASONS_H

#include <stdint.h>
#include <stdio.h>

#include "queue/store/record.h"

struct site_arguments;
struct store;

/* A route: see struct site_route. */
unsigned int web_reasons(const struct site_arguments *arguments, FILE *out, void *context);

/* A number for a reason, for people's requests. Other processes have other numbers. */
uint64_t reason_number(const void *reason, size_t len);

/* A cursor of the buried jobs of a tube is "ORDER.ID". Returns false if @text is not one. */
bool reason_cursor(const char *text, struct job_place *from);

#endif /* QUEUE_WEB_REASONS_H */
