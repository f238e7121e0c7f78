// SPDX-License-Identifier: GPL-2.0
/*
 * Threads for calls of librdkafka that wait for brokers: they read the map, ask for committed
 * offsets, and find out whether targets exist. The loop hands over jobs, and gets them back:
 *
 *	            add               a thread has time              it is done
 *	  (loop) ---------> waiting --------------------> running -------------> over --> (loop)
 *	                       ^                             |
 *	                       +-----------------------------+
 *	                           not yet: again after AGAIN_MS
 *
 * One mutex guards the lists. @done is called by the loop, without it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/util.h"
#include "relay/state.h"
#include "relay/work.h"

#define THREADS		4

/* When a job that was not ready is run again. */
#define AGAIN_MS	50

TAILQ_HEAD(jobs, relay_job);

/**
 * struct relay_work - the threads and their jobs
 * @relay: the relay.
 * @threads: the threads.
 * @nr_threads: how many were started.
 * @fd: an eventfd that says that a job is over.
 * @lock: guards what follows.
 * @wake: a job was added, or the end has come.
 * @waiting: jobs to be run, in this order.
 * @over: jobs whose @done is to be called.
 * @running: by thread: the job that it runs, or NULL.
 * @ending: all jobs are abandoned.
 */
struct relay_work {
	struct relay *relay;
	pthread_t threads[THREADS];
	unsigned int nr_threads;
	int fd;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct jobs waiting;
	struct jobs over;
	struct relay_job *running[THREADS];
	atomic_bool ending;
};

static bool is_busy(const struct relay_work *work, int32_t number)
{
	size_t i;

	for (i = 0; i < THREADS; i++)
		if (number >= 0 && work->running[i] && work->running[i]->number == number)
			return true;
	return false;
}

static struct relay_job *find_job(const struct relay_work *work)
{
	struct relay_job *job;

	TAILQ_FOREACH(job, &work->waiting, link)
		if (!is_busy(work, job->number))
			return job;
	return NULL;
}

/* Wait until a job can be run. Returns NULL at the end. Called with the lock. */
static struct relay_job *wait_for_job(struct relay_work *work)
{
	struct relay_job *job;

	while (!(job = find_job(work)) && !work->ending)
		pthread_cond_wait(&work->wake, &work->lock);
	return job;
}

static void sleep_ms(unsigned int ms)
{
	const struct timespec time = { .tv_nsec = ms * NSEC_PER_MSEC };

	nanosleep(&time, NULL);
}

/* Run a job. Returns whether it is over. */
static bool run_job(struct relay_work *work, struct relay_job *job)
{
	if (relay_work_over(work->relay, job) || job->run(work->relay, job) ||
	    relay_work_over(work->relay, job))
		return true;
	sleep_ms(AGAIN_MS);
	return false;
}

static void tell_loop(const struct relay_work *work)
{
	static const uint64_t one = 1;

	(void)!write(work->fd, &one, sizeof(one));
}

static void run_jobs(struct relay_work *work, struct relay_job **running)
{
	struct relay_job *job;
	bool over;

	pthread_mutex_lock(&work->lock);
	while ((job = wait_for_job(work))) {
		TAILQ_REMOVE(&work->waiting, job, link);
		*running = job;
		pthread_mutex_unlock(&work->lock);
		over = run_job(work, job);
		pthread_mutex_lock(&work->lock);
		*running = NULL;
		if (over)
			TAILQ_INSERT_TAIL(&work->over, job, link);
		else
			TAILQ_INSERT_TAIL(&work->waiting, job, link);
		/* Another job of this number may have waited. */
		pthread_cond_broadcast(&work->wake);
		if (over)
			tell_loop(work);
	}
	pthread_mutex_unlock(&work->lock);
}

/* A thread finds its place in @running. */
static void *run_thread(void *context)
{
	struct relay_work *work = context;
	pthread_t self = pthread_self();
	size_t i = 0;

	pthread_mutex_lock(&work->lock);
	while (!pthread_equal(work->threads[i], self))
		i++;
	pthread_mutex_unlock(&work->lock);
	run_jobs(work, &work->running[i]);
	return NULL;
}

static bool start_threads(struct relay_work *work)
{
	unsigned int i;

	pthread_mutex_lock(&work->lock);
	for (i = 0; i < THREADS; i++)
		if (!pthread_create(&work->threads[i], NULL, run_thread, work))
			work->nr_threads++;
		else
			break;
	pthread_mutex_unlock(&work->lock);
	return work->nr_threads == THREADS;
}

int relay_work_open(struct relay *relay)
{
	struct relay_work *work = calloc(1, sizeof(*work));

	relay->work = work;
	if (work) {
		work->relay = relay;
		pthread_mutex_init(&work->lock, NULL);
		pthread_cond_init(&work->wake, NULL);
		TAILQ_INIT(&work->waiting);
		TAILQ_INIT(&work->over);
		work->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (work->fd >= 0 && start_threads(work))
			return 0;
	}
	log_say(LOG_ERR, "cannot start threads: %m");
	return EXIT_CANNOT;
}

int relay_work_fd(const struct relay_work *work)
{
	return work->fd;
}

bool relay_work_over(const struct relay *relay, const struct relay_job *job)
{
	return relay->work->ending || job->abandoned;
}

void relay_work_add(struct relay *relay, struct relay_job *job)
{
	struct relay_work *work = relay->work;

	pthread_mutex_lock(&work->lock);
	TAILQ_INSERT_TAIL(&work->waiting, job, link);
	pthread_cond_broadcast(&work->wake);
	pthread_mutex_unlock(&work->lock);
}

static struct relay_job *take_over(struct relay_work *work)
{
	struct relay_job *job;

	pthread_mutex_lock(&work->lock);
	job = TAILQ_FIRST(&work->over);
	if (job)
		TAILQ_REMOVE(&work->over, job, link);
	pthread_mutex_unlock(&work->lock);
	return job;
}

void relay_work_poll(struct relay *relay)
{
	struct relay_job *job;

	while ((job = take_over(relay->work)))
		job->done(relay, job);
}

void relay_work_close(struct relay *relay)
{
	struct relay_work *work = relay->work;
	unsigned int i;

	if (!work)
		return;
	pthread_mutex_lock(&work->lock);
	work->ending = true;
	pthread_cond_broadcast(&work->wake);
	pthread_mutex_unlock(&work->lock);
	/* The jobs that wait are over at once: relay_work_over(). */
	for (i = 0; i < work->nr_threads; i++)
		pthread_join(work->threads[i], NULL);
	relay_work_poll(relay);
	if (work->fd >= 0)
		close(work->fd);
	pthread_cond_destroy(&work->wake);
	pthread_mutex_destroy(&work->lock);
	free(work);
	relay->work = NULL;
}
