// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The loop against a model: many timeouts that are started, started again and stopped at
 * random, from callbacks and in between, with signals and without.
 *
 * The model knows of each timeout whether it is started and for when, and so which record
 * it is the next to be called with: of an absolute time that is known to the ns.
 * Timeouts that are not started are freed at random, so that a call of one is a fault.
 */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "wheel.h"

#define TIMEOUTS	400

/* A timeout of the model. */
struct model {
	struct twheel_timeout timeout;
	unsigned int number;
	bool started;
	/* Its next record's due_ns; 0: of a relative time, which only the kernel knows. */
	__u64 due_ns;
	__u64 not_before_ns;
	__u64 interval_ns;
	/* By a word, whose value is the due time. */
	bool by_word;
};

static struct model *models[TIMEOUTS];
static struct twheel *wheel;
static struct twheel_loop *loop;
static __u64 seed;
static unsigned long nr_called, nr_started, nr_stopped, nr_moved;
static bool is_ending;

static __u64 random_below(__u64 n)
{
	return next_random(&seed) % n;
}

static __u64 *word_of(const struct model *model)
{
	return &twheel_deadlines(wheel)[model->number];
}

static void start_by_word(struct model *model, __u64 due_ns)
{
	twheel_deadline_set(twheel_deadlines(wheel), model->number, due_ns);
	model->by_word = true;
	model->due_ns = due_ns;
	ASSERT_EQ(twheel_timeout_start_deadline(loop, &model->timeout, model->number,
						random_below(2) * SOON_NS / 20), 0);
}

static void start_by_time(struct model *model, __u64 delay_ns)
{
	__u16 flags = random_below(2) ? TWHEEL_ABS : 0;
	__u64 time_ns = flags ? model->not_before_ns : delay_ns;

	model->by_word = false;
	model->due_ns = flags ? time_ns : 0;
	model->interval_ns = random_below(4) ? 0 : SOON_NS / 20 + random_below(SOON_NS);
	ASSERT_EQ(twheel_timeout_start(loop, &model->timeout, time_ns, model->interval_ns,
				       random_below(2) * SOON_NS / 20, flags), 0);
}

/* Some are due at once, most soon, and some never unless they are started again. */
static __u64 random_delay(void)
{
	switch (random_below(8)) {
	case 0:		return 0;
	case 1:		return FAR_NS;
	default:	return random_below(SOON_NS);
	}
}

static void start_model(struct model *model)
{
	__u64 delay_ns = random_delay();

	model->interval_ns = 0;
	model->not_before_ns = twheel_now_ns(wheel) + delay_ns;
	if (random_below(3) == 0)
		start_by_word(model, model->not_before_ns);
	else
		start_by_time(model, delay_ns);
	model->started = true;
	nr_started++;
}

static void stop_model(struct model *model)
{
	twheel_timeout_stop(&model->timeout);
	nr_stopped += model->started;
	model->started = false;
}

/* A later time, by a store alone. */
static void move_word(struct model *model)
{
	if (!model->started || !model->by_word)
		return;
	model->due_ns += random_below(SOON_NS);
	model->not_before_ns = model->due_ns;
	twheel_deadline_set(twheel_deadlines(wheel), model->number, model->due_ns);
	nr_moved++;
}

static void model_called(struct twheel_timeout *timeout, const struct twheel_record *record);

/* A new one in other memory. */
static void renew_model(unsigned int number)
{
	struct model *model = calloc(1, sizeof(*model));

	ASSERT(model);
	if (models[number]) {
		stop_model(models[number]);
		memset(models[number], FILL, sizeof(*models[number]));
		free(models[number]);
	}
	model->number = number;
	twheel_timeout_init(&model->timeout, model_called, model);
	models[number] = model;
}

static void do_something(void)
{
	unsigned int number = random_below(TIMEOUTS);
	struct model *model = models[number];

	ASSERT_EQ(twheel_timeout_pending(&model->timeout), model->started);
	switch (random_below(8)) {
	case 0:
		renew_model(number);
		break;
	case 1:
	case 2:
		stop_model(model);
		break;
	case 3:
		move_word(model);
		break;
	default:
		start_model(model);
	}
}

/* Is this the record that the model waits for? */
static void check_model(struct model *model, const struct twheel_record *record)
{
	test_about("timeout %u: %s, interval %llu", model->number,
		   model->by_word ? "by a word" : model->due_ns ? "absolute" : "relative",
		   model->interval_ns);
	ASSERT(model->started);
	ASSERT_EQ(record->reason, TWHEEL_EXPIRED);
	ASSERT_GE(record->fired_ns, record->due_ns);
	ASSERT_GE(twheel_now_ns(wheel), record->due_ns);
	ASSERT_GE(record->due_ns, model->not_before_ns);
	if (model->due_ns)
		ASSERT_EQ(record->due_ns, model->due_ns);
	if (model->by_word)
		ASSERT_EQ(*word_of(model), record->due_ns);
	if (!model->interval_ns)
		ASSERT_EQ(record->count, 1);
	test_about("%s", "");
}

static void model_called(struct twheel_timeout *timeout, const struct twheel_record *record)
{
	struct model *model = timeout->context;
	unsigned int i;

	check_model(model, record);
	nr_called++;
	if (model->interval_ns)
		model->due_ns = record->due_ns + record->count * model->interval_ns;
	else
		model->started = false;
	ASSERT_EQ(twheel_timeout_pending(timeout), model->started);
	if (is_ending)
		return;
	if (random_below(2))
		start_model(model);
	for (i = random_below(5); i; i--)
		do_something();
}

static void run_loop(__u64 timeout_ns)
{
	int ret = twheel_loop_run(loop, timeout_ns);

	if (ret != -EINTR)
		ASSERT_GE(ret, 0);
}

static unsigned int nr_left(void)
{
	unsigned int i, left = 0;

	for (i = 0; i < TIMEOUTS; i++)
		left += models[i]->started;
	return left;
}

/* All that are started are called, but for those that are never due. */
static void end_models(void)
{
	unsigned int i;

	is_ending = true;
	for (i = 0; i < TIMEOUTS; i++)
		if (models[i]->interval_ns ||
		    models[i]->not_before_ns > twheel_now_ns(wheel) + 1000 * SOON_NS)
			stop_model(models[i]);
	while (nr_left())
		run_loop(TWHEEL_NEVER);
	for (i = 0; i < TIMEOUTS; i++) {
		ASSERT(!twheel_timeout_pending(&models[i]->timeout));
		free(models[i]);
	}
}

static void run_models(__u64 from_seed, unsigned long turns)
{
	unsigned long turn;
	unsigned int i;

	seed = from_seed;
	wheel = open_words(TIMEOUTS);
	ASSERT_EQ(twheel_loop_create(&loop, wheel), 0);
	for (i = 0; i < TIMEOUTS; i++)
		renew_model(i);
	for (turn = 0; turn < turns; turn++) {
		for (i = random_below(200); i; i--)
			do_something();
		run_loop(random_below(3) ? 0 : random_below(SOON_NS / 10));
	}
	end_models();
	run_loop(0);
	ASSERT_EQ(counters_of(wheel).armed, 0);
	ASSERT_EQ(counters_of(wheel).ready, 0);
	twheel_loop_destroy(loop);
	twheel_close(wheel);
	printf("# %lu started, %lu stopped, %lu moved by a store, %lu called\n", nr_started,
	       nr_stopped, nr_moved, nr_called);
	printf("# %lu calls were cut, and %d signals came\n", nr_interrupted(),
	       signals_counted());
	ASSERT_GT(nr_called, 0);
}

TEST(random_timeouts_are_called_as_the_model_says)
{
	run_models(1, test_count(2000));
}

TEST(random_timeouts_are_called_as_the_model_says_though_calls_are_cut)
{
	interrupt_by_chance(3);
	run_models(2, test_count(2000));
	ASSERT_GT(nr_interrupted(), 0);
}

static atomic_bool flood_ends;
static pthread_t flooded;

static void *flood(void *arg)
{
	while (!flood_ends) {
		pthread_kill(flooded, SIGALRM);
		poll(NULL, 0, 0);
	}
	return arg;
}

TEST(random_timeouts_are_called_as_the_model_says_under_a_flood_of_signals)
{
	pthread_t thread;

	count_signals(SIGALRM, 0);
	flooded = pthread_self();
	thread = start_thread(flood, NULL);
	run_models(3, test_count(1000));
	flood_ends = true;
	join_thread(thread);
	ASSERT_GT(signals_counted(), 0);
}
