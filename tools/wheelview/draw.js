// SPDX-License-Identifier: GPL-2.0
// Draws wheels on canvases: the levels as rows or as rings, events that are moved, and the
// small pictures of the two models.

const MOVE_MS = 650;
const PULSE_MS = 500;
const MOST_DOTS = 800;	// beyond, the oldest ones are left out
const FEW_DOTS = 40;	// up to here, dots have a tail

// The colours of style.css, which depend on whether it is dark.
class Palette {
	constructor() {
		const style = getComputedStyle(document.documentElement);
		const of = (name) => style.getPropertyValue(`--${name}`).trim();

		for (const name of ["ink", "dim", "line", "cell", "panel", "accent", "crowd", "urgent"])
			this[name] = of(name);
		this.from = this.components(of("fill-few"));
		this.to = this.components(of("fill-many"));
		this.font = getComputedStyle(document.body).fontFamily;
	}

	components(colour) {
		return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
	}

	// The colour of a slot: on a logarithmic scale up to 1,024 events.
	fill(count) {
		const part = Math.min(Math.log2(count) / 10, 1);
		const mixed = this.from.map((from, i) => Math.round(from + (this.to[i] - from) * part));

		return `rgb(${mixed.join(" ")})`;
	}
}

// Sets the size of a canvas in pixels of the screen, and returns its context.
function contextOf(canvas, width, height) {
	const scale = window.devicePixelRatio || 1;
	const w = Math.round(width * scale), h = Math.round(height * scale);

	if (canvas.width !== w || canvas.height !== h) {
		canvas.width = w;
		canvas.height = h;
		canvas.style.height = `${height}px`;
	}
	const context = canvas.getContext("2d");
	context.setTransform(scale, 0, 0, scale, 0, 0);
	context.clearRect(0, 0, width, height);
	return context;
}

class Rows {
	constructor(width) {
		this.small = width < 640;
		this.left = this.small ? 26 : 138;
		this.right = this.small ? 0 : 186;
		this.pitch = (width - this.left - this.right) / SLOTS;
		this.gap = this.pitch > 8 ? 2 : 1;
		this.rowPitch = this.small ? 27 : 30;
		this.cellHeight = this.rowPitch - 12;
		this.top = 14;
		this.width = width;
		this.height = this.top + LEVELS * this.rowPitch + 12;
	}

	y(level) {
		return this.top + (LEVELS - 1 - level) * this.rowPitch;
	}

	cell(level, slot) {
		return { x: this.left + slot * this.pitch, y: this.y(level),
			width: this.pitch - this.gap, height: this.cellHeight };
	}

	centre(level, slot) {
		const cell = this.cell(level, slot);
		return [cell.x + cell.width / 2, cell.y + cell.height / 2];
	}

	exit(slot) {
		return [this.centre(0, slot)[0], this.height - 6];
	}

	hit(x, y) {
		const row = Math.floor((y - this.top + 6) / this.rowPitch);
		const slot = Math.floor((x - this.left) / this.pitch);

		if (row < 0 || row >= LEVELS || slot < 0 || slot >= SLOTS)
			return null;
		return { level: LEVELS - 1 - row, slot };
	}

	outline(context, level, slot, grow) {
		const cell = this.cell(level, slot);
		context.beginPath();
		context.rect(cell.x - grow, cell.y - grow, cell.width + 2 * grow, cell.height + 2 * grow);
	}

	markPosition(context, level, slot) {
		const cell = this.cell(level, slot), x = cell.x + cell.width / 2, y = cell.y - 2.5;

		context.beginPath();
		context.moveTo(x - 3.5, y - 5);
		context.lineTo(x + 3.5, y - 5);
		context.lineTo(x, y);
		context.fill();
	}

	markMin(context, level, slot, part) {
		const cell = this.cell(level, slot);

		if (cell.width < 5)
			return;
		context.fillRect(cell.x + part * (cell.width - 1.5), cell.y + cell.height + 1.5, 1.5, 4);
	}

	labels(context, palette, texts) {
		context.textBaseline = "middle";
		for (let level = 0; level < LEVELS; level++) {
			const y = this.y(level) + this.cellHeight / 2, text = texts[level];

			context.font = `600 12px ${palette.font}`;
			context.textAlign = "left";
			context.fillStyle = text.count ? palette.ink : palette.dim;
			context.fillText(this.small ? String(level) : `Level ${level}`, 0, y);
			if (this.small)
				continue;
			context.font = `12px ${palette.font}`;
			context.textAlign = "right";
			context.fillStyle = palette.dim;
			context.fillText(text.span, this.left - 10, y);
			context.textAlign = "left";
			context.fillStyle = text.next ? palette.accent : palette.ink;
			context.fillText(text.right, this.width - this.right + 10, y);
		}
	}
}

class Rings {
	constructor(width) {
		this.wide = width >= 760;
		this.size = Math.min(this.wide ? width - 230 : width, 560);
		this.width = width;
		this.height = this.size;
		this.radius = this.size / 2 - 16;
		this.thick = (this.radius - 18) / LEVELS;
		this.x = this.wide ? this.size / 2 : width / 2;
		this.yCentre = this.size / 2;
	}

	// Level 0, which turns fastest, is outside.
	radii(level) {
		const outer = this.radius - level * this.thick;
		return [outer - this.thick + Math.max(1.5, this.thick * 0.18), outer];
	}

	angle(slot) {
		return (slot / SLOTS) * 2 * Math.PI - Math.PI / 2;
	}

	at(angle, radius) {
		return [this.x + radius * Math.cos(angle), this.yCentre + radius * Math.sin(angle)];
	}

	path(context, level, slot, grow = 0) {
		const [inner, outer] = this.radii(level);
		const gap = 0.8 / outer - grow / outer;
		const from = this.angle(slot) + gap, to = this.angle(slot + 1) - gap;

		context.beginPath();
		context.arc(this.x, this.yCentre, outer + grow, from, to);
		context.arc(this.x, this.yCentre, inner - grow, to, from, true);
		context.closePath();
	}

	centre(level, slot) {
		const [inner, outer] = this.radii(level);
		return this.at(this.angle(slot + 0.5), (inner + outer) / 2);
	}

	exit(slot) {
		return this.at(this.angle(slot + 0.5), this.radius + 14);
	}

	hit(x, y) {
		const dx = x - this.x, dy = y - this.yCentre;
		const level = Math.floor((this.radius - Math.hypot(dx, dy)) / this.thick);
		const turn = (Math.atan2(dy, dx) + Math.PI / 2) / (2 * Math.PI);

		if (level < 0 || level >= LEVELS)
			return null;
		return { level, slot: Math.floor(((turn + 1) % 1) * SLOTS) };
	}

	outline(context, level, slot, grow) {
		this.path(context, level, slot, grow);
	}

	markPosition(context, level, slot) {
		const [, outer] = this.radii(level), angle = this.angle(slot + 0.5);
		const spread = 3 / outer;

		context.beginPath();
		context.moveTo(...this.at(angle - spread, outer + 2.5));
		context.lineTo(...this.at(angle + spread, outer + 2.5));
		context.lineTo(...this.at(angle, outer - 2.5));
		context.fill();
	}

	markMin() {
	}

	labels(context, palette, texts) {
		if (!this.wide)
			return;
		context.textBaseline = "middle";
		context.textAlign = "left";
		for (let level = 0; level < LEVELS; level++) {
			const x = this.size + 22, y = 34 + level * 44, text = texts[level];

			context.font = `600 12px ${palette.font}`;
			context.fillStyle = text.count ? palette.ink : palette.dim;
			context.fillText(`Level ${level}`, x, y);
			context.font = `12px ${palette.font}`;
			context.fillStyle = palette.dim;
			context.fillText(`slots of ${text.span}`, x + 66, y);
			context.fillStyle = text.next ? palette.accent : palette.ink;
			context.fillText(text.right, x, y + 17);
		}
	}
}

function ease(part) {
	return part * part * (3 - 2 * part);
}

// Where a dot is on its way, which has two or three points.
function along(points, part) {
	const legs = points.length - 1;
	const leg = Math.min(Math.floor(part * legs), legs - 1);
	const within = ease(part * legs - leg);
	const [x0, y0] = points[leg], [x1, y1] = points[leg + 1];

	return [x0 + (x1 - x0) * within, y0 + (y1 - y0) * within];
}

class WheelPicture {
	constructor(canvas) {
		this.canvas = canvas;
		this.palette = new Palette();
		this.rings = false;
		this.data = null;
		this.selected = null;
		this.hovered = null;
		this.dots = [];
		this.pulses = new Map();
		this.still = matchMedia("(prefers-reduced-motion: reduce)");
		this.waiting = false;
		this.drawMs = [];
		this.layOut();
	}

	layOut() {
		const width = this.canvas.clientWidth || 600;

		this.layout = this.rings ? new Rings(width) : new Rows(width);
		this.dots = [];
		this.refresh();
	}

	recolour() {
		this.palette = new Palette();
		this.refresh();
	}

	show(data) {
		this.data = data;
		this.refresh();
	}

	refresh() {
		if (this.waiting)
			return;
		this.waiting = true;
		requestAnimationFrame((now) => {
			this.waiting = false;
			const before = performance.now();

			this.draw(now);
			this.drawMs.push(performance.now() - before);
			if (this.drawMs.length > 2000)
				this.drawMs.shift();
			if (this.dots.length || this.pulses.size)
				this.refresh();
		});
	}

	// Events were moved: a map from "64 * level + slot" times 65536, plus the target, to how
	// many they were. An event that came out went by level 0.
	animate(moves) {
		if (this.still.matches)
			return;
		const start = performance.now();

		for (const [key, count] of moves) {
			const from = Math.floor(key / 65536), to = key % 65536;
			const level = Math.floor(from / SLOTS), slot = from % SLOTS;
			const points = [this.layout.centre(level, slot)];

			if (!(to & OUT)) {
				points.push(this.layout.centre(Math.floor(to / SLOTS), to % SLOTS));
			} else {
				if (level > 0)
					points.push(this.layout.centre(0, to % SLOTS));
				points.push(this.layout.exit(to % SLOTS));
			}
			this.dots.push({ points, start, count, out: Boolean(to & OUT),
				length: MOVE_MS * (points.length - 1) });
		}
		if (this.dots.length > MOST_DOTS)
			this.dots.splice(0, this.dots.length - MOST_DOTS);
		this.refresh();
	}

	pulse(place) {
		if (place >= 0 && !this.still.matches)
			this.pulses.set(place, performance.now());
	}

	stopMoving() {
		this.dots = [];
		this.pulses.clear();
	}

	// The occupied slots of a level in the order of time, from the present on.
	firstSlot(level) {
		const data = this.data, here = slotOf(data.clk, level);

		for (let i = 0; i < SLOTS; i++) {
			const slot = (here + i) % SLOTS;
			if (data.counts[level * SLOTS + slot])
				return slot;
		}
		return -1;
	}

	// The slot for which the wheel is going to wake up, or null: a prefetch, or nothing.
	nextSlot() {
		const data = this.data;

		if (data.next < 0)
			return null;
		for (let level = 0; level < LEVELS; level++) {
			const slot = data.mins ? this.firstSlot(level) : slotOf(data.next, level);
			const at = level * SLOTS + slot;

			if (slot >= 0 && data.counts[at] && (!data.mins || data.mins[at] <= data.next))
				return { level, slot };
		}
		return null;
	}

	texts(next) {
		const data = this.data, texts = [];

		for (let level = 0; level < LEVELS; level++) {
			const first = this.firstSlot(level);
			let count = 0, right = "";

			for (let slot = 0; slot < SLOTS; slot++)
				count += data.counts[level * SLOTS + slot];
			if (count)
				right = plural(count, "event");
			if (count && data.mins)
				right += `, first in ${spanText(Math.max(0,
					data.mins[level * SLOTS + first] - data.now) * data.tickNs)}`;
			texts.push({ count, right, next: next?.level === level,
				span: spanText(slotTicks(level) * data.tickNs) });
		}
		return texts;
	}

	drawSlot(context, level, slot) {
		const { data, palette, layout } = this;
		const at = level * SLOTS + slot, count = data.counts[at];

		context.fillStyle = count ? palette.fill(count) : palette.cell;
		if (this.rings) {
			layout.path(context, level, slot);
			context.fill();
		} else {
			const cell = layout.cell(level, slot);
			context.fillRect(cell.x, cell.y, cell.width, cell.height);
		}
		if (!count || !level)
			return;
		if (data.flags[at] & (URGENT | CROWDED)) {
			context.strokeStyle = data.flags[at] & URGENT ? palette.urgent : palette.crowd;
			context.lineWidth = 2;
			layout.outline(context, level, slot, 1);
			context.stroke();
		}
		if (data.mins) {
			context.fillStyle = palette.ink;
			layout.markMin(context, level, slot,
				data.mins[at] / slotTicks(level) % 1);
		}
	}

	drawMarks(context, next) {
		const { data, palette, layout } = this;

		context.fillStyle = palette.ink;
		for (let level = 0; level < LEVELS; level++)
			layout.markPosition(context, level, slotOf(data.now, level));
		if (next) {
			context.strokeStyle = palette.accent;
			context.lineWidth = 2;
			layout.outline(context, next.level, next.slot, 3);
			context.stroke();
		}
		for (const [place, dashed] of [[this.hovered, false], [this.selected, true]]) {
			if (!place)
				continue;
			context.strokeStyle = palette.ink;
			context.lineWidth = 1.5;
			context.setLineDash(dashed ? [3, 2] : []);
			layout.outline(context, place.level, place.slot, 2.5);
			context.stroke();
			context.setLineDash([]);
		}
	}

	drawPulses(context, now) {
		for (const [place, start] of this.pulses) {
			const part = (now - start) / PULSE_MS;

			if (part >= 1) {
				this.pulses.delete(place);
				continue;
			}
			context.globalAlpha = 1 - Math.max(part, 0);
			context.strokeStyle = this.palette.accent;
			context.lineWidth = 2;
			this.layout.outline(context, Math.floor(place / SLOTS), place % SLOTS,
				2 + 10 * Math.max(part, 0));
			context.stroke();
		}
		context.globalAlpha = 1;
	}

	drawDots(context, now) {
		const { palette } = this;

		this.dots = this.dots.filter((dot) => now - dot.start < dot.length);
		context.lineCap = "round";
		for (const dot of this.dots) {
			const part = Math.max(0, (now - dot.start) / dot.length);
			const radius = Math.min((this.dots.length < FEW_DOTS ? 3.4 : 2.4) +
				Math.log2(dot.count) * 0.45, 6);
			const [x, y] = along(dot.points, part);
			const [tailX, tailY] = along(dot.points, Math.max(0, part - 0.07));

			context.globalAlpha = dot.out && part > 0.85 ? (1 - part) / 0.15 : 1;
			context.strokeStyle = palette.accent;
			context.fillStyle = palette.accent;
			if (this.dots.length < FEW_DOTS) {
				context.lineWidth = radius * 0.6;
				context.beginPath();
				context.moveTo(tailX, tailY);
				context.lineTo(x, y);
				context.stroke();
			}
			context.strokeStyle = palette.panel;
			context.lineWidth = 1;
			context.beginPath();
			context.arc(x, y, radius, 0, 2 * Math.PI);
			context.fill();
			context.stroke();
		}
		context.globalAlpha = 1;
	}

	draw(now) {
		const { layout, palette } = this;
		const context = contextOf(this.canvas, layout.width, layout.height);

		if (!this.data)
			return;
		const next = this.nextSlot();
		for (let level = 0; level < LEVELS; level++)
			for (let slot = 0; slot < SLOTS; slot++)
				this.drawSlot(context, level, slot);
		this.drawMarks(context, next);
		layout.labels(context, palette, this.texts(next));
		this.drawPulses(context, now);
		this.drawDots(context, now);
	}
}

// Cells in rows, for the two models.
function drawCells(canvas, palette, rows, columns, label) {
	const width = canvas.clientWidth || 300;
	const left = label ? 58 : 0;
	const pitch = (width - left) / columns;
	const gap = pitch > 7 ? 1.5 : 0.75;
	const rowPitch = label ? 15 : 12;
	const context = contextOf(canvas, width, rows.length * rowPitch + 6);

	context.textBaseline = "middle";
	context.textAlign = "right";
	context.font = `11px ${palette.font}`;
	rows.forEach((row, i) => {
		const y = i * rowPitch + 5;

		for (let column = 0; column < columns; column++) {
			const x = left + column * pitch;

			context.fillStyle = row.counts[column] ? palette.fill(row.counts[column]) : palette.cell;
			context.fillRect(x, y, pitch - gap, rowPitch - 5);
			if (row.queued?.[column]) {
				context.fillStyle = palette.accent;
				context.fillRect(x, y + rowPitch - 4.5, pitch - gap, 1.5);
			}
		}
		if (row.position >= 0) {
			context.fillStyle = palette.ink;
			context.fillRect(left + row.position * pitch, y - 2.5, pitch - gap, 1.5);
		}
		if (label) {
			context.fillStyle = palette.dim;
			context.fillText(row.label, left - 7, y + (rowPitch - 5) / 2);
		}
	});
}

function drawKafka(canvas, palette, kafka) {
	const levels = kafka.levels().map((level) => ({ ...level, label: spanText(level.tickNs) }));

	while (levels.length < 7) {
		const above = levels.at(-1).tickNs * KAFKA_SIZE;
		levels.push({ tickNs: above, label: spanText(above), counts: [], position: -1 });
	}
	drawCells(canvas, palette, levels.reverse(), KAFKA_SIZE, true);
}

function drawHashed(canvas, palette, hashed) {
	const rows = [];

	for (let first = 0; first < HASHED_SIZE; first += SLOTS) {
		const position = hashed.tick % HASHED_SIZE - first;

		rows.push({
			counts: hashed.counts.subarray(first, first + SLOTS),
			position: hashed.startNs !== null && position < SLOTS ? position : -1,
		});
	}
	drawCells(canvas, palette, rows, SLOTS, false);
}
