/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A page that is not there yet: a thread that touches it, also in the kernel, sleeps until
 * missing_page_resolve() provides it.
 */
#ifndef DEVICE_TEST_MISSING_PAGE_H
#define DEVICE_TEST_MISSING_PAGE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

struct missing_page {
	int userfault;
	void *memory;
};

/* Make a page at this address, which has to be the beginning of one, missing. */
static inline struct missing_page missing_page_at(void *memory)
{
	struct missing_page page = { .memory = memory };
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register where = {
		.range.start = (uintptr_t)memory,
		.range.len = PAGE_BYTES,
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	page.userfault = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (page.userfault < 0)
		test_skip("no userfaultfd: %s", strerrorname_np(errno));
	ASSERT_EQ(ioctl(page.userfault, UFFDIO_API, &api), 0);
	ASSERT_EQ(ioctl(page.userfault, UFFDIO_REGISTER, &where), 0);
	return page;
}

static inline struct missing_page missing_page_map(void)
{
	return missing_page_at(map_pages(PAGE_BYTES));
}

/* Wait until somebody has touched the page. */
static inline void missing_page_wait(struct missing_page *page)
{
	struct pollfd pollfd = { .fd = page->userfault, .events = POLLIN };
	struct uffd_msg message;

	fcntl(page->userfault, F_SETFL, O_NONBLOCK);
	ASSERT_EQ(poll(&pollfd, 1, FOR_EVER), 1);
	ASSERT_EQ(read(page->userfault, &message, sizeof(message)),
		  sizeof(message));
}

/* Provide the page, which begins with @size bytes from @content. */
static inline void missing_page_resolve(struct missing_page *page,
					const void *content, size_t size)
{
	void *source = map_pages(PAGE_BYTES);
	struct uffdio_copy copy = {
		.dst = (uintptr_t)page->memory,
		.src = (uintptr_t)source,
		.len = PAGE_BYTES,
	};

	memcpy(source, content, size);
	ASSERT_EQ(ioctl(page->userfault, UFFDIO_COPY, &copy), 0);
}

#endif /* DEVICE_TEST_MISSING_PAGE_H */
