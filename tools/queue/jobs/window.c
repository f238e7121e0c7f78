// SPDX-License-Identifier: GPL-2.0
/*
 * Which jobs are in memory.
 *
 * The disk has jobs in several orders: DELAYED and WALL by due time, READY of each tube by
 * priority and id. Each order has a cut: all jobs before this place are in memory. The jobs
 * behind it are loaded from the index, a piece at a time, and the cut moves on:
 *
 *	DELAYED   |####################|........................> due
 *	        now                   cut   on disk only
 *
 *	READY of a tube   |####|..........................> priority, id
 *	                      cut
 *
 * Jobs behind a cut may be in memory too, which does no harm. A load skips the jobs that are
 * in memory already: memory knows more of them than the disk (job.c, 1).
 *
 * Delayed jobs are loaded when the cut is less than half a window from now, up to a whole
 * window. Ready jobs are loaded when a session wants one and the tree is empty.
 *
 * When too many jobs are in memory, the last in order are evicted: the cut moves back. Ready
 * jobs are evicted before delayed ones, until delayed ones take most of the memory.
 */
#include <stdlib.h>

#include "common/log.h"
#include "queue/jobs/age.h"
#include "queue/jobs/job.h"
#include "queue/jobs/resident.h"
#include "queue/jobs/tube.h"
#include "queue/jobs/window.h"
#include "queue/store/read.h"

/* The number of jobs that are loaded, or evicted, at a time. */
#define PIECE		256
#define READY_PIECE	256

static bool before(uint64_t first, uint64_t id, uint64_t cut_first, uint64_t cut_id)
{
	return first != cut_first ? first < cut_first : id < cut_id;
}

/* --- delayed -------------------------------------------------------------------------- */

void windows_init(struct queue *queue)
{
	queue->windows[0].state = JOB_DELAYED;
	queue->windows[0].cut.state = JOB_DELAYED;
	queue->windows[1].state = JOB_WALL;
	queue->windows[1].cut.state = JOB_WALL;
}

static struct window *window_of(struct queue *queue, enum job_state state)
{
	return &queue->windows[state == JOB_WALL];
}

static uint64_t window_now_ns(const struct queue *queue, const struct window *window)
{
	return window->state == JOB_WALL ? alarms_now_ns(ALARM_WALL) :
					   clock_now_ns(&queue->clock);
}

bool window_has(struct queue *queue, const struct job_place *place)
{
	const struct window *window = window_of(queue, place->state);

	return before(place->order, place->id, window->cut.order, window->cut.id);
}

static void move_cut(struct window *window, uint64_t order, uint64_t id)
{
	window->cut.order = order;
	window->cut.id = id;
	if (window->end_ns < order)
		window->end_ns = order;
}

static bool tube_has(const struct tube *tube, const struct job_place *place)
{
	return tube->whole || before(place->pri, place->id, tube->cut.pri, tube->cut.id);
}

void window_cut(struct queue *queue, const struct job_place *place)
{
	struct tube *tube;

	if (place->state == JOB_READY) {
		tube = tube_by_number(queue, place->tube);
		if (tube_has(tube, place))
			tube->cut = *place;
		age_cut(queue, tube, age_now_s(queue));
		tube->whole = false;
	} else if (window_has(queue, place)) {
		window_of(queue, place->state)->cut = *place;
	}
}

/* The time from now until @time_ns of the clock of a window; 0: it has come. */
static uint64_t ahead_ns(const struct queue *queue, const struct window *window,
			 uint64_t time_ns)
{
	uint64_t now_ns = window_now_ns(queue, window);

	return time_ns > now_ns ? time_ns - now_ns : 0;
}

void window_arm(struct queue *queue, struct job *job)
{
	if (job->stored == JOB_WALL)
		alarm_add(queue->alarms, &job->alarm, job_id(job), ALARM_WALL, job->order);
	else
		alarm_add(queue->alarms, &job->alarm, job_id(job), ALARM_BOOT,
			  clock_to_boot_ns(&queue->clock, job->order));
	job->placed = true;
	queue->nr_armed++;
}

void window_disarm(struct queue *queue, struct job *job)
{
	alarm_cancel(queue->alarms, &job->alarm);
	job->placed = false;
	queue->nr_armed--;
}

/* A job whose tube is missing is damage, which a check reports; no session can reserve it. */
static bool has_tube(struct queue *queue, const struct job_place *place)
{
	if (tube_by_number(queue, place->tube))
		return true;
	log_say(LOG_ERR, "job %llu belongs to tube %u, which is missing; it stays on disk",
		(unsigned long long)place->id, place->tube);
	return false;
}

struct load {
	struct queue *queue;
	struct window *window;
	uint64_t until_ns;
	size_t room;
	bool ended;
};

static bool load_one(void *context, const struct job_place *place)
{
	struct load *load = context;
	struct queue *queue = load->queue;
	struct job *job;

	if (place->order >= load->until_ns)
		return false;
	move_cut(load->window, place->order, place->id);
	if (load->room && (job_resident(queue, place->id) || !has_tube(queue, place))) {
		load->room--;
		return true;
	}
	load->ended = false;
	if (!load->room)
		return false;
	load->room--;
	job = job_new(queue, place);
	if (!job)
		return false;
	window_arm(queue, job);
	queue->stats.loaded++;
	load->ended = true;
	return true;
}

/* The limit of the delayed jobs in memory. */
static size_t most_armed(const struct queue *queue)
{
	size_t fixed = queue->nr[IS_RESERVED] + queue->nr[IS_BROKEN];
	size_t most = queue->max_resident / 8 * 7;

	if (fixed > queue->max_resident)
		return 0;
	return most < queue->max_resident - fixed ? most : queue->max_resident - fixed;
}

/*
 * Room for more delayed jobs. There is none until an eighth of it is free: else jobs would be
 * loaded and evicted one by one.
 */
static size_t window_room(const struct queue *queue)
{
	size_t most = most_armed(queue), enough = most / 8 * 7;

	return queue->nr_armed <= enough ? most - queue->nr_armed : 0;
}

static bool window_wants(const struct queue *queue, const struct window *window)
{
	return window->cut.order < window_now_ns(queue, window) + queue->config.window_ns / 2;
}

/* Load a piece; true: more is left. */
static bool window_load(struct queue *queue, struct window *window)
{
	size_t room = window_room(queue);
	struct job_place from = window->cut;
	struct load load = {
		.queue = queue,
		.window = window,
		.until_ns = window_now_ns(queue, window) + queue->config.window_ns,
		.room = room < PIECE ? room : PIECE,
		.ended = true,
	};

	if (!room)
		return false;
	/* The store reports damaged entries, and continues behind them. */
	store_walk(queue->store, &from, load_one, &load);
	if (!load.ended)
		return load.room == 0 && window_room(queue) > 0;
	move_cut(window, load.until_ns, 0);
	return false;
}

/* --- evicting delayed jobs ------------------------------------------------------------ */

struct shrink {
	struct queue *queue;
	uint64_t beyond_ns;
	size_t left;
};

static bool shrink_one(void *context, const struct job_place *place)
{
	struct shrink *shrink = context;
	struct queue *queue = shrink->queue;
	struct job *job = job_resident(queue, place->id);

	if (!shrink->left || place->order <= shrink->beyond_ns)
		return false;
	if (!job || job->status != IS_DELAYED)
		return true;
	window_disarm(queue, job);
	job_forget(queue, job);
	window_cut(queue, place);
	queue->stats.evicted++;
	shrink->left--;
	return true;
}

/*
 * Begin at @end_ns: behind the cut there may be jobs in memory, if the cut was moved back. Returns
 * an error of store_walk_back(): then some of the jobs that are to go are still in memory.
 */
static int shrink_window(struct window *window, struct shrink *shrink)
{
	struct job_place last = {
		.state = window->state, .order = window->end_ns, .id = ~0ULL,
	};
	int err;

	if (window->end_ns <= shrink->beyond_ns)
		return 0;
	err = store_walk_back(shrink->queue->store, &last, shrink_one, shrink);
	window->end_ns = window->cut.order;
	if (shrink->left && window->end_ns < shrink->beyond_ns)
		window->end_ns = shrink->beyond_ns;
	return err;
}

/* Returns how many were evicted. */
static size_t evict_beyond(struct queue *queue, struct window *window, size_t nr,
			   uint64_t beyond_ns)
{
	struct shrink shrink = {
		.queue = queue,
		.beyond_ns = window_now_ns(queue, window) + beyond_ns,
		.left = nr,
	};

	shrink_window(window, &shrink);
	return nr - shrink.left;
}

int window_reload(struct queue *queue)
{
	struct window *window = window_of(queue, JOB_DELAYED);
	struct shrink shrink = {
		.queue = queue, .beyond_ns = window_now_ns(queue, window), .left = SIZE_MAX,
	};

	return shrink_window(window, &shrink);
}

/* The window whose last job in memory is due later. */
static struct window *farther_window(struct queue *queue)
{
	struct window *windows = queue->windows;

	return ahead_ns(queue, &windows[0], windows[0].end_ns) >=
	       ahead_ns(queue, &windows[1], windows[1].end_ns) ? &windows[0] : &windows[1];
}

static struct window *other_window(struct queue *queue, const struct window *window)
{
	return &queue->windows[window == &queue->windows[0]];
}

bool window_shrink(struct queue *queue, size_t nr, uint64_t beyond_ns)
{
	struct window *first = farther_window(queue);
	size_t done = evict_beyond(queue, first, nr, beyond_ns);

	if (done < nr)
		done += evict_beyond(queue, other_window(queue, first), nr - done, beyond_ns);
	return done > 0;
}

/*
 * There is no room to load more into this window: evict a piece of the other one that is due
 * much later.
 */
static bool window_make_room(struct queue *queue, struct window *window)
{
	uint64_t beyond_ns = ahead_ns(queue, window, window->cut.order) +
			     queue->config.window_ns / 16;

	return evict_beyond(queue, other_window(queue, window), PIECE, beyond_ns) > 0;
}

/* --- ready ---------------------------------------------------------------------------- */

struct load_ready {
	struct queue *queue;
	struct tube *tube;
	size_t room;
	bool no_memory;
};

static bool load_one_ready(void *context, const struct job_place *place)
{
	struct load_ready *load = context;
	struct job *job;

	load->tube->cut = *place;
	if (!load->room)
		return false;
	if (job_resident(load->queue, place->id))
		return true;
	job = job_new(load->queue, place);
	load->no_memory = !job;
	if (!job)
		return false;
	job_enter_tube(load->queue, job, load->tube->cut_s);
	load->queue->stats.loaded++;
	load->room--;
	return true;
}

/* Room for more ready jobs: for one at least. */
static size_t ready_room(const struct queue *queue)
{
	size_t most = queue->max_resident / 4 * 3;
	size_t room = queue->nr_resident < most ? most - queue->nr_resident : 1;

	return room < READY_PIECE ? room : READY_PIECE;
}

static bool load_ready(struct queue *queue, struct tube *tube)
{
	struct load_ready load = {
		.queue = queue, .tube = tube, .room = ready_room(queue),
	};
	struct job_place from = tube->cut;

	store_walk(queue->store, &from, load_one_ready, &load);
	/* The walk has reached the end of the index, unless it ran out of room. */
	tube->whole = load.room > 0 && !load.no_memory;
	return !load.no_memory;
}

bool tube_takes(struct queue *queue, struct tube *tube, const struct job_place *place)
{
	/* Load more: the job may belong among those in memory. */
	if (!tube->whole && tube->nr_resident < READY_PIECE &&
	    queue->nr_resident < queue->max_resident / 4 * 3)
		load_ready(queue, tube);
	return tube_has(tube, place);
}

struct job *tube_next_job(struct queue *queue, struct tube *tube)
{
	while (RB_EMPTY(&tube->ready) && !tube->whole)
		if (!load_ready(queue, tube))
			break;
	return RB_MIN(job_tree, &tube->ready);
}

static struct tube *fullest_tube(struct queue *queue)
{
	struct tube *tube, *fullest = tube_first(queue);

	for (tube = fullest; tube; tube = tube_next(tube))
		if (tube->nr_resident > fullest->nr_resident)
			fullest = tube;
	return fullest;
}

/* Evict the last ready jobs of the tube that has most of them in memory. */
static size_t shrink_ready(struct queue *queue, size_t nr)
{
	struct tube *tube = fullest_tube(queue);
	struct job *job;
	size_t done;

	for (done = 0; done < nr; done++) {
		job = RB_MAX(job_tree, &tube->ready);
		if (!job)
			break;
		if (!job_write_ready(queue, job)) {
			job_break(queue, job);
			continue;
		}
		tube->cut = job_place(job);
		age_cut(queue, tube, job->ready_s);
		tube->whole = false;
		job_leave_tube(job);
		job_forget(queue, job);
		queue->stats.evicted++;
	}
	return done;
}

/* --- a turn --------------------------------------------------------------------------- */

/* If too many jobs are in memory, evict a piece; true: there are still too many. */
static bool reclaim(struct queue *queue)
{
	size_t done = 0;

	if (queue->nr_resident <= queue->max_resident)
		return false;
	if (queue->nr_armed <= most_armed(queue))
		done = shrink_ready(queue, PIECE);
	if (!done && !window_shrink(queue, PIECE, 0))
		return false;
	return queue->nr_resident > queue->max_resident;
}

/* Wake to load more, even if no job becomes due until then. */
static void arm_window(struct queue *queue, struct window *window)
{
	if (!alarm_pending(&window->alarm))
		alarm_add(queue->alarms, &window->alarm,
			  ID_OF(ID_WINDOW, window - queue->windows), ALARM_BOOT,
			  alarms_now_ns(ALARM_BOOT) + queue->config.window_ns / 2);
}

static bool window_work(struct queue *queue, struct window *window)
{
	arm_window(queue, window);
	if (!window_wants(queue, window))
		return false;
	if (!window_room(queue))
		return window_make_room(queue, window);
	return window_load(queue, window);
}

bool window_turn(struct queue *queue)
{
	struct window *windows = queue->windows;
	bool more = reclaim(queue);
	/* Begin with the window that ends earlier. */
	size_t first = ahead_ns(queue, &windows[1], windows[1].cut.order) <
		       ahead_ns(queue, &windows[0], windows[0].cut.order);

	/* A window that has evicted jobs must not load them again in this turn. */
	return window_work(queue, &windows[first]) || window_work(queue, &windows[!first]) ||
	       more;
}
