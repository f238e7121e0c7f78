// SPDX-License-Identifier: GPL-2.0
/* A lane: a thread that does one piece of work after the other. */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "metrics/lane.h"

#define NICENESS	10

void lane_be_nice(void)
{
	/* On Linux each thread has a niceness of its own. */
	setpriority(PRIO_PROCESS, syscall(SYS_gettid), NICENESS);
}

/* The next piece of work; NULL: the lane stops. */
static struct lane_work *next_work(struct lane *lane)
{
	struct lane_work *work;

	pthread_mutex_lock(&lane->lock);
	while (TAILQ_EMPTY(&lane->list) && !lane->stop)
		pthread_cond_wait(&lane->wake, &lane->lock);
	work = lane->stop ? NULL : TAILQ_FIRST(&lane->list);
	if (work) {
		TAILQ_REMOVE(&lane->list, work, entry);
		lane->nr--;
	}
	pthread_mutex_unlock(&lane->lock);
	return work;
}

static void *run_lane(void *context)
{
	struct lane *lane = context;
	struct lane_work *work;

	lane_be_nice();
	while ((work = next_work(lane)))
		work->run(work, false);
	return NULL;
}

int lane_start(struct lane *lane)
{
	TAILQ_INIT(&lane->list);
	lane->nr = 0;
	lane->stop = false;
	pthread_mutex_init(&lane->lock, NULL);
	pthread_cond_init(&lane->wake, NULL);
	return -pthread_create(&lane->thread, NULL, run_lane, lane);
}

void lane_stop(struct lane *lane)
{
	struct lane_work *work;

	pthread_mutex_lock(&lane->lock);
	lane->stop = true;
	pthread_cond_signal(&lane->wake);
	pthread_mutex_unlock(&lane->lock);
	pthread_join(lane->thread, NULL);
	while ((work = TAILQ_FIRST(&lane->list))) {
		TAILQ_REMOVE(&lane->list, work, entry);
		work->run(work, true);
	}
	pthread_cond_destroy(&lane->wake);
	pthread_mutex_destroy(&lane->lock);
}

bool lane_add(struct lane *lane, struct lane_work *work)
{
	bool may;

	pthread_mutex_lock(&lane->lock);
	may = !lane->stop && lane->nr < LANE_MAX;
	if (may) {
		TAILQ_INSERT_TAIL(&lane->list, work, entry);
		lane->nr++;
		pthread_cond_signal(&lane->wake);
	}
	pthread_mutex_unlock(&lane->lock);
	return may;
}
