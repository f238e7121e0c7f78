// SPDX-License-Identifier: GPL-2.0
/* Errands: what the threads of a page want of the loop of the program. */
#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

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
		errand->function(errand->context);
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
