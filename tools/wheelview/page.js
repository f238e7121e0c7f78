// SPDX-License-Identifier: GPL-2.0
// The page: what can be pressed, and what is shown. It shows one of two sources, the
// simulation or a file; both have steps that can be gone through, back and forth.

const $ = (id) => document.getElementById(id);

// A generator that gives the same numbers each time, so that a scenario does, too.
function generator(seed) {
	let state = seed;

	return () => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return state / 2 ** 32;
	};
}

function delaysBetween(nr, fromNs, untilNs, random) {
	return Array.from({ length: nr }, () => Math.round(fromNs + random() * (untilNs - fromNs)));
}

// --- sources ---------------------------------------------------------------------------------

class LiveSource {
	constructor(simulation, picture) {
		this.simulation = simulation;
		this.picture = picture;
		this.all = false;
		this.owedNs = 0;
		this.played = 0;
		simulation.onAdd = (id) => {
			if (simulation.nr < 5000)
				picture.pulse(simulation.engine.call.view_place(id));
		};
	}

	get position() {
		return this.simulation.position;
	}

	get length() {
		return this.simulation.steps.length;
	}

	data() {
		const { engine, now } = this.simulation;
		const state = engine.state();

		return { counts: engine.counts, mins: engine.mins, flags: engine.flags,
			clk: state.clk, now, next: state.programmed, armed: state.armed, tickNs: TICK_NS };
	}

	sinceStartNs() {
		return this.simulation.sinceStartNs;
	}

	// Draw what has been moved, unless it was by going back.
	finish(animated) {
		const moves = new Map();

		this.simulation.engine.report((from, to) => {
			const key = from * 65536 + to;
			moves.set(key, (moves.get(key) ?? 0) + 1);
		});
		if (animated)
			this.picture.animate(moves);
		else
			this.picture.stopMoving();
	}

	stepOn() {
		return this.simulation.stepOn(this.all);
	}

	goTo(position) {
		this.simulation.goTo(position);
		this.finish(false);
	}

	begins() {
		this.owedNs = 0;
	}

	// Some time of the screen has passed in a play; false: there is nothing left.
	play(pace, passedMs) {
		if (pace === "step" || pace === "fast")
			return this.playSteps(pace === "step" ? 1000 : 100, passedMs);
		if (pace === "rush")
			return this.playFor(8);
		return this.playTime(Number(pace), passedMs);
	}

	playSteps(everyMs, passedMs) {
		this.owedNs += passedMs;
		if (this.owedNs < everyMs)
			return true;
		this.owedNs = 0;
		return this.stepOn();
	}

	playFor(ms) {
		const until = performance.now() + ms;
		let more = true;

		while (more && performance.now() < until)
			more = this.stepOn();
		return more;
	}

	playTime(nsInSecond, passedMs) {
		const simulation = this.simulation;

		this.owedNs += nsInSecond * Math.min(passedMs, 100) / 1000;
		const target = simulation.now + Math.floor(this.owedNs / TICK_NS);

		while (simulation.position < simulation.steps.length) {
			const step = simulation.steps[simulation.position];
			if (step.do === "pass" && step.tick > target)
				return true;
			const before = simulation.now;
			simulation.run(step);
			this.owedNs -= (simulation.now - before) * TICK_NS;
		}
		if (simulation.nextTick(true) === null)
			return false;
		if (target > simulation.now) {
			this.owedNs -= (target - simulation.now) * TICK_NS;
			simulation.passTo(target);
		}
		return true;
	}
}

class FileSource {
	constructor(recording, picture) {
		this.recording = recording;
		this.picture = picture;
		this.name = recording.names()[0];
		this.position = 0;
		this.owedS = 0;
	}

	// The frames that have the wheel that is shown.
	get frames() {
		if (this.framesOf !== this.name) {
			this.framesOf = this.name;
			this.framesWithIt = this.recording.frames.filter(
				(frame) => frame.wheels.has(this.name));
		}
		return this.framesWithIt;
	}

	get length() {
		return this.frames.length - 1;
	}

	at(position) {
		return this.frames[position]?.wheels.get(this.name);
	}

	choose(name) {
		const atS = this.frames[this.position].atS;

		this.name = name;
		this.position = Math.max(0, this.frames.findLastIndex((frame) => frame.atS <= atS));
	}

	data() {
		const wheel = this.at(this.position);

		if (this.shown !== wheel) {
			this.shown = wheel;
			this.shownData = { ...wheel, ...slotsOf(wheel) };
		}
		return this.shownData;
	}

	sinceStartNs() {
		return this.frames[this.position].atS * 1e9;
	}

	finish() {
		this.picture.stopMoving();
	}

	stepOn() {
		if (this.position >= this.length)
			return false;
		this.position++;
		return true;
	}

	goTo(position) {
		this.position = position;
	}

	begins() {
		this.owedS = 0;
	}

	play(pace, passedMs) {
		this.owedS += pace * passedMs / 1000;
		while (this.position < this.length) {
			const gap = this.frames[this.position + 1].atS - this.frames[this.position].atS;
			if (gap > this.owedS)
				return true;
			this.owedS -= gap;
			this.position++;
		}
		return false;
	}

	// What was counted between two samples, and in how many seconds.
	difference() {
		const wheel = this.at(this.position), before = this.at(this.position - 1);
		const seconds = before ?
			this.frames[this.position].atS - this.frames[this.position - 1].atS : 0;

		return { wheel, before, seconds };
	}

	// Trace events of this wheel between two samples, by name.
	events() {
		const from = this.position ? this.frames[this.position - 1].atS : -1;
		const until = this.frames[this.position].atS;
		const counts = new Map();

		for (const event of this.recording.events)
			if (event.name === this.name && event.atS > from && event.atS <= until)
				counts.set(event.event, (counts.get(event.event) ?? 0) + 1);
		return counts;
	}
}

// --- the page --------------------------------------------------------------------------------

class Page {
	constructor(engine) {
		this.simulation = new Simulation(engine);
		this.picture = new WheelPicture($("wheel"));
		this.live = new LiveSource(this.simulation, this.picture);
		this.file = null;
		this.tab = "tour";
		this.playing = false;
		this.besideMs = 0;
		this.frameMs = [];
		this.workMs = [];
		this.makeTabs();
		this.makeTime();
		this.makeTry();
		this.makeFile();
		this.makeWheel();
		this.makeKeys();
		this.tour = new Tour(this);
		this.tour.choose("far");
		// Fonts, and so widths, may have come meanwhile.
		this.layOut();
	}

	get source() {
		return this.tab === "file" && this.file ? this.file : this.live;
	}

	// --- what is shown ---

	say(text) {
		$("said").textContent = text;
	}

	setText(id, text) {
		if ($(id).textContent !== text)
			$(id).textContent = text;
	}

	refresh() {
		const source = this.source, data = source.data();

		this.picture.show(data);
		this.setText("fact-now", timeText(source.sinceStartNs()));
		this.setText("fact-armed", plural(data.armed, "event"));
		this.setText("fact-next", data.next < 0 ? "none" :
			`in ${longSpanText(Math.max(0, data.next - data.now) * data.tickNs)}`);
		this.refreshTime(source);
		this.inspect();
		// In a play, what is beside the wheel need not change at each frame.
		if (this.playing && performance.now() - this.besideMs < 100)
			return;
		this.besideMs = performance.now();
		if (source === this.live)
			this.refreshOthers();
		else
			this.refreshCounters();
	}

	refreshTime(source) {
		const position = source.position, length = Math.max(source.length, 0);

		$("scrub").max = length;
		$("scrub").value = position;
		$("scrub").setAttribute("aria-valuetext", timeText(source.sinceStartNs()));
		this.setText("time-of-scrub", length ?
			`step ${countText(position)} of ${countText(length)}` : "");
		$("back").disabled = $("restart").disabled = position === 0;
		const more = position < length ||
			(source === this.live && this.simulation.nextTick(true) !== null);
		$("next").disabled = !more;
		$("play").disabled = !more && !this.playing;
		this.setText("play", this.playing ? "Pause" : "Play");
		this.setText("next", source === this.live ? "Next wakeup" : "Next sample");
	}

	refreshOthers() {
		const { wheel, kafka, hashed } = this.simulation.summary();
		const late = (one) => one.expired ? spanText(one.worstNs) : "–";
		const early = (one) => one.earlyNs > 1 ? spanText(one.earlyNs) : "never";
		const rows = [
			["Wakeups", (one) => countText(one.wakeups), "key"],
			["· nothing due", (one) => countText(one.idleWakeups)],
			["Moves, looks", (one) => countText(one.moves), "key"],
			["Waiting", (one) => countText(one.pending)],
			["Came out", (one) => countText(one.expired)],
			["Late, at most", late],
			["Early, at most", (one) => one.expired ? early(one) : "–"],
		];

		fillTable($("compared"), rows.map(([name, text, kind]) =>
			({ name, kind, cells: [wheel, kafka, hashed].map(text) })));
		drawKafka($("kafka"), this.picture.palette, this.simulation.kafka);
		drawHashed($("hashed"), this.picture.palette, this.simulation.hashed);
	}

	refreshCounters() {
		const { wheel, before, seconds } = this.file.difference();

		this.setText("counters-title", before ? "Since the sample before" : "Since the module was loaded");
		const rows = ["expired", "interrupts", "cascaded", "postponed"].map((name) => {
			// If the module was loaded again, its counters began again.
			const gained = before ? wheel[name] - (before[name] <= wheel[name] ? before[name] : 0) : 0;

			return { name, cells: before ? [countText(gained),
				seconds ? `${countText(gained / seconds)} /s` : ""] :
				[countText(wheel[name]), ""] };
		});

		for (const [name, nr] of this.file.events())
			rows.push({ name: `trace: ${name}`, cells: [countText(nr), ""] });
		fillTable($("file-counters"), rows);
		fillTable($("file-lateness"), latenessRows(wheel.lateness));
	}

	// --- a slot that is looked at ---

	inspect() {
		const place = this.picture.selected ?? this.picture.hovered;

		this.setText("inspected", place ? this.describe(place) :
			"Point at a slot, or choose one with the arrow keys, to see what is in it.");
	}

	describe({ level, slot }) {
		const data = this.source.data(), at = level * SLOTS + slot, count = data.counts[at];
		const ticks = slotTicks(level);
		const here = Math.floor(data.now / ticks);
		const ahead = (slot - here % SLOTS + SLOTS) % SLOTS;
		const begins = (here + ahead) * ticks - data.now;
		let text = `Level ${level}, slot ${slot}: ${plural(count, "event")}. It is ` +
			`${spanText(ticks * data.tickNs)} wide and ` +
			(ahead ? `begins in ${longSpanText(begins * data.tickNs)}.` : "has begun.");

		if (count && data.mins)
			text += ` The earliest is due in ${longSpanText(
				Math.max(0, data.mins[at] - data.now) * data.tickNs)}.`;
		return text;
	}

	makeWheel() {
		const canvas = $("wheel"), picture = this.picture;
		const placeOf = (event) => {
			const box = canvas.getBoundingClientRect();
			return picture.layout.hit(event.clientX - box.left, event.clientY - box.top);
		};

		canvas.addEventListener("pointermove", (event) => {
			picture.hovered = placeOf(event);
			picture.refresh();
			this.inspect();
		});
		canvas.addEventListener("pointerleave", () => {
			picture.hovered = null;
			picture.refresh();
			this.inspect();
		});
		canvas.addEventListener("click", (event) => {
			picture.selected = placeOf(event);
			picture.refresh();
			this.inspect();
		});
		canvas.addEventListener("keydown", (event) => this.moveSelection(event));
		canvas.addEventListener("blur", () => this.select(null));
		new ResizeObserver(() => this.layOut()).observe(canvas.parentElement);
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
			picture.recolour();
			this.refresh();
		});
		$("as-rows").addEventListener("click", () => this.drawAs(false));
		$("as-rings").addEventListener("click", () => this.drawAs(true));
	}

	select(place) {
		this.picture.selected = place;
		this.picture.refresh();
		this.inspect();
	}

	moveSelection(event) {
		const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, 0], ArrowDown: [-1, 0] };
		const step = steps[event.key], old = this.picture.selected;

		if (event.key === "Escape" && old) {
			this.select(null);
		} else if (step) {
			this.select(old ? {
				level: Math.min(Math.max(old.level + step[0], 0), LEVELS - 1),
				slot: (old.slot + step[1] + SLOTS) % SLOTS,
			} : { level: 0, slot: slotOf(this.source.data().now, 0) });
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	}

	drawAs(rings) {
		this.picture.rings = rings;
		$("as-rows").setAttribute("aria-pressed", String(!rings));
		$("as-rings").setAttribute("aria-pressed", String(rings));
		this.layOut();
	}

	layOut() {
		this.picture.layOut();
		this.refresh();
	}

	// --- time ---

	makeTime() {
		$("restart").addEventListener("click", () => this.goTo(0));
		$("back").addEventListener("click", () => this.goTo(this.source.position - 1));
		$("next").addEventListener("click", () => this.stepOn());
		$("play").addEventListener("click", () => this.toggle());
		$("scrub").addEventListener("input", () => this.goTo(Number($("scrub").value)));
	}

	goTo(position) {
		const source = this.source;

		this.pause();
		source.goTo(Math.min(Math.max(position, 0), Math.max(source.length, 0)));
		this.say("");
		this.changed();
	}

	stepOn() {
		const before = this.simulation.summary().wheel;

		this.pause();
		if (!this.source.stepOn())
			return;
		this.source.finish(true);
		if (this.source === this.live)
			this.tell(before);
		this.changed();
	}

	// What the last step did.
	tell(before) {
		const { wheel } = this.simulation.summary();
		const parts = [];

		if (wheel.expired > before.expired)
			parts.push(`${plural(wheel.expired - before.expired, "event")} came out`);
		if (wheel.moves > before.moves)
			parts.push(`${countText(wheel.moves - before.moves)} moved down`);
		if (wheel.wakeups === before.wakeups)
			this.say("This wheel still sleeps; another one woke up.");
		else
			this.say(`${plural(wheel.wakeups - before.wakeups, "wakeup")}: ` +
				`${parts.join(", ") || "nothing to do, its event was cancelled"}.`);
	}

	toggle() {
		if (this.playing)
			this.pause();
		else
			this.start();
	}

	start() {
		let last = performance.now();

		this.playing = true;
		this.say("");
		this.source.begins();
		const frame = (now) => {
			if (!this.playing)
				return;
			const begin = performance.now();
			const passed = Math.max(0, now - last), source = this.source;
			const pace = source === this.live ? $("pace").value : Number($("file-pace").value);
			const position = source.position;

			last = now;
			this.frameMs.push(passed);
			if (this.frameMs.length > 2000)
				this.frameMs.shift();
			if (!source.play(pace, passed))
				this.pause();
			if (source.position !== position) {
				source.finish(true);
				this.changed();
			} else if (!this.playing) {
				this.changed();
			}
			this.workMs.push(performance.now() - begin);
			if (this.workMs.length > 2000)
				this.workMs.shift();
			requestAnimationFrame(frame);
		};
		requestAnimationFrame(frame);
		this.refresh();
	}

	pause() {
		const stops = this.playing;

		this.playing = false;
		this.setText("play", "Play");
		if (stops)
			this.refresh();
	}

	changed() {
		this.refresh();
		if (this.tab === "tour")
			this.tour.refreshFacts();
	}

	// --- trying ---

	makeTry() {
		$("add-form").addEventListener("submit", (event) => {
			event.preventDefault();
			this.attempt(() => this.addTyped());
		});
		for (const button of document.querySelectorAll("[data-add]"))
			button.addEventListener("click", () => this.attempt(() => this.addReady(button.dataset.add)));
		$("cancel-half").addEventListener("click", () => this.cancelPart(2));
		$("cancel-all").addEventListener("click", () => this.cancelPart(1));
		$("clear").addEventListener("click", () => {
			this.pause();
			this.simulation.clear();
			this.live.finish(false);
			this.say("Everything begins anew.");
			this.changed();
		});
	}

	// What goes wrong is told, and changes nothing.
	attempt(action) {
		$("add-error").hidden = true;
		try {
			action();
		} catch (error) {
			$("add-error").textContent = error.message;
			$("add-error").hidden = false;
		}
	}

	addTyped() {
		const nr = parseCount($("add-count").value, "How many", 100000);
		const delay = parseSpan($("add-delay").value, "Due in");
		const until = parseSpan($("add-until").value || $("add-delay").value, "to");
		const slack = parseSpan($("add-slack").value, "Slack");

		if (until < delay)
			throw new Error("to: the latest due time is before the earliest one.");
		this.add(delaysBetween(nr, delay, until, Math.random), slack);
	}

	addReady(name) {
		const ready = {
			one: () => this.add([10 * 86400e9], 0),
			thousand: () => this.add(delaysBetween(1000, 1e6, 60e9, Math.random), 0),
			crowd: () => this.add(delaysBetween(2000, 60e9, 61e9, Math.random), 0),
			slack: () => this.add(delaysBetween(1000, 1e6, 60e9, Math.random), 500e6),
		};
		ready[name]();
	}

	add(delays, slackNs) {
		const dropped = this.simulation.position < this.simulation.steps.length;

		if (delays.length > this.simulation.room)
			throw new Error(`There is room for ${countText(this.simulation.room)} more events in ` +
				"one recording. Press “Start anew”.");
		this.pause();
		this.simulation.add(delays, slackNs);
		this.live.finish(true);
		this.say(`${plural(delays.length, "event")} added, in one step each.` +
			(dropped ? " What came later in the recording was dropped." : ""));
		this.changed();
	}

	cancelPart(each) {
		const ids = this.simulation.armed().filter((_, i) => i % each === 0);

		this.pause();
		if (ids.length)
			this.simulation.cancel(ids);
		this.live.finish(true);
		this.say(ids.length ? `${plural(ids.length, "event")} cancelled; nothing was moved.` :
			"Nothing waits, so there is nothing to cancel.");
		this.changed();
	}

	// --- files ---

	makeFile() {
		$("choose-file").addEventListener("click", () => $("file").click());
		$("file").addEventListener("change", () => {
			if ($("file").files.length)
				this.open($("file").files[0]);
			$("file").value = "";
		});
		$("wheel-name").addEventListener("change", () => {
			this.pause();
			this.file.choose($("wheel-name").value);
			this.changed();
		});
		addEventListener("dragover", (event) => {
			event.preventDefault();
			document.body.classList.add("dragging");
		});
		addEventListener("dragleave", () => document.body.classList.remove("dragging"));
		addEventListener("drop", (event) => {
			event.preventDefault();
			document.body.classList.remove("dragging");
			if (event.dataTransfer.files.length)
				this.open(event.dataTransfer.files[0]);
		});
	}

	async open(file) {
		this.showTab("file");
		try {
			const recording = await openFile(file);

			$("file-error").hidden = true;
			this.showRecording(recording);
		} catch (error) {
			const reason = error instanceof FileError ? error.message :
				`It cannot be read (${error.name}).`;

			$("file-error").textContent = `${excerpt(file.name)} was not opened. ${reason}`;
			$("file-error").hidden = false;
		}
	}

	showRecording(recording) {
		const frames = recording.frames;

		this.pause();
		this.file = new FileSource(recording, this.picture);
		$("wheel-name").replaceChildren(...recording.names().map((name) => new Option(name, name)));
		$("file-name").textContent = `${excerpt(recording.fileName)}: ` +
			plural(frames.length, "sample") + (frames.length > 1 ?
			` in ${spanText((frames.at(-1).atS - frames[0].atS) * 1e9)}` : "") +
			(recording.time ? `, from ${recording.time}` : "");
		const notes = [recording.note];
		if (recording.lost)
			notes.push(`${plural(recording.lost, "trace event")} were lost while it was recorded.`);
		$("file-note").textContent = notes.join(" ").trim();
		$("file-note").hidden = !$("file-note").textContent;
		this.showTab("file");
	}

	// --- tabs ---

	makeTabs() {
		const names = ["tour", "try", "file"];

		names.forEach((name, i) => {
			const tab = $(`tab-${name}`);

			tab.addEventListener("click", () => this.showTab(name));
			tab.addEventListener("keydown", (event) => {
				const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
				if (!step)
					return;
				const other = names[(i + step + names.length) % names.length];
				event.preventDefault();
				event.stopPropagation();
				this.showTab(other);
				$(`tab-${other}`).focus();
			});
		});
	}

	showTab(name) {
		if (name !== this.tab)
			this.pause();
		this.tab = name;
		for (const other of ["tour", "try", "file"]) {
			$(`panel-${other}`).hidden = other !== name;
			$(`tab-${other}`).setAttribute("aria-selected", String(other === name));
			$(`tab-${other}`).tabIndex = other === name ? 0 : -1;
		}
		const file = name === "file" && this.file !== null;

		$("stage").hidden = name === "file" && !file;
		$("others").hidden = file;
		$("file-facts").hidden = !file;
		$("file-about").hidden = !file;
		$("file-how").hidden = file;
		$("pace-label").hidden = file;
		$("file-pace-label").hidden = !file;
		$("legend-min").hidden = file;
		this.live.all = name === "tour";
		this.say("");
		this.picture.stopMoving();
		this.layOut();
		if (name === "tour")
			this.tour.refreshFacts();
	}

	// --- keys ---

	makeKeys() {
		const actions = {
			" ": () => $("play").click(),
			ArrowRight: () => $("next").click(),
			ArrowLeft: () => $("back").click(),
			Home: () => $("restart").click(),
			End: () => this.goTo(this.source.length),
			r: () => this.drawAs(!this.picture.rings),
			a: () => this.attempt(() => this.addTyped()),
			c: () => this.cancelPart(2),
		};

		addEventListener("keydown", (event) => {
			const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
			const typing = event.target.closest("input, select, textarea");
			const pressing = event.key === " " && event.target.closest("button, summary");
			const live = this.source === this.live;

			if (!action || typing || pressing || event.ctrlKey || event.metaKey || event.altKey ||
			    $("stage").hidden || ("ac".includes(event.key.toLowerCase()) && !live))
				return;
			event.preventDefault();
			action();
		});
	}
}

function fillTable(body, rows) {
	while (body.rows.length > rows.length)
		body.deleteRow(-1);
	rows.forEach(({ name, cells, kind }, i) => {
		const row = body.rows[i] ?? body.insertRow();

		row.className = kind ?? "";
		if (!row.cells.length) {
			const head = document.createElement("th");
			head.scope = "row";
			row.append(head);
		}
		[name, ...cells].forEach((text, j) => {
			const cell = row.cells[j] ?? row.insertCell();
			if (cell.textContent !== text)
				cell.textContent = text;
		});
	});
}

function latenessRows(lateness) {
	const total = lateness.reduce((sum, nr) => sum + nr, 0);

	if (!total)
		return [{ name: "no event has expired", cells: ["", ""] }];
	return lateness.map((nr, k) => ({
		name: k < 23 ? `less than ${spanText(2 ** (k + 10))}` : `${spanText(2 ** 32)} and more`,
		nr,
		cells: [countText(nr), `${Number((100 * nr / total).toPrecision(3))} %`],
	})).filter((row) => row.nr);
}

// --- the tour --------------------------------------------------------------------------------

class Tour {
	constructor(page) {
		this.page = page;
		this.simulation = page.simulation;
		this.scenario = null;
		this.step = 0;
		for (const template of document.querySelectorAll("template[id^=scenario-]")) {
			const button = document.createElement("button");

			button.textContent = template.dataset.title;
			button.dataset.scenario = template.id.slice("scenario-".length);
			button.addEventListener("click", () => this.choose(button.dataset.scenario));
			$("scenarios").append(button);
		}
		$("story-next").addEventListener("click", () => this.next());
		$("story-back").addEventListener("click", () => this.goTo(this.step - 1));
	}

	choose(name) {
		this.scenario = name;
		this.sections = [...$(`scenario-${name}`).content.children];
		for (const button of $("scenarios").children)
			button.setAttribute("aria-pressed", String(button.dataset.scenario === name));
		this.goTo(0);
	}

	// Go to a step: everything up to it is done again.
	goTo(step) {
		this.page.pause();
		this.simulation.clear();
		for (let i = 0; i <= step; i++)
			this.do(i);
		this.page.live.finish(false);
		this.show(step);
	}

	// The scenario after this one.
	following() {
		const names = [...$("scenarios").children].map((button) => button.dataset.scenario);
		return names[names.indexOf(this.scenario) + 1];
	}

	next() {
		if (this.step + 1 >= this.sections.length) {
			if (this.following())
				this.choose(this.following());
			else
				this.page.showTab("try");
			return;
		}
		this.page.pause();
		// If somebody has gone back or forth by hand, begin where the step begins.
		if (this.simulation.position !== this.endOf[this.step]) {
			this.goTo(this.step + 1);
			return;
		}
		this.do(this.step + 1);
		this.page.live.finish(true);
		this.show(this.step + 1);
	}

	do(step) {
		if (step === 0)
			this.endOf = [];
		this[this.sections[step].dataset.do]();
		this.endOf[step] = this.simulation.position;
	}

	show(step) {
		const last = step === this.sections.length - 1;

		this.step = step;
		$("story").replaceChildren(...[...this.sections[step].children].map((child) => child.cloneNode(true)));
		$("story-back").disabled = step === 0;
		$("steps").textContent = `${step + 1} of ${this.sections.length}`;
		$("story-next").textContent = !last ? "Next" :
			this.following() ? "Next scenario" : "Try it yourself";
		this.page.say("");
		this.page.changed();
	}

	// The numbers in the text are those of the moment.
	refreshFacts() {
		const summary = this.simulation.summary();
		const place = this.simulation.engine.call.view_place(0);

		if (place >= 0)
			this.farLevel = Math.floor(place / SLOTS);
		const facts = {
			farLevel: () => String(this.farLevel ?? ""),
			farSpan: () => spanText(slotTicks(this.farLevel ?? 0) * TICK_NS),
			farLeft: () => longSpanText(Math.max(0, (this.simulation.asked[0] ?? 0) - this.simulation.nowNs)),
		};
		for (const name of ["wheel", "kafka", "hashed"]) {
			const one = summary[name];

			facts[`${name}.wakeups`] = () => countText(one.wakeups);
			facts[`${name}.moves`] = () => countText(one.moves);
			facts[`${name}.idle`] = () => countText(one.idleWakeups);
			facts[`${name}.worst`] = () => spanText(one.worstNs);
			facts[`${name}.prefetched`] = () => countText(one.prefetched ?? 0);
		}
		for (const element of document.querySelectorAll("#story [data-fact]"))
			element.textContent = facts[element.dataset.fact]();
	}

	// --- what the steps do; their names are in the template ---

	nothing() {
	}

	addFar() {
		this.simulation.add([10 * 86400e9], 0);
	}

	passFiveDays() {
		this.simulation.passTo(this.simulation.now + Math.round(5 * 86400e9 / TICK_NS));
	}

	passToKafka() {
		this.simulation.passTo(Math.ceil(this.simulation.kafka.next() / TICK_NS));
	}

	passAll() {
		while (this.simulation.stepOn(true))
			;
	}

	addTimeouts() {
		this.simulation.add(delaysBetween(1000, 29e9, 30e9, generator(1)), 0);
	}

	cancelMost() {
		this.simulation.passTo(this.simulation.now + Math.round(0.1e9 / TICK_NS));
		this.simulation.cancel(this.simulation.armed().filter((id) => id % 100 !== 7));
	}

	addCrowd() {
		this.simulation.add(delaysBetween(2000, 60e9, 61e9, generator(2)), 0);
	}

	passToPrefetch() {
		const prefetched = () => this.simulation.summary().wheel.prefetched;

		while (prefetched() < 512 && this.simulation.stepOn(false))
			;
	}

	addExact() {
		this.simulation.add(delaysBetween(1000, 1e6, 10e9, generator(3)), 0);
	}

	addSlack() {
		this.simulation.clear();
		this.simulation.add(delaysBetween(1000, 1e6, 10e9, generator(3)), 100e6);
	}
}

// --- beginning -------------------------------------------------------------------------------

async function begin() {
	const text = atob($("wasm").textContent.trim());
	const engine = await Engine.make(Uint8Array.from(text, (c) => c.charCodeAt(0)));

	// For the tests, and for whoever wants to look with the browser's tools.
	window.wheelview = new Page(engine);
	document.documentElement.dataset.ready = "yes";
}

begin().catch((error) => {
	document.body.prepend(Object.assign(document.createElement("p"), {
		className: "error",
		textContent: `This browser cannot run the wheel: ${error.message}`,
	}));
	throw error;
});
