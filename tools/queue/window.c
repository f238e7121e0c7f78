// SPDX-License-Identifier: GPL-2.0
/*
 * Which jobs are in memory.
 *
 * Each order that jobs are in on disk, DELAYED and WALL by due time, and READY of each tube
 * by priority and id, has a cut: a place such that all jobs before it are in memory. The
 * rest is read from the index, a piece at a time, and the cut moves on:
 *
 *	DELAYED   |####################|........................> due
 *	        now                   cut   on disk only
 *
 *	READY of a tube   |####|..........................> priority, id
 *	                      cut
 *
 * A job may be in memory beyond a cut, too: that does no harm. What a piece meets in memory
 * already is left as it is, since memory knows better (queue.c, 1).
 *
 * Delayed jobs are read when the cut is less than half a window away from now, up to a
 * whole window. Ready ones are read when somebody wants one and the tree is empty.
 *
 * Where there are too many, those that are wanted last go: the cut moves back. Those that
 * are ready give way before those that are delayed, until these are most of all.
 */
#include <stdlib.h>

#include "core.h"
#include "log.h"

/* So many jobs are read, or forgotten, at a time. */
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

struct window *window_of(struct queue *queue, enum job_state state)
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

void window_cut(struct queue *queue, const struct job_place *place)
{
	struct tube *tube;

	if (place->state == JOB_READY) {
		tube = tube_by_number(queue, place->tube);
		if (tube_has(tube, place))
			tube->cut = *place;
		tube->whole = false;
	} else if (window_has(queue, place)) {
		window_of(queue, place->state)->cut = *place;
	}
}

static int add_alarm(struct queue *queue, struct job *job)
{
	if (job->stored == JOB_WALL)
		return alarm_add(queue->alarms, &job->alarm, job_id(job), ALARM_WALL,
				 job->order);
	return alarm_add(queue->alarms, &job->alarm, job_id(job), ALARM_BOOT,
			 clock_to_boot_ns(&queue->clock, job->order));
}

/* How far off a time of a window is; 0: it has come. */
static uint64_t ahead_ns(const struct queue *queue, const struct window *window,
			 uint64_t time_ns)
{
	uint64_t now_ns = window_now_ns(queue, window);

	return time_ns > now_ns ? time_ns - now_ns : 0;
}

/*
 * There is no room for this alarm. What is due later gives way to it; if there is nothing,
 * the window ends here, and stays so for a while.
 */
static bool window_full(struct queue *queue, struct job *job)
{
	struct job_place place = job_place(job);
	struct window *window = window_of(queue, place.state);

	if (window_shrink(queue, PIECE, ahead_ns(queue, window, place.order)) &&
	    !add_alarm(queue, job))
		return false;
	window_cut(queue, &place);
	queue->max_armed = queue->nr_armed ?: 1;
	/* Nothing that comes due would have us look again. */
	if (!queue->nr_armed)
		queue->has_unarmed = true;
	return true;
}

bool window_arm(struct queue *queue, struct job *job)
{
	if (add_alarm(queue, job) && window_full(queue, job))
		return false;
	job->placed = true;
	queue->nr_armed++;
	return true;
}

void window_disarm(struct queue *queue, struct job *job)
{
	alarm_cancel(queue->alarms, &job->alarm);
	job->placed = false;
	queue->nr_armed--;
}

void window_refused(struct queue *queue, struct job *job)
{
	job->placed = false;
	queue->nr_armed--;
	if (!window_full(queue, job)) {
		job->placed = true;
		queue->nr_armed++;
		return;
	}
	job_forget(queue, job);
	queue->stats.evicted++;
}

/* A tube that is not there is damage, which a check tells of; nobody could reserve of it. */
static bool has_tube(struct queue *queue, const struct job_place *place)
{
	if (tube_by_number(queue, place->tube))
		return true;
	log_say(LOG_ERR, "job %llu is of tube %u, which is lost; it is left on disk",
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
	if (!window_arm(queue, job)) {
		job_forget(queue, job);
		return false;
	}
	queue->stats.loaded++;
	load->ended = true;
	return true;
}

static size_t max_armed(const struct queue *queue)
{
	size_t fixed = queue->nr[IS_RESERVED] + queue->nr[IS_BROKEN];
	size_t most = queue->max_resident / 8 * 7;

	if (fixed > queue->max_resident)
		return 0;
	if (most > queue->max_resident - fixed)
		most = queue->max_resident - fixed;
	return queue->max_armed && queue->max_armed < most ? queue->max_armed : most;
}

/* Room for more delayed jobs: some, or none, so that they do not come and go one by one. */
static size_t window_room(const struct queue *queue)
{
	size_t most = max_armed(queue), enough = most / 8 * 7;

	return queue->nr_armed <= enough ? most - queue->nr_armed : 0;
}

static bool window_wants(const struct queue *queue, const struct window *window)
{
	return window->cut.order < window_now_ns(queue, window) + queue->config.window_ns / 2;
}

/* Read a piece; true: there is more. */
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
	/* The store says what is damaged, and goes on with what is behind it. */
	store_walk(queue->store, &from, load_one, &load);
	if (!load.ended)
		return load.room == 0 && window_room(queue) > 0;
	move_cut(window, load.until_ns, 0);
	return false;
}

/* --- delayed ones give way ------------------------------------------------------------ */

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

/* From the end of what may be in memory, which is beyond the cut where that moved back. */
static size_t shrink_window(struct queue *queue, struct window *window, size_t nr,
			    uint64_t beyond_ns)
{
	struct job_place last = {
		.state = window->state, .order = window->end_ns, .id = ~0ULL,
	};
	struct shrink shrink = {
		.queue = queue,
		.beyond_ns = window_now_ns(queue, window) + beyond_ns,
		.left = nr,
	};

	if (window->end_ns <= shrink.beyond_ns)
		return 0;
	store_walk_back(queue->store, &last, shrink_one, &shrink);
	window->end_ns = window->cut.order;
	if (shrink.left && window->end_ns < shrink.beyond_ns)
		window->end_ns = shrink.beyond_ns;
	return nr - shrink.left;
}

/* The one whose jobs are due last, of what is in memory. */
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
	size_t done = shrink_window(queue, first, nr, beyond_ns);

	if (done < nr)
		done += shrink_window(queue, other_window(queue, first), nr - done, beyond_ns);
	return done > 0;
}

/*
 * A window wants more, and there is no room: what the other one has that is due much later
 * gives way, a piece at a time.
 */
static bool make_room(struct queue *queue, struct window *window)
{
	uint64_t beyond_ns = ahead_ns(queue, window, window->cut.order) +
			     queue->config.window_ns / 16;

	return shrink_window(queue, other_window(queue, window), PIECE, beyond_ns) > 0;
}

/* --- ready ---------------------------------------------------------------------------- */

bool tube_has(const struct tube *tube, const struct job_place *place)
{
	return tube->whole || before(place->pri, place->id, tube->cut.pri, tube->cut.id);
}

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
	job_enter_tube(job);
	load->queue->stats.loaded++;
	load->room--;
	return true;
}

/* One job at least, and more where there is room for them. */
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
	/* It went on to the end, where the last one need not have found room. */
	tube->whole = load.room > 0 && !load.no_memory;
	return !load.no_memory;
}

bool tube_takes(struct queue *queue, struct tube *tube, const struct job_place *place)
{
	/* A tube with little in memory, where there is room: what it has may be just that. */
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

/* The last ready jobs of the tube that has most of them go. */
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
		tube->whole = false;
		job_leave_tube(job);
		job_forget(queue, job);
		queue->stats.evicted++;
	}
	return done;
}

/* --- a turn --------------------------------------------------------------------------- */

/* Too many are in memory: a piece of them goes; true: that was not enough. */
static bool reclaim(struct queue *queue)
{
	size_t done = 0;

	if (queue->nr_resident <= queue->max_resident)
		return false;
	if (queue->nr_armed <= max_armed(queue))
		done = shrink_ready(queue, PIECE);
	if (!done && !window_shrink(queue, PIECE, 0))
		return false;
	return queue->nr_resident > queue->max_resident;
}

/* When to look again, though nothing came due. */
static void arm_window(struct queue *queue, struct window *window)
{
	if (!alarm_pending(&window->alarm) &&
	    alarm_add(queue->alarms, &window->alarm,
		      ID_OF(ID_WINDOW, window - queue->windows), ALARM_BOOT,
		      alarms_now_ns(ALARM_BOOT) + queue->config.window_ns / 2))
		queue->has_unarmed = true;
}

static bool window_work(struct queue *queue, struct window *window)
{
	arm_window(queue, window);
	if (!window_wants(queue, window))
		return false;
	if (!window_room(queue))
		return make_room(queue, window);
	return window_load(queue, window);
}

bool window_turn(struct queue *queue)
{
	struct window *windows = queue->windows;
	bool more = reclaim(queue);
	/* The one that has less of what comes next is first. */
	size_t first = ahead_ns(queue, &windows[1], windows[1].cut.order) <
		       ahead_ns(queue, &windows[0], windows[0].cut.order);

	/* What made room for it is not to take that at once. */
	return window_work(queue, &windows[first]) || window_work(queue, &windows[!first]) ||
	       more;
}

void window_alarm(struct queue *queue, uint64_t number)
{
	/* Whoever had filled the device may be gone; window_turn() will see. */
	queue->max_armed = 0;
	(void)number;
}
