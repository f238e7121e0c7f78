// SPDX-License-Identifier: GPL-2.0
/*
 * Faults in functions of twheel that only the kernel calls: the one that loads the module, those
 * for a CPU that comes or goes, and the work after a clock was set.  Of what the kernel itself
 * allocates before and after them nothing fails.
 *
 * A process writes @nth, and @all, and then makes the kernel call the function.  The tracepoints
 * around such calls let the faults begin and end.  tools/test/faults loads this module.
 */
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>

static unsigned int nth;
module_param(nth, uint, 0600);
MODULE_PARM_DESC(nth, "Which allocation fails in the next call, counting from 1; then 0 again");

static bool all;
module_param(all, bool, 0600);
MODULE_PARM_DESC(all, "So do all that follow in that call");

static int left = -1;
module_param(left, int, 0600);
MODULE_PARM_DESC(left, "What the call has left of nth: 0, an allocation failed; -1, no call yet");

/* The task in whose call allocations fail. */
static struct task_struct *caller;

/* Is it a function of the module?  @name: of this name, or NULL. */
static bool is_of_twheel(void *function, const char *name)
{
	char symbol[KSYM_SYMBOL_LEN];

	snprintf(symbol, sizeof(symbol), "%ps", function);
	return strstr(symbol, "[twheel]") && (!name || strstarts(symbol, name));
}

static void begin(void *function, const char *name)
{
	if (!nth || !is_of_twheel(function, name))
		return;
	caller = current;
	current->make_it_fail = all;
	current->fail_nth = nth;
	nth = 0;
}

static void end(void)
{
	if (caller != current)
		return;
	caller = NULL;
	left = current->fail_nth;
	current->fail_nth = 0;
	current->make_it_fail = false;
}

static void initcall_start(void *data, initcall_t function)
{
	begin(function, NULL);
}

static void initcall_finish(void *data, initcall_t function, int ret)
{
	end();
}

static void cpuhp_enter(void *data, unsigned int cpu, int target, int step,
			int (*function)(unsigned int cpu))
{
	begin(function, NULL);
}

static void cpuhp_exit(void *data, unsigned int cpu, int state, int step, int ret)
{
	end();
}

/* Other work of the module allocates nothing. */
static void work_start(void *data, struct work_struct *work)
{
	begin(work->func, "grow_bases");
}

static void work_end(void *data, struct work_struct *work, work_func_t function)
{
	end();
}

static struct probe {
	const char *name;
	void *function;
	struct tracepoint *tracepoint;
} probes[] = {
	{ "initcall_start", initcall_start },
	{ "initcall_finish", initcall_finish },
	{ "cpuhp_enter", cpuhp_enter },
	{ "cpuhp_exit", cpuhp_exit },
	{ "workqueue_execute_start", work_start },
	{ "workqueue_execute_end", work_end },
};

static void find_tracepoint(struct tracepoint *tracepoint, void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(tracepoint->name, probes[i].name))
			probes[i].tracepoint = tracepoint;
}

static void remove_probes(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (probes[i].tracepoint)
			tracepoint_probe_unregister(probes[i].tracepoint, probes[i].function, NULL);
	tracepoint_synchronize_unregister();
}

static int __init fault_calls_init(void)
{
	unsigned int i;
	int ret = 0;

	for_each_kernel_tracepoint(find_tracepoint, NULL);
	for (i = 0; i < ARRAY_SIZE(probes) && !ret; i++)
		ret = probes[i].tracepoint ?
		      tracepoint_probe_register(probes[i].tracepoint, probes[i].function, NULL) :
		      -ENOENT;
	if (ret)
		remove_probes();
	return ret;
}
module_init(fault_calls_init);

static void __exit fault_calls_exit(void)
{
	remove_probes();
}
module_exit(fault_calls_exit);

MODULE_DESCRIPTION("Faults in functions of twheel that only the kernel calls");
MODULE_LICENSE("GPL");
