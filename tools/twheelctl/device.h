/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device: one open file of /dev/twheel.
 *
 * Functions return 0 or more, or a negative errno. Only device_open() and
 * device_counters() print a message then.
 */
#ifndef _TWHEELCTL_DEVICE_H
#define _TWHEELCTL_DEVICE_H

#include <stddef.h>
#include <linux/twheel.h>

#define DEVICE_PATH	"/dev/twheel"

/**
 * struct device - an open device
 * @fd: readable (POLLIN) when records are ready; never blocks.
 * @info: the answer to TWHEEL_IOC_INFO.
 * @words: deadlines shared with the kernel, mapped by device_configure(); NULL if the
 *	context has none.
 */
struct device {
	int fd;
	struct twheel_info info;
	__u64 *words;
};

/**
 * struct counters - the counters of a context, from fdinfo
 * @added: events that were added: the sum of the next four.
 * @armed: events that wait for their time.
 * @ready: events whose record waits to be read.
 * @finished: events whose last record was read.
 * @cancelled: events that were cancelled.
 * @completed: events that ended as completed.
 * @records: records that were read.
 * @deadlines: the number of shared deadlines.
 * @postponed: how often an event's time came after its deadline had been moved to a later
 *	one.
 */
struct counters {
	__u64 added;
	__u64 armed;
	__u64 ready;
	__u64 finished;
	__u64 cancelled;
	__u64 completed;
	__u64 records;
	__u64 deadlines;
	__u64 postponed;
};

int device_open(struct device *dev, const char *path);
int device_configure(struct device *dev, const struct twheel_config *config);
int device_submit(struct device *dev, struct twheel_cmd *cmds, size_t nr);
int device_read(struct device *dev, struct twheel_record *records, size_t nr);
int device_list(struct device *dev, struct twheel_entry *entries, size_t nr,
		__u64 *cursor);
int device_counters(struct device *dev, struct counters *counters);

/*
 * Move a deadline.
 *
 * The store is visible before the caller reads the clock. So if the clock is then before
 * the old deadline, the kernel has not read the word yet and will find the new deadline.
 */
static inline void device_store(const struct device *dev, size_t word, __u64 time_ns)
{
	__atomic_store_n(&dev->words[word], time_ns, __ATOMIC_SEQ_CST);
}

/* The reason for which an event ended, as a word. */
static inline const char *reason_name(__u32 reason)
{
	switch (reason) {
	case TWHEEL_EXPIRED:
		return "expired";
	case TWHEEL_COMPLETED:
		return "completed";
	case TWHEEL_CLOCK_SET:
		return "clock_set";
	default:
		return "unknown";
	}
}

#endif /* _TWHEELCTL_DEVICE_H */
