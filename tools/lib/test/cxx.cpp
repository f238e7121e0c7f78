// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libtwheel from C++, built against what "make install" has installed.
 */
#include <cstdio>
#include <libtwheel.h>

static void rings(struct twheel_timeout *timeout, const struct twheel_record *record)
{
	*static_cast<__u64 *>(timeout->context) = record->due_ns;
}

int main()
{
	struct twheel_config config;
	struct twheel_records records;
	const struct twheel_record *record;
	struct twheel_timeout timeout;
	struct twheel_batch batch;
	struct twheel_loop *loop;
	struct twheel *wheel;
	__u64 due_ns = 0;
	int seen = 0;

	twheel_config_init(&config);
	config.nr_deadlines = 10;
	if (twheel_open(&wheel, &config) || twheel_records_init(&records, 10))
		return 1;
	twheel_batch_init(&batch);
	twheel_prep_add_deadline(twheel_batch_next(&batch), 0, 42);
	twheel_prep_add(twheel_batch_next(&batch), TWHEEL_MILLISECOND, 43, 0);
	if (twheel_submit(wheel, &batch) != 2)
		return 2;
	while (seen < 2) {
		if (twheel_wait(wheel, &records, TWHEEL_NEVER) < 0)
			return 3;
		twheel_for_each_record(record, &records)
			seen++;
	}
	if (twheel_loop_create(&loop, wheel))
		return 4;
	twheel_timeout_init(&timeout, rings, &due_ns);
	twheel_deadline_set(twheel_deadlines(wheel), 0, 7);
	if (twheel_timeout_start_deadline(loop, &timeout, 0, 0) ||
	    twheel_loop_run(loop, TWHEEL_NEVER) != 1)
		return 5;
	twheel_loop_destroy(loop);
	twheel_batch_destroy(&batch);
	twheel_records_destroy(&records);
	twheel_close(wheel);
	std::printf("due at %llu\n", due_ns);
	return due_ns == 7 ? 0 : 6;
}
