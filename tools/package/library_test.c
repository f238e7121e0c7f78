// SPDX-License-Identifier: GPL-2.0
/*
 * The shortest program on libtwheel: one event, waited for.
 */
#include <stdio.h>
#include <libtwheel.h>

int main(void)
{
	const struct twheel_record *record;
	struct twheel_records records;
	struct twheel *wheel;

	if (twheel_open(&wheel, NULL) || twheel_records_init(&records, 64))
		return 1;
	twheel_add(wheel, 10 * TWHEEL_MILLISECOND, 42, 0, NULL);
	if (twheel_wait(wheel, &records, TWHEEL_NEVER) > 0)
		twheel_for_each_record(record, &records)
			printf("event %llu\n", (unsigned long long)record->data);
	twheel_records_destroy(&records);
	twheel_close(wheel);
	return 0;
}
