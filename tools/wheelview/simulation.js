// SPDX-License-Identifier: GPL-2.0
// One script of adds, cancels and passing time, which is run on the module's wheel and on the
// two models.
//
// What was done is kept as a list of steps. To go back is to begin again and to run fewer of
// them. To do something else after that drops the steps that came later.

// Where virtual time begins. Not 0: the windows of all levels would begin together.
const START_TICK = 1525863113;

class Tally {
	constructor() {
		this.expired = 0;
		this.lateNs = 0;
		this.worstNs = 0;
		this.earlyNs = 0;
	}

	note(askedNs, firedNs) {
		const late = firedNs - askedNs;

		this.expired++;
		this.lateNs += Math.max(late, 0);
		this.worstNs = Math.max(this.worstNs, late);
		this.earlyNs = Math.max(this.earlyNs, -late);
	}
}

class Simulation {
	constructor(engine) {
		this.engine = engine;
		this.steps = [];
		this.onAdd = () => {};
		this.begin();
	}

	begin() {
		this.position = 0;
		this.now = START_TICK;
		this.nr = 0;
		this.cancelled = 0;
		this.asked = [];
		this.tally = { wheel: new Tally(), kafka: new Tally(), hashed: new Tally() };
		this.engine.start(START_TICK);
		this.kafka = new KafkaTimer(this.nowNs);
		this.hashed = new HashedTimer();
		for (const name of ["kafka", "hashed"])
			this[name].fired = (id, ns) => this.tally[name].note(this.asked[id], ns);
	}

	// Forget the steps, too.
	clear() {
		this.steps = [];
		this.begin();
	}

	get nowNs() {
		return this.now * TICK_NS;
	}

	get sinceStartNs() {
		return (this.now - START_TICK) * TICK_NS;
	}

	get room() {
		return MAX_EVENTS - this.nr;
	}

	addOne(delayNs, slackNs) {
		const id = this.nr++;
		const dueNs = this.nowNs + delayNs;
		const first = Math.ceil(dueNs / TICK_NS);

		this.engine.add(id, first, Math.max(first, Math.floor((dueNs + slackNs) / TICK_NS)));
		this.asked.push(dueNs);
		this.kafka.add(id, this.nowNs, delayNs);
		this.hashed.add(id, this.nowNs, delayNs);
		this.onAdd(id);
	}

	cancelOne(id) {
		if (this.engine.cancel(id))
			this.cancelled++;
		this.kafka.cancel(id);
		this.hashed.cancel(id);
	}

	pass(tick) {
		const tally = this.tally.wheel;

		this.engine.advance(tick, (id, at) => {
			tally.note(this.asked[id], at * TICK_NS);
		});
		this.now = tick;
		this.kafka.advance(this.nowNs);
		this.hashed.advance(this.nowNs);
	}

	run(step) {
		switch (step.do) {
		case "add":
			for (const delayNs of step.delays)
				this.addOne(delayNs, step.slackNs);
			break;
		case "cancel":
			for (const id of step.ids)
				this.cancelOne(id);
			break;
		case "pass":
			this.pass(step.tick);
			break;
		}
		this.position++;
	}

	// Do something new at this point. Steps that came later are dropped.
	record(step) {
		this.steps.length = this.position;
		this.steps.push(step);
		this.run(step);
	}

	add(delays, slackNs) {
		this.record({ do: "add", delays: Array.from(delays), slackNs });
	}

	cancel(ids) {
		this.record({ do: "cancel", ids: Array.from(ids) });
	}

	passTo(tick) {
		this.record({ do: "pass", tick });
	}

	// The ids of the events that are on the wheel.
	armed() {
		const ids = [];

		for (let id = 0; id < this.nr; id++)
			if (this.engine.call.view_place(id) >= 0)
				ids.push(id);
		return ids;
	}

	// The tick of the next wakeup of the wheel; with @all, of Kafka's timer too, and of the
	// hashed wheel's when an event comes out. Null: there is none.
	nextTick(all) {
		const wheel = this.engine.state().programmed;
		const others = Math.ceil(Math.min(this.kafka.next(), this.hashed.next()) / TICK_NS);
		let next = wheel < 0 ? Infinity : wheel;

		if (all || next === Infinity)
			next = Math.min(next, Math.max(others, this.now + 1));
		return next < Infinity ? next : null;
	}

	// One step on: one that is recorded, or else to the next wakeup. False: there is none.
	stepOn(all) {
		if (this.position < this.steps.length) {
			this.run(this.steps[this.position]);
			return true;
		}
		const tick = this.nextTick(all);
		if (tick !== null)
			this.passTo(tick);
		return tick !== null;
	}

	// Go to a step, back or forth.
	goTo(position) {
		if (position < this.position)
			this.begin();
		while (this.position < position)
			this.run(this.steps[this.position]);
	}

	// What is shown of each of the three.
	summary() {
		const wheel = this.engine.state();
		const of = (name, timer, more) => ({
			pending: timer.pending,
			wakeups: timer.wakeups,
			idleWakeups: timer.idleWakeups,
			moves: timer.moves,
			...this.tally[name],
			...more,
		});

		return {
			wheel: of("wheel", {
				pending: wheel.armed,
				wakeups: wheel.wakeups,
				idleWakeups: wheel.idleWakeups,
				moves: wheel.cascaded + wheel.prefetched,
			}, { prefetched: wheel.prefetched }),
			kafka: of("kafka", this.kafka),
			hashed: of("hashed", this.hashed),
		};
	}
}
