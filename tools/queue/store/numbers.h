/* SPDX-License-Identifier: GPL-2.0 */
/* Names of the numbers of store_put_number(). */
#ifndef QUEUE_STORE_NUMBERS_H
#define QUEUE_STORE_NUMBERS_H

/* The store's own; the dot keeps them apart from those of the queue. */
#define NUMBER_NEXT_ID	".next"
#define NUMBER_CHANGES	".changes"
#define NUMBER_VERSION	".version"
/* Of a repair that has not come to its end: the last change that was found, and that was synced. */
#define NUMBER_FOUND	".found"
#define NUMBER_SYNCED	".synced"

/*
 * The queue's: the number of the next tube; the wall clock minus the queue's clock, ns; the last
 * time of the queue's clock that was written, ns; and whether the wall clock is in doubt.
 */
#define NUMBER_TUBE	"tube"
#define NUMBER_SKEW	"skew"
#define NUMBER_TIME	"time"
#define NUMBER_DOUBT	"doubt"

/* All of them. */
#define NUMBERS							\
	{							\
		NUMBER_NEXT_ID, NUMBER_CHANGES, NUMBER_VERSION,	\
		NUMBER_FOUND, NUMBER_SYNCED,			\
		NUMBER_TUBE, NUMBER_SKEW, NUMBER_TIME, NUMBER_DOUBT,	\
	}

#endif /* QUEUE_STORE_NUMBERS_H */
