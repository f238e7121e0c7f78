// SPDX-License-Identifier: GPL-2.0
/*
 * Prints the summary of a replay.
 */
#include "common/util.h"
#include "twheelctl/json.h"
#include "common/number.h"
#include "twheelctl/replay/summary.h"

static double per_item(const struct cost *cost)
{
	return cost->items ? (double)cost->ns / cost->items : 0;
}

/* Returns whether each event ended exactly once and was not early. */
bool summary_is_good(const struct player *player)
{
	return ledger_clean(&player->ledger) && !player_left(player);
}

static void print_count(FILE *out, const char *name, __u64 count,
			const char *what)
{
	fprintf(out, "%-11s %10llu  %s\n", name, count, what);
}

static void print_counts(const struct player *player, FILE *out)
{
	const struct ledger *ledger = &player->ledger;

	print_count(out, "armed", ledger->armed, "events that were added");
	print_count(out, "modified", ledger->modified, "");
	if (ledger->deadlines) {
		print_count(out, "stored", ledger->stored,
			    "deadlines put off by a store alone");
		print_count(out, "postponed", ledger->postponed,
			    "times that the kernel looked and waited on");
	}
	print_count(out, "cancelled", ledger->cancelled, "");
	print_count(out, "missed", ledger->missed,
		    "modify or cancel of an event that had ended");
	print_count(out, "overdue", player->overdue,
		    "lines run after their event was due");
	fprintf(out, "%-11s %10llu  for %llu expirations (%llu by the schedule alone)\n",
		"records", ledger->records, ledger->expirations,
		player->schedule->expirations);
}

static void print_mistakes(const struct player *player, FILE *out)
{
	const struct ledger *ledger = &player->ledger;

	print_count(out, "early", ledger->early, "");
	print_count(out, "lost", ledger_lost(ledger), "");
	print_count(out, "duplicated", ledger->duplicated, "");
	print_count(out, "wrong", ledger->wrong, "");
	print_count(out, "failed", ledger->failed,
		    "commands with a result that they must not have");
	if (player_left(player))
		print_count(out, "not run", player_left(player),
			    "lines, for want of the record they waited for");
	fprintf(out, "%-11s %10llu  of %llu checks of fdinfo\n", "violations",
		ledger->violations, ledger->checks);
}

static void print_cost(FILE *out, const char *name, const char *item,
		       const struct cost *cost)
{
	fprintf(out, "%-11s %10llu  calls for %llu %ss, %.0f ns each\n", name,
		cost->calls, cost->items, item, per_item(cost));
}

static void print_quantiles(FILE *out, const char *name,
			    const struct fine_histogram *histogram)
{
	static const struct {
		const char *name;
		double quantile;
	} quantiles[] = {
		{ "50%", 0.5 }, { "99%", 0.99 }, { "99.9%", 0.999 },
	};
	char text[NUMBER_TEXT];

	fprintf(out, "%s:", name);
	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		fprintf(out, " %s %s,", quantiles[i].name,
			duration_format(text, fine_histogram_quantile(histogram,
								      quantiles[i].quantile)));
	fprintf(out, " worst %s\n", duration_format(text, histogram->max_ns));
}

/* Print it for people. */
void summary_print(const struct player *player,
		   const struct interrupts *interrupts, FILE *out)
{
	const struct schedule *schedule = player->schedule;
	char text[NUMBER_TEXT];

	fprintf(out, "%s: %zu lines, %zu names, in %s s\n", schedule->source,
		schedule->nr_lines, schedule->nr_events,
		seconds_format(text, player->took_ns));
	print_counts(player, out);
	print_mistakes(player, out);
	print_cost(out, "submit", "command", &player->submit);
	print_cost(out, "read", "record", &player->read);
	if (interrupts->known)
		fprintf(out, "%-11s %10llu  (%llu before, %llu after)\n",
			"interrupts", interrupts->after - interrupts->before,
			interrupts->before, interrupts->after);
	fprintf(out, "%-11s %10s  behind its time was the latest line\n",
		"behind", duration_format(text, player->behind_ns));
	print_quantiles(out, "lateness, due to fired", &player->lateness);
	fine_histogram_print(&player->lateness, out);
	print_quantiles(out, "delivery, due to read", &player->delivery);
	fprintf(out, "%s\n", summary_is_good(player) ? "ok" : "NOT OK");
}

static json_t *json_counts(const struct player *player)
{
	const struct ledger *ledger = &player->ledger;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			 "armed", (json_int_t)ledger->armed,
			 "modified", (json_int_t)ledger->modified,
			 "stored", (json_int_t)ledger->stored,
			 "postponed", (json_int_t)ledger->postponed,
			 "cancelled", (json_int_t)ledger->cancelled,
			 "missed", (json_int_t)ledger->missed,
			 "overdue", (json_int_t)player->overdue,
			 "records", (json_int_t)ledger->records,
			 "expirations", (json_int_t)ledger->expirations,
			 "expected", (json_int_t)player->schedule->expirations);
}

static json_t *json_mistakes(const struct player *player)
{
	const struct ledger *ledger = &player->ledger;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			 "early", (json_int_t)ledger->early,
			 "lost", (json_int_t)ledger_lost(ledger),
			 "duplicated", (json_int_t)ledger->duplicated,
			 "wrong", (json_int_t)ledger->wrong,
			 "failed", (json_int_t)ledger->failed,
			 "not_run", (json_int_t)player_left(player),
			 "checks", (json_int_t)ledger->checks,
			 "violations", (json_int_t)ledger->violations);
}

static json_t *json_cost(const struct cost *cost)
{
	return json_pack("{s:I, s:I, s:f}", "calls", (json_int_t)cost->calls,
			 "items", (json_int_t)cost->items,
			 "ns_per_item", per_item(cost));
}

static json_t *json_quantiles(const struct fine_histogram *histogram)
{
	return json_pack("{s:I, s:I, s:I, s:I}",
			 "p50", (json_int_t)fine_histogram_quantile(histogram, 0.5),
			 "p99", (json_int_t)fine_histogram_quantile(histogram, 0.99),
			 "p999", (json_int_t)fine_histogram_quantile(histogram, 0.999),
			 "max", (json_int_t)histogram->max_ns);
}

/* Print it as JSON. */
void summary_print_json(const struct player *player,
			const struct interrupts *interrupts, FILE *out)
{
	const struct schedule *schedule = player->schedule;
	json_t *taken = interrupts->known ?
			json_integer(interrupts->after - interrupts->before) :
			json_null();
	json_t *summary;

	summary = json_pack("{s:s, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:I, s:o, s:o}",
			    "schedule", schedule->source,
			    "ok", summary_is_good(player),
			    "lines", (json_int_t)schedule->nr_lines,
			    "names", (json_int_t)schedule->nr_events,
			    "took_s", json_seconds(player->took_ns),
			    "submit", json_cost(&player->submit),
			    "read", json_cost(&player->read),
			    "interrupts", taken,
			    "behind_ns", (json_int_t)player->behind_ns,
			    "lateness_ns", json_quantiles(&player->lateness),
			    "delivery_ns", json_quantiles(&player->delivery));
	json_object_update_new(summary, json_counts(player));
	json_object_update_new(summary, json_mistakes(player));
	json_line(summary, out);
}
