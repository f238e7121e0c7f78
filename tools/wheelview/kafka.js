// SPDX-License-Identifier: GPL-2.0
// A model of Kafka's timer: SystemTimer and TimingWheel of org.apache.kafka.server.util.timer
// (which group coordinators and delayed operations use), with its defaults: a tick of 1 ms,
// wheels of 20 buckets, each with a larger wheel above it where one is needed.
//
//   - An event goes to the lowest wheel that reaches it, to the bucket of its time.
//   - A bucket with events is in a DelayQueue by the time at which it begins. The timer
//     sleeps until the first bucket of the queue.
//   - Then the clocks of the wheels move to the bucket's beginning, and each of its events
//     is added anew: to a lower wheel, or it is due.
//   - A cancelled event leaves its bucket; the bucket stays in the queue.
//   - The clocks of the wheels move only so: after an idle time they are behind, and an event
//     goes higher than it had to.
//
// Times are whole milliseconds: the delay as given, the present rounded down.

const NS_PER_MS = 1e6;
const KAFKA_TICK_MS = 1;
const KAFKA_SIZE = 20;

// A priority queue; less(a, b) tells the order.
class Heap {
	constructor(less) {
		this.less = less;
		this.items = [];
	}

	get size() {
		return this.items.length;
	}

	peek() {
		return this.items[0];
	}

	push(item) {
		const items = this.items;
		let i = items.length;

		items.push(item);
		while (i > 0) {
			const parent = (i - 1) >> 1;
			if (!this.less(item, items[parent]))
				break;
			items[i] = items[parent];
			i = parent;
		}
		items[i] = item;
	}

	pop() {
		const items = this.items, first = items[0], last = items.pop();

		if (!items.length)
			return first;
		let i = 0;
		for (;;) {
			let child = 2 * i + 1;
			if (child >= items.length)
				break;
			if (child + 1 < items.length && this.less(items[child + 1], items[child]))
				child++;
			if (!this.less(items[child], last))
				break;
			items[i] = items[child];
			i = child;
		}
		items[i] = last;
		return first;
	}
}

class KafkaWheel {
	constructor(timer, tickMs, startMs) {
		this.timer = timer;
		this.tickMs = tickMs;
		this.interval = tickMs * KAFKA_SIZE;
		this.currentMs = startMs - startMs % tickMs;
		this.overflow = null;
		this.buckets = Array.from({ length: KAFKA_SIZE },
			() => ({ expiration: -1, entries: new Set() }));
	}

	// False: the entry is due.
	add(entry) {
		const expiration = entry.expiration;

		if (expiration < this.currentMs + this.tickMs)
			return false;
		if (expiration < this.currentMs + this.interval) {
			const virtual = Math.floor(expiration / this.tickMs);
			const bucket = this.buckets[virtual % KAFKA_SIZE];

			entry.bucket = bucket;
			bucket.entries.add(entry);
			if (bucket.expiration !== virtual * this.tickMs) {
				bucket.expiration = virtual * this.tickMs;
				this.timer.queue.push(bucket);
			}
			return true;
		}
		this.overflow ??= new KafkaWheel(this.timer, this.interval, this.currentMs);
		return this.overflow.add(entry);
	}

	advanceClock(ms) {
		if (ms < this.currentMs + this.tickMs)
			return;
		this.currentMs = ms - ms % this.tickMs;
		if (this.overflow)
			this.overflow.advanceClock(this.currentMs);
	}
}

class KafkaTimer {
	constructor(startNs) {
		this.nowNs = startNs;
		this.queue = new Heap((a, b) => a.expiration < b.expiration);
		this.wheel = new KafkaWheel(this, KAFKA_TICK_MS, Math.floor(startNs / NS_PER_MS));
		this.entries = new Map();
		this.wakeups = 0;
		this.idleWakeups = 0;
		this.moves = 0;
		this.fired = () => {};
	}

	get pending() {
		return this.entries.size;
	}

	fire(entry) {
		this.entries.delete(entry.id);
		this.fired(entry.id, this.nowNs);
	}

	add(id, nowNs, delayNs) {
		const entry = {
			id,
			expiration: Math.floor(nowNs / NS_PER_MS) + Math.ceil(delayNs / NS_PER_MS),
			bucket: null,
		};

		this.nowNs = Math.max(this.nowNs, nowNs);
		this.entries.set(id, entry);
		if (!this.wheel.add(entry))
			this.fire(entry);
	}

	cancel(id) {
		const entry = this.entries.get(id);

		if (!entry)
			return false;
		entry.bucket.entries.delete(entry);
		this.entries.delete(id);
		return true;
	}

	// When the timer wakes up next, or Infinity.
	next() {
		const bucket = this.queue.peek();
		return bucket ? Math.max(this.nowNs, bucket.expiration * NS_PER_MS) : Infinity;
	}

	flush(bucket) {
		const entries = bucket.entries;

		bucket.entries = new Set();
		bucket.expiration = -1;
		for (const entry of entries) {
			if (this.wheel.add(entry))
				this.moves++;
			else
				this.fire(entry);
		}
	}

	advance(untilNs) {
		for (let next = this.next(); next <= untilNs; next = this.next()) {
			const pending = this.pending;

			this.nowNs = next;
			this.wakeups++;
			while (this.queue.size && this.queue.peek().expiration * NS_PER_MS <= next) {
				const bucket = this.queue.pop();

				this.wheel.advanceClock(bucket.expiration);
				this.flush(bucket);
			}
			this.idleWakeups += pending === this.pending;
		}
		this.nowNs = Math.max(this.nowNs, untilNs);
	}

	// The wheels from the lowest, each with what its buckets hold.
	levels() {
		const levels = [];

		for (let wheel = this.wheel; wheel; wheel = wheel.overflow)
			levels.push({
				tickNs: wheel.tickMs * NS_PER_MS,
				position: Math.floor(wheel.currentMs / wheel.tickMs) % KAFKA_SIZE,
				counts: wheel.buckets.map((bucket) => bucket.entries.size),
				queued: wheel.buckets.map((bucket) => bucket.expiration >= 0),
			});
		return levels;
	}
}
