// SPDX-License-Identifier: GPL-2.0
// A model of a hashed wheel with rounds: HashedWheelTimer of io.netty.util, with its defaults,
// a tick of 100 ms and 512 slots.
//
//   - From the first event on, a thread wakes up at each tick.
//   - An event goes to the slot of its tick, with the number of rounds until then.
//   - At each tick the thread looks at all events of one slot: those without rounds left are
//     due, the others have one less.
//   - An event of the tick [t, t + 100 ms) is handled at the end of that tick.
//   - A cancelled event leaves its slot at the next tick.
//
// Ten days are 8.6 million ticks, so the ticks at which nothing is due are not gone through
// one by one: the looks at the events are counted by slot. test/models.mjs holds this
// against one that does go through them.

const HASHED_TICK_NS = 100e6;
const HASHED_SIZE = 512;

class HashedTimer {
	constructor() {
		this.startNs = null;
		this.tick = 0;		// the tick that the thread handles next
		this.entries = new Map();
		this.byTick = new Map();
		this.due = new Heap((a, b) => a < b);
		this.counts = new Uint32Array(HASHED_SIZE);
		this.moves = 0;		// looks at events whose rounds were not over
		this.idleWakeups = 0;
		this.fired = () => {};
	}

	get pending() {
		return this.entries.size;
	}

	get wakeups() {
		return this.tick;
	}

	endOf(tick) {
		return this.startNs + (tick + 1) * HASHED_TICK_NS;
	}

	add(id, nowNs, delayNs) {
		this.startNs ??= nowNs;
		const tick = Math.max(this.tick,
			Math.floor((nowNs + delayNs - this.startNs) / HASHED_TICK_NS));

		this.entries.set(id, tick);
		this.counts[tick % HASHED_SIZE]++;
		if (!this.byTick.has(tick)) {
			this.byTick.set(tick, new Set());
			this.due.push(tick);
		}
		this.byTick.get(tick).add(id);
	}

	cancel(id) {
		const tick = this.entries.get(id);

		if (tick === undefined)
			return false;
		this.entries.delete(id);
		this.byTick.get(tick).delete(id);
		this.counts[tick % HASHED_SIZE]--;
		return true;
	}

	// The first tick at which an event comes out.
	dueTick() {
		while (this.due.size && !this.byTick.get(this.due.peek()).size)
			this.byTick.delete(this.due.pop());
		return this.due.size ? this.due.peek() : Infinity;
	}

	// When an event comes out next, or Infinity. The thread wakes up far more often.
	next() {
		const tick = this.dueTick();
		return tick === Infinity ? Infinity : this.endOf(tick);
	}

	// The ticks until @tick, at none of which an event comes out.
	skipTo(tick) {
		const ticks = tick - this.tick;
		const rounds = Math.floor(ticks / HASHED_SIZE);

		this.moves += rounds * this.pending;
		for (let i = rounds * HASHED_SIZE; i < ticks; i++)
			this.moves += this.counts[(this.tick + i) % HASHED_SIZE];
		this.idleWakeups += ticks;
		this.tick = tick;
	}

	handle(tick) {
		const slot = tick % HASHED_SIZE;
		const ids = this.byTick.get(tick);

		this.byTick.delete(this.due.pop());
		this.counts[slot] -= ids.size;
		this.moves += this.counts[slot];
		this.tick++;
		for (const id of ids) {
			this.entries.delete(id);
			this.fired(id, this.endOf(tick));
		}
	}

	advance(untilNs) {
		if (this.startNs === null)
			return;
		const until = Math.floor((untilNs - this.startNs) / HASHED_TICK_NS);

		for (let due = this.dueTick(); due < until; due = this.dueTick()) {
			this.skipTo(due);
			this.handle(due);
		}
		if (until > this.tick)
			this.skipTo(until);
	}
}
