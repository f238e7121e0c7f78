// SPDX-License-Identifier: GPL-2.0
/*
 * A rate limiter: each client has a bucket of tokens, which fills at a steady rate, and a
 * request takes one.  A request that finds none waits for its own.
 *
 * A bucket is one number, the time at which it would be full.  A request moves it by the time
 * of one token, and may run when that time is at most the bucket's depth away (GCRA, the
 * "virtual scheduling" of ATM's policing).  So no timer has to fill buckets.  Only a request
 * that has to wait starts a timeout.
 *
 * Here each client sends all its requests at once, so the output is always the same.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libtwheel.h>

#define NR_CLIENTS	20
#define NR_REQUESTS	25
#define BURST		10
#define TOKEN_NS	(5 * TWHEEL_MILLISECOND)	/* 200 requests a second */

struct client {
	__u64 full_ns;
	unsigned int served;
};

struct request {
	struct twheel_timeout timeout;
	struct client *client;
	__u64 allowed_ns;
};

static struct client clients[NR_CLIENTS];
static struct request requests[NR_CLIENTS][NR_REQUESTS];
static struct twheel_loop *loop;
static struct twheel *wheel;
static unsigned int at_once, delayed, early;

/* Take a token of a client's bucket.  Returns the time at which it is there. */
static __u64 take_token(struct client *client, __u64 now_ns)
{
	if (client->full_ns < now_ns)
		client->full_ns = now_ns;
	client->full_ns += TOKEN_NS;
	return client->full_ns - BURST * TOKEN_NS;
}

static void serve(struct request *request)
{
	early += twheel_now_ns(wheel) < request->allowed_ns;
	request->client->served++;
}

static void token_came(struct twheel_timeout *timeout, const struct twheel_record *record)
{
	(void)record;
	delayed++;
	serve(timeout->context);
}

static void check(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror(-ret));
}

static void arrive(struct request *request, __u64 now_ns)
{
	request->allowed_ns = take_token(request->client, now_ns);
	if (request->allowed_ns <= now_ns) {
		at_once++;
		serve(request);
		return;
	}
	twheel_timeout_init(&request->timeout, token_came, request);
	check(twheel_timeout_start(loop, &request->timeout, request->allowed_ns, 0, 0,
				   TWHEEL_ABS), "cannot start a timeout");
}

int main(void)
{
	unsigned int i, k;
	__u64 now_ns;

	check(twheel_open(&wheel, NULL), "cannot open /dev/twheel");
	check(twheel_loop_create(&loop, wheel), "cannot make a loop");
	now_ns = twheel_now_ns(wheel);
	for (i = 0; i < NR_CLIENTS; i++) {
		for (k = 0; k < NR_REQUESTS; k++) {
			requests[i][k].client = &clients[i];
			arrive(&requests[i][k], now_ns);
		}
	}
	while (at_once + delayed < NR_CLIENTS * NR_REQUESTS)
		check(twheel_loop_run(loop, TWHEEL_NEVER), "the loop");

	printf("%u requests of %u clients\n", NR_CLIENTS * NR_REQUESTS, NR_CLIENTS);
	printf("%u had a token at once, %u waited for one\n", at_once, delayed);
	for (i = 0; i < NR_CLIENTS; i++)
		if (clients[i].served != NR_REQUESTS)
			errx(1, "client %u was served %u times", i, clients[i].served);
	printf("%u were served before their token came\n", early);
	twheel_loop_destroy(loop);
	twheel_close(wheel);
	return early ? 1 : 0;
}
