// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for the arguments of calls.
 *
 * Each thread has areas of its own, one for each use and kind, with nothing mapped behind
 * them. Areas are in the first 4 GB, so that they can be named by 32-bit calls, too. What is
 * put into a missing area goes to a copy of it: when somebody touches a page, which may be
 * the kernel in the middle of a call, a thread gets a message and provides the page from
 * there, or does something worse.
 */
#include <err.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory.h"
#include "shared.h"

#define PAGE		4096UL
#define THREADS		2

enum kind {
	PLAIN,
	READ_ONLY,	/* cannot be written */
	FORBIDDEN,	/* cannot be accessed */
	ABSENT,		/* not mapped */
	MISSING,	/* provided by another thread when it is touched */
	SHORT_FILE,	/* a file that ends after one page */
	KINDS,
	OTHER_USE,	/* the plain memory of another use, so that two of them overlap */
	WORDS,		/* the words of the device itself */
	NOWHERE,	/* 0, addresses of the kernel, and what is no address at all */
};

static const uint8_t kinds[] = {
	PLAIN, MISSING, READ_ONLY, MISSING, FORBIDDEN, SHORT_FILE, ABSENT, OTHER_USE, WORDS,
	NOWHERE, MISSING,
};

/* How a missing page is provided. */
enum fault {
	FAULT_AT_ONCE,
	FAULT_LATE,
	FAULT_ZERO,		/* as zeros */
	FAULT_READ_ONLY,	/* and it cannot be written */
	FAULT_UNMAP,		/* not at all: the area goes away */
	FAULT_CHANGED,		/* with something else in it */
	FAULTS,
};

#define AREA_BYTES	0x100000UL
#define USE_BYTES	(AREA_BYTES * KINDS)
#define THREAD_BYTES	(USE_BYTES * MEMORY_USES)
#define MEMORY_BASE	0x20000000UL
#define REGISTER_TRIES	100

static uint8_t copies[THREADS][MEMORY_USES][MEMORY_BYTES] __attribute__((aligned(4096)));
static atomic_bool damaged[THREADS][MEMORY_USES][KINDS];
static atomic_uint how_to_provide;
static int userfault, short_file;

/* --- touching memory that may not be there ------------------------------------------- */

static __thread volatile sig_atomic_t guarded;
static __thread sigjmp_buf guard;

static void bad_access(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (guarded)
		siglongjmp(guard, signal);
	dprintf(2, "fuzz: signal %d at %p\n", signal, info->si_addr);
	_exit(3);
}

/* Copy memory, any of which may not be there; returns the signal that says so, or 0. */
static int copy_guarded(void *to, const void *from, size_t size)
{
	int signal = sigsetjmp(guard, 0);

	if (!signal) {
		guarded = 1;
		memcpy(to, from, size);
	}
	guarded = 0;
	return signal;
}

/* --- areas --------------------------------------------------------------------------- */

static uint64_t area(unsigned int thread, enum memory_use use, enum kind kind)
{
	return MEMORY_BASE + thread * THREAD_BYTES + use * USE_BYTES + kind * AREA_BYTES;
}

static bool is_in_areas(uint64_t address)
{
	return address >= MEMORY_BASE && address < MEMORY_BASE + THREADS * THREAD_BYTES;
}

static unsigned int thread_at(uint64_t address)
{
	return (address - MEMORY_BASE) / THREAD_BYTES;
}

static enum memory_use use_at(uint64_t address)
{
	return (address - MEMORY_BASE) % THREAD_BYTES / USE_BYTES;
}

static enum kind kind_at(uint64_t address)
{
	return (address - MEMORY_BASE) % USE_BYTES / AREA_BYTES;
}

static void map_at(uint64_t address, int protection, int flags, int fd)
{
	void *at = (void *)address;

	if (mmap(at, MEMORY_BYTES, protection, MAP_FIXED | flags, fd, 0) != at)
		err(1, "mmap");
}

/* In between the provider may unmap it again, if a thread of io_uring's has missed a page of it. */
static void map_missing(uint64_t address)
{
	struct uffdio_register where = {
		.range = { .start = address, .len = MEMORY_BYTES },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	unsigned int tries = 0;

	do {
		if (tries++ == REGISTER_TRIES)
			err(1, "UFFDIO_REGISTER");
		map_at(address, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	} while (ioctl(userfault, UFFDIO_REGISTER, &where));
}

static void map_area(unsigned int thread, enum memory_use use, enum kind kind)
{
	uint64_t address = area(thread, use, kind);

	switch (kind) {
	case PLAIN:
		map_at(address, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		break;
	case READ_ONLY:
		map_at(address, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		break;
	case FORBIDDEN:
		map_at(address, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		break;
	case MISSING:
		map_missing(address);
		break;
	case SHORT_FILE:
		map_at(address, PROT_READ | PROT_WRITE, MAP_SHARED, short_file);
		break;
	default:
		break;
	}
}

/* --- missing pages ------------------------------------------------------------------- */

/* Let who waits for a page look for it again. */
static void wake_page(uint64_t page)
{
	struct uffdio_range range = { .start = page, .len = PAGE };

	ioctl(userfault, UFFDIO_WAKE, &range);
}

/* If the page was unmapped after the fault, this fails, and wakes nobody. */
static void copy_page(uint64_t page, bool changed)
{
	unsigned long offset = page - area(thread_at(page), use_at(page), MISSING);
	uint8_t *from = copies[thread_at(page)][use_at(page)] + offset;
	struct uffdio_copy copy = { .dst = page, .src = (uintptr_t)from, .len = PAGE };

	if (changed)
		from[random_below(&(struct random){ page }, PAGE)] ^= 1;
	if (ioctl(userfault, UFFDIO_COPY, &copy))
		wake_page(page);
}

static void zero_page(uint64_t page)
{
	struct uffdio_zeropage zero = { .range = { .start = page, .len = PAGE } };

	if (ioctl(userfault, UFFDIO_ZEROPAGE, &zero))
		wake_page(page);
}

static void damage(uint64_t address)
{
	damaged[thread_at(address)][use_at(address)][kind_at(address)] = true;
}

/* It is marked as damaged only then: memory_mend() must not map it again before. */
static void unmap_missing(uint64_t page)
{
	munmap((void *)area(thread_at(page), use_at(page), MISSING), MEMORY_BYTES);
	damage(page);
	wake_page(page);
}

static void provide(uint64_t page)
{
	switch (how_to_provide) {
	case FAULT_LATE:
		usleep(500);
		copy_page(page, false);
		break;
	case FAULT_ZERO:
		zero_page(page);
		break;
	case FAULT_READ_ONLY:
		copy_page(page, false);
		memory_protect(page, PROT_READ);
		break;
	case FAULT_UNMAP:
		unmap_missing(page);
		break;
	case FAULT_CHANGED:
		copy_page(page, true);
		break;
	default:
		copy_page(page, false);
	}
}

static void *provider(void *unused)
{
	struct uffd_msg message;

	(void)unused;
	while (read(userfault, &message, sizeof(message)) == sizeof(message))
		if (message.event == UFFD_EVENT_PAGEFAULT)
			provide(message.arg.pagefault.address & ~(PAGE - 1));
	return NULL;
}

/**
 * memory_provide_by() - say how missing pages are provided from now on
 * @fault: how.
 */
void memory_provide_by(uint8_t fault)
{
	how_to_provide = fault % FAULTS;
	if (shared->keeps_memory &&
	    (how_to_provide == FAULT_UNMAP || how_to_provide == FAULT_ZERO))
		how_to_provide = FAULT_LATE;
}

/* --- for calls ----------------------------------------------------------------------- */

static void start_provider(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	sigset_t all, before;
	pthread_t thread;

	userfault = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (userfault < 0 || ioctl(userfault, UFFDIO_API, &api))
		err(1, "userfaultfd");
	/* Signals are for the threads that make calls. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, provider, NULL))
		errx(1, "no thread");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/**
 * memory_start() - to be called once in a process, before the others
 */
void memory_start(void)
{
	struct sigaction action = {
		.sa_sigaction = bad_access,
		.sa_flags = SA_SIGINFO | SA_NODEFER,
	};

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	short_file = memfd_create("short", MFD_CLOEXEC);
	if (short_file < 0 || ftruncate(short_file, PAGE))
		err(1, "memfd_create");
	start_provider();
}

/**
 * memory_open() - map all areas of a thread
 * @memory: the thread's memory.
 * @thread: its number.
 */
void memory_open(struct memory *memory, unsigned int thread)
{
	unsigned int use, kind;

	memory->base = area(thread, 0, 0);
	for (use = 0; use < MEMORY_USES; use++)
		for (kind = 0; kind < KINDS; kind++)
			map_area(thread, use, kind);
}

static uint64_t nowhere(uint8_t place)
{
	static const uint64_t addresses[] = {
		0, 8, 0xffffffffULL, 0x7ffffffff000ULL, 0x7fffffffeff8ULL, 0x800000000000ULL,
		0xffff800000000000ULL, 0xffffffff81000000ULL, 0xfffffffffffffff8ULL,
		0xffffffffffffffffULL, 0xdead000000000000ULL,
	};

	return addresses[place % LENGTH(addresses)];
}

/* Where in an area something of that size is. */
static uint64_t offset_of(uint8_t place, size_t size)
{
	if (size > MEMORY_BYTES)
		size = MEMORY_BYTES;
	switch (place % 8) {
	case 1:		/* to the end of what is mapped */
		return MEMORY_BYTES - size;
	case 2:		/* and a little further */
		return MEMORY_BYTES - size + 1 + place / 8;
	case 3:		/* half of it in the next page */
		return PAGE - (size / 2) % PAGE;
	case 4:		/* not aligned */
		return 1 + place / 8;
	case 5:
		return MEMORY_BYTES - 8 * (1 + place / 8);
	case 6:
		return PAGE * (place / 32) + 64 * (place / 8 % 4);
	default:
		return 0;
	}
}

/**
 * memory_at() - say where something of a call is
 * @memory: the thread's memory.
 * @use: what it is for.
 * @plan: of which kind it is, and where in it.
 * @size: how many bytes.
 * @slot: the file whose words it may be.
 *
 * Return: its address, at which there need not be any memory.
 */
uint64_t memory_at(struct memory *memory, enum memory_use use, struct memory_plan plan,
		   size_t size, unsigned int slot)
{
	enum kind kind = kinds[plan.kind % sizeof(kinds)];
	unsigned int thread = thread_at(memory->base);

	switch (kind) {
	case OTHER_USE:
		memory->overlaps = true;
		return area(thread, (use + 1) % MEMORY_USES, PLAIN) + plan.place;
	case WORDS:
		return WORDS_AT(slot) + offset_of(plan.place, size) % PAGE;
	case NOWHERE:
		return nowhere(plan.place);
	case MISSING:
		memory->uses_missing = true;
		break;
	default:
		break;
	}
	return area(thread, use, kind) + offset_of(plan.place, size);
}

/* Put something into a missing area: pages of it are missing from now on. */
static void put_missing(uint64_t to, const void *from, size_t size)
{
	uint64_t begin = area(thread_at(to), use_at(to), MISSING);
	size_t offset = to - begin;

	if (size > MEMORY_BYTES - offset)
		size = MEMORY_BYTES - offset;
	memcpy(copies[thread_at(to)][use_at(to)] + offset, from, size);
	madvise((void *)begin, MEMORY_BYTES, MADV_DONTNEED);
}

/* How much of @size bytes there is room for in the area that they begin in. */
static size_t room_at(uint64_t to, size_t size)
{
	uint64_t end = area(thread_at(to), use_at(to), kind_at(to)) + MEMORY_BYTES;

	return to >= end ? 0 : size > end - to ? end - to : size;
}

/**
 * memory_put() - write the argument of a call, as far as there is memory
 * @memory: the thread's memory.
 * @to: its address, as memory_at() said.
 * @from: the argument.
 * @size: its size.
 */
void memory_put(struct memory *memory, uint64_t to, const void *from, size_t size)
{
	(void)memory;
	if (!is_in_areas(to)) {
		copy_guarded((void *)to, from, size);
		return;
	}
	size = room_at(to, size);
	if (!size)
		return;
	switch (kind_at(to)) {
	case MISSING:
		put_missing(to, from, size);
		break;
	case READ_ONLY:
		memory_protect(to, PROT_READ | PROT_WRITE);
		copy_guarded((void *)to, from, size);
		mprotect((void *)area(thread_at(to), use_at(to), READ_ONLY), MEMORY_BYTES,
			 PROT_READ);
		damaged[thread_at(to)][use_at(to)][READ_ONLY] = false;
		break;
	default:
		copy_guarded((void *)to, from, size);
	}
}

/**
 * memory_get() - read what a call has written
 * @to: where to.
 * @from: the address.
 * @size: how many bytes.
 *
 * Return: whether they can be read.
 */
bool memory_get(void *to, uint64_t from, size_t size)
{
	return !copy_guarded(to, (void *)from, size);
}

/**
 * memory_store() - store a word
 * @to: its address.
 * @value: the word.
 * @signal: out: the signal that came, if it could not be stored.
 *
 * Return: whether it was stored.
 */
bool memory_store(uint64_t to, uint64_t value, int *signal)
{
	*signal = copy_guarded((void *)to, &value, sizeof(value));
	return !*signal;
}

/**
 * memory_is_steady() - does nobody else change what is at that address?
 * @memory: the thread's memory.
 * @address: as memory_at() said.
 */
bool memory_is_steady(const struct memory *memory, uint64_t address)
{
	if (!is_in_areas(address) || thread_at(address) != thread_at(memory->base))
		return false;
	/* All areas of the short file are the same memory, and those of children, too. */
	return kind_at(address) != MISSING && kind_at(address) != SHORT_FILE;
}

/**
 * memory_mend() - map again what was unmapped or made read-only during a call
 * @memory: the thread's memory.
 */
void memory_mend(struct memory *memory)
{
	unsigned int thread = thread_at(memory->base), use, kind;

	for (use = 0; use < MEMORY_USES; use++)
		for (kind = 0; kind < KINDS; kind++)
			if (atomic_exchange(&damaged[thread][use][kind], false))
				map_area(thread, use, kind);
}

/* --- while a call is under way ------------------------------------------------------- */

/* Unmap a page. */
void memory_unmap(struct memory *memory, uint64_t address)
{
	(void)memory;
	if (!is_in_areas(address))
		return;
	damage(address);
	munmap((void *)(address & ~(PAGE - 1)), PAGE);
}

/* Change what may be done to an area. */
void memory_protect(uint64_t address, int protection)
{
	if (!is_in_areas(address))
		return;
	damage(address);
	mprotect((void *)area(thread_at(address), use_at(address), kind_at(address)),
		 MEMORY_BYTES, protection);
}

/* Forget what is in an area. */
void memory_drop(uint64_t address)
{
	if (is_in_areas(address))
		madvise((void *)area(thread_at(address), use_at(address), kind_at(address)),
			MEMORY_BYTES, MADV_DONTNEED);
}

/* Write something else to it, again and again. */
void memory_scribble(uint64_t address, struct random *random)
{
	unsigned int times = 64;
	int signal;

	while (times--)
		memory_store(address + 8 * random_below(random, 64),
			     random_next(random) >> random_below(random, 64), &signal);
}
