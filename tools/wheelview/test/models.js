// SPDX-License-Identifier: GPL-2.0
// The models of the other two timers, held against what their originals are told to do: each
// is run beside one that is written down step by step from the rules. TAP.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");
const { generator } = require("./script.js");

const here = path.join(__dirname, "..");
const source = ["engine.js", "kafka.js", "hashed.js"]
	.map((name) => fs.readFileSync(path.join(here, name), "utf8")).join("\n");
const { KafkaTimer, HashedTimer } = vm.runInThisContext(
	`${source}\n({ KafkaTimer, HashedTimer })`);

const MS = 1e6;

// Netty's worker, tick by tick, with rounds that are counted down.
class EachTick {
	constructor() {
		this.slots = Array.from({ length: 512 }, () => []);
		this.tick = 0;
		this.looks = 0;
		this.fired = [];
		this.waiting = [];
	}

	add(id, nowNs, delayNs) {
		this.startNs ??= nowNs;
		this.waiting.push({ id, deadline: nowNs + delayNs - this.startNs });
	}

	cancel(id) {
		this.waiting = this.waiting.filter((timeout) => timeout.id !== id);
		for (let i = 0; i < 512; i++)
			this.slots[i] = this.slots[i].filter((timeout) => timeout.id !== id);
	}

	handleTick() {
		const end = (this.tick + 1) * 100 * MS;

		for (const timeout of this.waiting.splice(0)) {
			const calculated = Math.floor(timeout.deadline / (100 * MS));

			timeout.rounds = Math.trunc((calculated - this.tick) / 512);
			this.slots[Math.max(calculated, this.tick) % 512].push(timeout);
		}
		const slot = this.tick % 512;
		this.slots[slot] = this.slots[slot].filter((timeout) => {
			if (timeout.rounds <= 0) {
				if (timeout.deadline > end)
					throw new Error("a timeout is in a wrong slot");
				this.fired.push(`${timeout.id} ${this.startNs + end}`);
				return false;
			}
			timeout.rounds--;
			this.looks++;
			return true;
		});
		this.tick++;
	}

	advance(untilNs) {
		while (this.startNs !== undefined &&
		       this.startNs + (this.tick + 1) * 100 * MS <= untilNs)
			this.handleTick();
	}
}

// Kafka's wheels, millisecond by millisecond: buckets by level and number, without a heap.
class EachMillisecond {
	constructor(startMs) {
		this.ms = startMs;
		this.startMs = startMs;
		this.current = [];
		this.buckets = new Map();
		this.fired = [];
		this.wakeups = 0;
		this.moves = 0;
	}

	// The clock of a level begins when the level is first needed.
	place(entry) {
		for (let level = 0; ; level++) {
			const tick = 20 ** level;

			if (this.current.length === level) {
				const from = level ? this.current[level - 1] : this.startMs;
				this.current.push(from - from % tick);
			}
			if (entry.at < this.current[level] + tick)
				return false;
			if (entry.at < this.current[level] + 20 * tick) {
				const begins = entry.at - entry.at % tick, key = `${begins} ${level}`;

				if (!this.buckets.has(key))
					this.buckets.set(key, { begins, entries: [] });
				this.buckets.get(key).entries.push(entry);
				return true;
			}
		}
	}

	add(id, nowNs, delayNs) {
		const entry = { id, at: Math.floor(nowNs / MS) + Math.ceil(delayNs / MS) };

		if (!this.place(entry))
			this.fired.push(`${id} ${Math.floor(nowNs / MS)}`);
	}

	cancel(id) {
		for (const bucket of this.buckets.values())
			bucket.entries = bucket.entries.filter((entry) => entry.id !== id);
	}

	// The bucket that begins first, of those that have begun.
	dueBucket() {
		let first = null;

		for (const [key, bucket] of this.buckets)
			if (bucket.begins <= this.ms && !(first && first[1].begins <= bucket.begins))
				first = [key, bucket];
		return first;
	}

	flush([key, bucket]) {
		this.buckets.delete(key);
		for (let level = 0; level < this.current.length; level++) {
			const tick = 20 ** level;

			if (bucket.begins < this.current[level] + tick)
				break;
			this.current[level] = bucket.begins - bucket.begins % tick;
		}
		for (const entry of bucket.entries) {
			if (this.place(entry))
				this.moves++;
			else
				this.fired.push(`${entry.id} ${this.ms}`);
		}
	}

	tick() {
		let due = this.dueBucket();

		this.wakeups += due !== null;
		for (; due; due = this.dueBucket())
			this.flush(due);
	}

	advance(untilNs) {
		for (this.tick(); (this.ms + 1) * MS <= untilNs; this.tick())
			this.ms++;
	}
}

// Runs both on a random script, and compares what came out and what it took.
function compare(model, original, random, steps, longestMs, tell) {
	const fired = [];
	let now = model.nowNs ?? 777 * MS, nr = 0;

	model.fired = (id, ns) => fired.push(tell(id, ns));
	for (let step = 0; step < steps; step++) {
		const what = random();

		if (what < 0.5) {
			const delay = Math.ceil(longestMs ** random()) * MS;

			model.add(nr, now, delay);
			original.add(nr++, now, delay);
		} else if (what < 0.65 && nr) {
			const id = Math.floor(random() * nr);

			model.cancel(id);
			original.cancel(id);
		} else {
			now += Math.floor(longestMs ** random()) * MS;
			model.advance(now);
			original.advance(now);
		}
	}
	now += 2 * longestMs * MS;
	model.advance(now);
	original.advance(now);
	// Those of one moment have no order between them.
	return [fired.sort().join("\n"), original.fired.sort().join("\n")];
}

function equal(a, b, what) {
	if (a !== b)
		throw new Error(`${what}: ${String(a).slice(0, 200)}, but it should be ${String(b).slice(0, 200)}`);
}

const tests = {
	hashed_wheel_does_what_a_thread_does_at_each_tick() {
		for (let seed = 1; seed <= 20; seed++) {
			const model = new HashedTimer(), original = new EachTick();
			const [is, should] = compare(model, original, generator(seed), 600, 400000,
				(id, ns) => `${id} ${ns}`);

			equal(is, should, `seed ${seed}, what came out`);
			equal(model.moves, original.looks, `seed ${seed}, looks`);
			equal(model.wakeups, original.tick, `seed ${seed}, wakeups`);
		}
	},

	hashed_wheel_is_never_early() {
		const model = new HashedTimer(), random = generator(5);
		const asked = [];

		model.fired = (id, ns) => {
			if (ns < asked[id] || ns > asked[id] + 100 * MS)
				throw new Error(`due at ${asked[id]}, came out at ${ns}`);
			asked[id] = null;
		};
		for (let id = 0; id < 2000; id++) {
			const delay = Math.floor(random() * 1e12);

			asked.push(5e9 + delay);
			model.add(id, 5e9, delay);
		}
		model.advance(1e15);
		equal(asked.filter((due) => due !== null).length, 0, "how many did not come out");
	},

	kafkas_wheels_do_what_they_do_each_millisecond() {
		for (let seed = 1; seed <= 20; seed++) {
			const model = new KafkaTimer(1234567 * MS), original = new EachMillisecond(1234567);
			const [is, should] = compare(model, original, generator(seed), 400, 30000,
				(id, ns) => `${id} ${Math.floor(ns / MS)}`);

			equal(is, should, `seed ${seed}, what came out`);
			equal(model.moves, original.moves, `seed ${seed}, moves`);
			equal(model.wakeups, original.wakeups, `seed ${seed}, wakeups`);
		}
	},

	kafkas_timer_demotes_an_event_ten_days_ahead_by_six_wheels() {
		const model = new KafkaTimer(99999123 * MS);

		model.add(0, 99999123 * MS, 10 * 86400e9);
		model.advance(99999123 * MS + 10 * 86400e9);
		equal(model.pending, 0, "pending");
		equal(model.levels().length, 7, "wheels");
		equal(model.moves, 6, "moves");
		equal(model.wakeups, 7, "wakeups");
	},

	kafkas_timer_wakes_up_for_a_bucket_that_is_empty() {
		const model = new KafkaTimer(0);

		model.add(0, 0, 500 * MS);
		model.cancel(0);
		model.advance(1000 * MS);
		equal(model.wakeups, 1, "wakeups");
		equal(model.idleWakeups, 1, "for nothing");
	},
};

let failed = 0;
console.log(`1..${Object.keys(tests).length}`);
Object.entries(tests).forEach(([name, test], i) => {
	try {
		test();
		console.log(`ok ${i + 1} - ${name}`);
	} catch (error) {
		failed++;
		console.log(`# ${error.stack.split("\n").join("\n# ")}`);
		console.log(`not ok ${i + 1} - ${name}`);
	}
});
process.exitCode = failed ? 1 : 0;
