/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the suites of the API for modules: the contexts to call it from. */
#ifndef TWHEEL_PLACES_H
#define TWHEEL_PLACES_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>

/* Work to be done in another context. */
struct errand {
	void (*work)(void *data);
	void *data;
	bool arrived;		/* it ran in the right context */
	struct completion done;
	struct tasklet_struct tasklet;
	struct irq_work irq_work;
	struct hrtimer hrtimer;
};

struct place {
	const char *name;
	void (*go)(struct errand *errand);
};

static inline void errand_do(struct errand *errand, bool arrived)
{
	errand->arrived = arrived;
	errand->work(errand->data);
	complete(&errand->done);
}

static inline void go_to_task(struct errand *errand)
{
	errand_do(errand, in_task() && !irqs_disabled());
}

static inline void errand_tasklet(struct tasklet_struct *tasklet)
{
	struct errand *errand = from_tasklet(errand, tasklet, tasklet);

	errand_do(errand, in_serving_softirq());
}

static inline void go_to_softirq(struct errand *errand)
{
	tasklet_setup(&errand->tasklet, errand_tasklet);
	tasklet_schedule(&errand->tasklet);
	wait_for_completion(&errand->done);
	tasklet_kill(&errand->tasklet);
}

static inline void place_name(const struct place *place, char *name)
{
	strscpy(name, place->name, KUNIT_PARAM_DESC_SIZE);
}

/* Do @work in the context that is this test's parameter. */
static inline void do_there(struct kunit *test, void (*work)(void *data), void *data)
{
	const struct place *place = test->param_value;
	struct errand *errand = kunit_kzalloc(test, sizeof(*errand), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, errand);
	errand->work = work;
	errand->data = data;
	init_completion(&errand->done);
	place->go(errand);
	KUNIT_EXPECT_TRUE(test, errand->arrived);
}

#endif /* TWHEEL_PLACES_H */
