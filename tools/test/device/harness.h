/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small test harness.
 *
 * TEST(name) { ... } defines and registers a test; main() is in harness.c.
 * TEST_NAMED(name) is for one that needs a machine of its own, which a script
 * prepares: it runs only where it is named.
 * Each test runs in a process of its own, which leads a process group: a test
 * that crashes or hangs fails alone, and whatever it forked goes with it.
 *
 * The first assertion that does not hold ends the test, whichever of its
 * threads or child processes made it.
 */
#ifndef DEVICE_TEST_HARNESS_H
#define DEVICE_TEST_HARNESS_H

#include <stdbool.h>

#define __noreturn	__attribute__((noreturn))
#define __printf(a, b)	__attribute__((format(printf, a, b)))

struct test {
	const char *name;
	void (*run)(void);
	bool only_if_named;
	struct test *next;
};

void test_register(struct test *test);

#define TEST(fn)	TEST_REGISTER(fn, false)
#define TEST_NAMED(fn)	TEST_REGISTER(fn, true)

#define TEST_REGISTER(fn, named)					\
	static void fn(void);						\
	static struct test test_##fn = {				\
		.name = #fn, .run = fn, .only_if_named = named,		\
	};								\
	static void __attribute__((constructor)) register_##fn(void)	\
	{								\
		test_register(&test_##fn);				\
	}								\
	static void fn(void)

/* Say what the next assertions are about, for the diagnostics of a failure. */
void __printf(1, 2) test_about(const char *fmt, ...);

/* End the test: the machine cannot do what it is about. */
void __noreturn __printf(1, 2) test_skip(const char *fmt, ...);

/* End the test as failed. */
void __noreturn __printf(3, 4)
test_fail(const char *file, int line, const char *fmt, ...);

void __noreturn
test_fail_compare(const char *file, int line, const char *what, long long seen,
		  const char *op, long long expected);

/*
 * @n, or the part of it that --quick asks for. It is never less than 100, or than a tenth
 * of @n if that is less still.
 */
unsigned long test_count(unsigned long n);

/* Both sides are compared as 64-bit signed integers. */
#define ASSERT_COMPARE(seen, text, op, expected)			\
	do {								\
		long long seen_ = (long long)(seen);			\
		long long expected_ = (long long)(expected);		\
									\
		if (!(seen_ op expected_))				\
			test_fail_compare(__FILE__, __LINE__, text,	\
					  seen_, #op, expected_);	\
	} while (0)

#define ASSERT_EQ(seen, expected) ASSERT_COMPARE(seen, #seen, ==, expected)
#define ASSERT_NE(seen, expected) ASSERT_COMPARE(seen, #seen, !=, expected)
#define ASSERT_LT(seen, expected) ASSERT_COMPARE(seen, #seen, <, expected)
#define ASSERT_LE(seen, expected) ASSERT_COMPARE(seen, #seen, <=, expected)
#define ASSERT_GT(seen, expected) ASSERT_COMPARE(seen, #seen, >, expected)
#define ASSERT_GE(seen, expected) ASSERT_COMPARE(seen, #seen, >=, expected)

#define ASSERT(condition)						\
	do {								\
		if (!(condition))					\
			test_fail(__FILE__, __LINE__,			\
				  "%s: seen false, expected true",	\
				  #condition);				\
	} while (0)

#endif /* DEVICE_TEST_HARNESS_H */
