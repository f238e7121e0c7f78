// SPDX-License-Identifier: GPL-2.0
/*
 * The wheels as a page of metrics for Prometheus. The table below is in the order of the page.
 *
 * Each wheel has a sample of each family, with the labels cpu, clock and kind.
 */
#include <inttypes.h>
#include <stddef.h>

#include "common/time.h"
#include "common/util.h"
#include "common/version.h"
#include "metrics/text.h"
#include "twheelctl/page.h"

/**
 * struct numbers - what the page has of a wheel, besides its lateness
 * @online: as in struct wheel.
 * @tick_ns: as in struct wheel.
 * @pending: events on the wheel.
 * @overdue_ns: how long ago the next tick with work was to run; 0: it is in the future.
 * @expired: as in struct wheel, and so are the following ones.
 */
struct numbers {
	uint64_t online;
	uint64_t tick_ns;
	uint64_t pending;
	uint64_t overdue_ns;
	uint64_t expired;
	uint64_t interrupts;
	uint64_t postponed;
	uint64_t cascaded;
};

#define NUMBERS(field)	.offset = offsetof(struct numbers, field)

static const struct page_sample samples[] = {
	{ "twheel_online", "gauge", "1 if the CPU of the wheel is online.", "", NUMBERS(online) },
	{ "twheel_tick_seconds", "gauge", "Length of a tick.", "", NUMBERS(tick_ns), UNIT_NS },
	{ "twheel_pending_events", "gauge", "Events on the wheel.", "", NUMBERS(pending) },
	{ "twheel_overdue_seconds", "gauge",
	  "How long ago the next tick with work was to run; 0 if it is in the future.", "",
	  NUMBERS(overdue_ns), UNIT_NS },
	{ "twheel_expired_total", "counter", "Events that have expired.", "", NUMBERS(expired) },
	{ "twheel_interrupts_total", "counter", "Interrupts of the wheel.", "",
	  NUMBERS(interrupts) },
	{ "twheel_postponed_total", "counter",
	  "Events whose time came when their deadline was a later one already.", "",
	  NUMBERS(postponed) },
	{ "twheel_cascaded_total", "counter", "Moves of events to a lower level.", "",
	  NUMBERS(cascaded) },
};

static struct numbers numbers_of(const struct wheel *wheel)
{
	return (struct numbers){
		.online = wheel->online,
		.tick_ns = wheel->tick_ns,
		.pending = wheel->armed + wheel->gap,
		.overdue_ns = wheel->next && wheel->next < wheel->now ?
			(wheel->now - wheel->next) * wheel->tick_ns : 0,
		.expired = wheel->expired,
		.interrupts = wheel->interrupts,
		.postponed = wheel->postponed,
		.cascaded = wheel->cascaded,
	};
}

static void write_labels(FILE *out, const struct wheel *wheel)
{
	fprintf(out, "cpu=\"%u\",clock=\"", wheel->cpu);
	page_label(out, wheel->clock);
	fputs("\",kind=\"", out);
	page_label(out, wheel->kind);
	fputc('"', out);
}

static void write_family(FILE *out, const struct page_sample *sample,
			 const struct wheels *wheels)
{
	page_head(out, sample->name, sample->type, sample->help);
	for (size_t i = 0; i < wheels->nr; i++) {
		const struct numbers numbers = numbers_of(&wheels->wheel[i]);

		fprintf(out, "%s{", sample->name);
		write_labels(out, &wheels->wheel[i]);
		fputs("} ", out);
		page_number(out, sample, &numbers);
	}
}

#define LATENESS	"twheel_lateness_seconds"

static void write_bucket(FILE *out, const struct wheel *wheel, const char *limit, uint64_t below)
{
	fputs(LATENESS "_bucket{", out);
	write_labels(out, wheel);
	fprintf(out, ",le=\"%s\"} %" PRIu64 "\n", limit, below);
}

/* The module does not add up how late events are, so there is no _sum. */
static void write_lateness(FILE *out, const struct wheel *wheel)
{
	uint64_t below = 0;
	char limit[32];

	/* The last bucket has no limit. */
	for (unsigned int k = 0; k < WHEEL_LATENESS - 1; k++) {
		__u64 limit_ns = 1ULL << (k + WHEEL_LATENESS_SHIFT);

		snprintf(limit, sizeof(limit), "%llu.%09llu", limit_ns / NSEC_PER_SEC,
			 limit_ns % NSEC_PER_SEC);
		below += wheel->lateness[k];
		write_bucket(out, wheel, limit, below);
	}
	below += wheel->lateness[WHEEL_LATENESS - 1];
	write_bucket(out, wheel, "+Inf", below);
	fputs(LATENESS "_count{", out);
	write_labels(out, wheel);
	fprintf(out, "} %" PRIu64 "\n", below);
}

static void write_info(FILE *out, bool up)
{
	page_head(out, "twheelctl_build_info", "gauge", "The version of twheelctl; always 1.");
	fputs("twheelctl_build_info{version=\"", out);
	page_label(out, TWHEEL_VERSION);
	fputs("\"} 1\n", out);
	page_head(out, "twheel_up", "gauge", "1 if the wheels of the module could be read.");
	fprintf(out, "twheel_up %d\n", up);
	page_head(out, "twheel_page_timestamp_seconds", "gauge",
		  "When this page was written, since 1970 in UTC.");
	fputs("twheel_page_timestamp_seconds ", out);
	page_seconds(out, time_now_ns(CLOCK_REALTIME));
}

void page_write(FILE *out, const struct wheels *wheels)
{
	write_info(out, wheels);
	if (!wheels)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		write_family(out, &samples[i], wheels);
	page_head(out, LATENESS, "histogram",
		  "From the tick at which an event was to expire until it expired.");
	for (size_t i = 0; i < wheels->nr; i++)
		write_lateness(out, &wheels->wheel[i]);
}
