// SPDX-License-Identifier: GPL-2.0
/* Errands: what the threads of a page want of the loop of the program. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/time.h"
#include "metrics/errands.h"

/**
 * struct errand - an errand, on the stack of the thread that waits for it
 * @function: what the loop runs.
 * @context: its argument.
 * @over: the thread may go on.
 * @ret: 0, or -ESHUTDOWN.
 * @entry: in the list.
 */
struct errand {
	void (*function)(void *context);
	void *context;
	bool over;
	int ret;
	TAILQ_ENTRY(errand) entry;
};

int errands_init(struct errands *errands)
{
	TAILQ_INIT(&errands->list);
	errands->closed = false;
	errands->nr = 0;
	errands->cpu_ns = 0;
	errands->cpu_max_ns = 0;
	pthread_mutex_init(&errands->lock, NULL);
	pthread_cond_init(&errands->done, NULL);
	errands->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return errands->fd < 0 ? -errno : 0;
}

void errands_destroy(struct errands *errands)
{
	if (errands->fd >= 0)
		close(errands->fd);
	pthread_cond_destroy(&errands->done);
	pthread_mutex_destroy(&errands->lock);
}

static void wake_loop(struct errands *errands)
{
	const uint64_t one = 1;

	/* It fails only if the file is readable anyway. */
	if (write(errands->fd, &one, sizeof(one)) < 0)
		return;
}

int errands_do(struct errands *errands, void (*function)(void *context), void *context)
{
	struct errand errand = { .function = function, .context = context };

	pthread_mutex_lock(&errands->lock);
	if (errands->closed) {
		errand.ret = -ESHUTDOWN;
	} else {
		TAILQ_INSERT_TAIL(&errands->list, &errand, entry);
		wake_loop(errands);
		while (!errand.over)
			pthread_cond_wait(&errands->done, &errands->lock);
	}
	pthread_mutex_unlock(&errands->lock);
	return errand.ret;
}

static struct errand *take(struct errands *errands)
{
	struct errand *errand;

	pthread_mutex_lock(&errands->lock);
	errand = TAILQ_FIRST(&errands->list);
	if (errand)
		TAILQ_REMOVE(&errands->list, errand, entry);
	pthread_mutex_unlock(&errands->lock);
	return errand;
}

static void end(struct errands *errands, struct errand *errand, int ret)
{
	pthread_mutex_lock(&errands->lock);
	errand->ret = ret;
	errand->over = true;
	pthread_cond_broadcast(&errands->done);
	pthread_mutex_unlock(&errands->lock);
}

/* Only this thread writes the numbers. */
static void run(struct errands *errands, const struct errand *errand)
{
	uint64_t start_ns = time_now_ns(CLOCK_THREAD_CPUTIME_ID), took_ns;

	errand->function(errand->context);
	took_ns = time_now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	errands->nr++;
	errands->cpu_ns += took_ns;
	if (took_ns > errands->cpu_max_ns)
		errands->cpu_max_ns = took_ns;
}

void errands_write(const struct errands *errands, FILE *out)
{
	fprintf(out, "{\"nr\":%" PRIu64 ",\"us\":%" PRIu64 ",\"max_us\":%" PRIu64 "}", errands->nr,
		errands->cpu_ns / (uint64_t)NSEC_PER_USEC,
		errands->cpu_max_ns / (uint64_t)NSEC_PER_USEC);
}

void errands_run(struct errands *errands)
{
	struct errand *errand;
	uint64_t count;
	int n;

	if (read(errands->fd, &count, sizeof(count)) < 0)
		return;
	for (n = 0; n < ERRANDS_A_TURN; n++) {
		errand = take(errands);
		if (!errand)
			return;
		run(errands, errand);
		end(errands, errand, 0);
	}
	/* There may be more: the next turn looks. */
	wake_loop(errands);
}

void errands_close(struct errands *errands)
{
	struct errand *errand;

	pthread_mutex_lock(&errands->lock);
	errands->closed = true;
	pthread_mutex_unlock(&errands->lock);
	while ((errand = take(errands)))
		end(errands, errand, -ESHUTDOWN);
}
