/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device: one open file of /dev/twheel.
 *
 * Functions return 0 or more, or a negative errno; device_open() and
 * device_counters() have then said what was wrong.
 */
#ifndef _TWHEELCTL_DEVICE_H
#define _TWHEELCTL_DEVICE_H

#include <stddef.h>
#include <linux/twheel.h>

#define DEVICE_PATH	"/dev/twheel"

/**
 * struct device - an open device
 * @fd: readable (POLLIN) when records are ready; never blocks.
 * @info: what the kernel side said of itself.
 * @words: deadlines that are shared with the kernel, from device_configure() on;
 *	NULL where there are none.
 */
struct device {
	int fd;
	struct twheel_info info;
	__u64 *words;
};

/**
 * struct counters - what fdinfo says of the context
 * @added: events that were added.
 * @armed: of these, those that wait for their time.
 * @ready: those whose record waits to be read.
 * @finished: those whose last record was read.
 * @cancelled: those that were cancelled.  The last four add up to the first.
 * @completed: those that ended as completed.
 * @records: records that were read.
 * @deadlines: words that are shared.
 * @postponed: how often a word said a later time when the one came that it had
 *	said before.
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
 * Who looks at the clock after that and finds that the time has not come which the
 * word said before knows that the kernel will find the new one: the store is there
 * before the look.
 */
static inline void device_store(const struct device *dev, size_t word, __u64 time_ns)
{
	__atomic_store_n(&dev->words[word], time_ns, __ATOMIC_SEQ_CST);
}

/* Why an event ended, in a word. */
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
