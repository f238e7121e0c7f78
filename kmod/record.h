/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is copied out of a context: records, and lists of its events.
 */
#ifndef TWHEEL_RECORD_H
#define TWHEEL_RECORD_H

#include <linux/uio.h>

#include "batch.h"

ssize_t twheel_context_read(struct context *context, struct iov_iter *to,
			    unsigned int how);
ssize_t context_reap(struct context *context, struct iov_iter *to, size_t stride,
		     u64 *left);
ssize_t twheel_context_list(struct context *context, u64 *cursor, struct iov_iter *to,
			    size_t stride);

#endif /* TWHEEL_RECORD_H */
