// SPDX-License-Identifier: GPL-2.0
// The module's wheel: what view.c exports from WebAssembly, with views of its memory.

const LEVELS = 11;
const SLOTS = 64;
const LEVEL_BITS = 5;		// a slot of level L spans 32^L ticks
const TICK_NS = 65536;		// the module's default tick
const MAX_EVENTS = 262144;	// VIEW_EVENTS
const ROOM = 4096;		// VIEW_ROOM
const OUT = 0x8000;		// VIEW_OUT

const CROWDED = 2;		// VIEW_CROWDED, VIEW_URGENT
const URGENT = 4;

// The numbers of struct view_numbers, in their order.
const NUMBERS = ["now", "clk", "programmed", "next", "armed", "wakeups", "idleWakeups",
	"expired", "cascaded", "prefetched", "inCall"];

// The number of ticks in a slot of a level.
function slotTicks(level) {
	return 2 ** (LEVEL_BITS * level);
}

// The slot of a level that a tick belongs to. Ticks have more than 32 bits: no shifts.
function slotOf(tick, level) {
	return Math.floor(tick / slotTicks(level)) % SLOTS;
}

class Engine {
	// The parts of the wheel are there after start().
	constructor(instance) {
		const call = instance.exports;
		const memory = call.memory.buffer;

		this.call = call;
		this.memory = memory;
		this.numbers = new Float64Array(memory, call.view_numbers(), NUMBERS.length);
		this.firedIds = new Uint32Array(memory, call.view_fired_ids(), ROOM);
		this.firedTicks = new Float64Array(memory, call.view_fired_ticks(), ROOM);
		this.moves = new Uint16Array(memory, call.view_moves(), 4 * ROOM);
		this.counts = new Uint32Array(memory, call.view_counts(), LEVELS * SLOTS);
		this.mins = new Float64Array(memory, call.view_mins(), LEVELS * SLOTS);
		this.flags = new Uint8Array(memory, call.view_flags(), LEVELS * SLOTS);
		this.list = new Uint32Array(memory, call.view_list(), ROOM);
	}

	static async make(bytes) {
		const { instance } = await WebAssembly.instantiate(bytes, {});
		return new Engine(instance);
	}

	start(tick) {
		this.call.view_start(tick);
	}

	// Returns the tick that was chosen.
	add(id, first, last) {
		return this.call.view_add(id, first, last);
	}

	cancel(id) {
		return this.call.view_cancel(id) !== 0;
	}

	// Lets time pass until a tick. fired(id, tick) is called for each event that comes out.
	advance(until, fired) {
		let more;

		do {
			more = this.call.view_advance(until);
			this.call.view_state();
			const nr = this.numbers[NUMBERS.indexOf("inCall")];

			for (let i = 0; i < nr; i++)
				fired(this.firedIds[i], this.firedTicks[i]);
		} while (more);
	}

	// Calls moved(from, to) for each event that is in another place than when this was
	// asked last: 64 times the level plus the slot, in @to with OUT if it came out there.
	report(moved) {
		let nr;

		while ((nr = this.call.view_report()))
			for (let i = 0; i < nr; i++)
				moved(this.moves[4 * i + 2], this.moves[4 * i + 3]);
	}

	// The numbers of the wheel now. Slots are in counts, mins and flags then.
	state() {
		const state = {};

		this.call.view_state();
		NUMBERS.forEach((name, i) => { state[name] = this.numbers[i]; });
		return state;
	}

	// The ids of the events in a slot, in the order of adding.
	slot(level, slot) {
		const nr = this.call.view_slot(level, slot);
		return Array.from(this.list.subarray(0, nr));
	}

	due(id) {
		return this.call.view_due(id);
	}

	// Null, or the invariant of the wheel that is broken.
	check() {
		const address = this.call.view_check();

		if (!address)
			return null;
		const text = new Uint8Array(this.memory, address);
		return String.fromCharCode(...text.subarray(0, text.indexOf(0)));
	}
}
