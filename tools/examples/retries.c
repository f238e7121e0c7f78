// SPDX-License-Identifier: GPL-2.0
/*
 * Retries: requests to a service that often fails, each tried again after a delay that
 * doubles, with jitter.
 *
 * A request has one timeout, which is started for its next attempt.  The delay after the
 * k-th failure is somewhere between nothing and min(CAP, BASE * 2^k) ("full jitter"): the
 * doubling gives the service time to recover, and the jitter spreads requests that failed at
 * the same time.  All waiting requests use one file, and all timeouts started in one turn of
 * the loop are submitted in one system call.
 *
 * The number of a request decides which of its attempts fail, so the output is always the
 * same.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libtwheel.h>

#define NR_REQUESTS	1000
#define MAX_ATTEMPTS	6
#define BASE_NS		(2 * TWHEEL_MILLISECOND)
#define CAP_NS		(20 * TWHEEL_MILLISECOND)

struct request {
	struct twheel_timeout timeout;
	unsigned int attempts;
	unsigned int random;
	__u64 not_before_ns;
};

static struct request requests[NR_REQUESTS];
static struct twheel_loop *loop;
static struct twheel *wheel;
static unsigned int left = NR_REQUESTS, early, dead, done_after[MAX_ATTEMPTS + 1];

/* A random number; each request has its own sequence. */
static unsigned int next_random(struct request *request)
{
	request->random = request->random * 1664525 + 1013904223;
	return request->random >> 8;
}

/* The service: six of ten attempts fail. */
static int call_service(struct request *request)
{
	return next_random(request) % 10 < 6 ? -1 : 0;
}

static __u64 delay_ns(struct request *request)
{
	__u64 longest_ns = BASE_NS << request->attempts;

	if (longest_ns > CAP_NS)
		longest_ns = CAP_NS;
	return next_random(request) % longest_ns;
}

static void start_attempt(struct request *request)
{
	int ret;

	request->not_before_ns = twheel_now_ns(wheel) + delay_ns(request);
	ret = twheel_timeout_start(loop, &request->timeout, request->not_before_ns, 0, 0,
				   TWHEEL_ABS);
	if (ret)
		errx(1, "cannot start a timeout: %s", strerror(-ret));
}

/* The time of a request's attempt has come. */
static void attempt(struct twheel_timeout *timeout, const struct twheel_record *record)
{
	struct request *request = timeout->context;

	early += record->fired_ns < request->not_before_ns;
	request->attempts++;
	if (!call_service(request)) {
		done_after[request->attempts]++;
		left--;
	} else if (request->attempts == MAX_ATTEMPTS) {
		dead++;
		left--;
	} else {
		start_attempt(request);
	}
}

static void check(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror(-ret));
}

int main(void)
{
	unsigned int i;

	check(twheel_open(&wheel, NULL), "cannot open /dev/twheel");
	check(twheel_loop_create(&loop, wheel), "cannot make a loop");
	for (i = 0; i < NR_REQUESTS; i++) {
		requests[i].random = i;
		twheel_timeout_init(&requests[i].timeout, attempt, &requests[i]);
		start_attempt(&requests[i]);
	}
	while (left)
		check(twheel_loop_run(loop, TWHEEL_NEVER), "the loop");

	for (i = 1; i <= MAX_ATTEMPTS; i++)
		printf("%u requests succeeded at attempt %u\n", done_after[i], i);
	printf("%u requests failed %u times and were given up\n", dead, MAX_ATTEMPTS);
	printf("%u attempts came early\n", early);
	twheel_loop_destroy(loop);
	twheel_close(wheel);
	return early ? 1 : 0;
}
