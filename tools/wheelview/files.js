// SPDX-License-Identifier: GPL-2.0
// Reads what "twheelctl show --json" and "twheelctl record" write.
//
// Both are lines of JSON. show writes a line for each wheel. record writes a line "start", one
// for each wheel each time that it looks, and lines for trace events between them:
//
//	{"type":"start","version":1,"time":"2026-11-26T12:00:00Z","interval_s":1,"trace":true}
//	{"type":"wheel","at_s":0.000021,"cpu":0,"clock":"monotonic","kind":"events",...}
//	{"type":"event","at_s":0.31,"event":"due","cpu":0,...}
//	{"type":"end","at_s":60.2,"samples":60}
//
// A wheel is what show prints of it; record leaves out levels without events.
//
// Everything is checked before anything is shown: a file may come from anywhere.

const FILE_BYTES = 256 * 1024 * 1024;
const RECORD_VERSION = 1;

class FileError extends Error {
}

// What of a text is shown in a message.
function excerpt(value) {
	const text = typeof value === "string" ? value : JSON.stringify(value) ?? "nothing";
	return text.length > 40 ? text.slice(0, 40) + "…" : text;
}

class LineReader {
	constructor(number) {
		this.number = number;
	}

	fail(message) {
		throw new FileError(`Line ${this.number}: ${message}`);
	}

	parse(text) {
		let value;

		try {
			value = JSON.parse(text);
		} catch {
			this.fail(`“${excerpt(text)}” is not JSON. This page opens what ` +
				"twheelctl show --json and twheelctl record write.");
		}
		if (value === null || typeof value !== "object" || Array.isArray(value))
			this.fail(`“${excerpt(text)}” is not an object.`);
		return value;
	}

	numeric(object, name, least = 0, most = 2 ** 63) {
		const value = object[name];

		if (typeof value !== "number" || !(value >= least && value <= most))
			this.fail(`“${name}” is ${excerpt(value)}, which is not a number ` +
				`from ${least} to ${most}.`);
		return value;
	}

	whole(object, name, least = 0, most = 2 ** 63) {
		if (!Number.isInteger(this.numeric(object, name, least, most)))
			this.fail(`“${name}” is ${excerpt(object[name])}, which is not a whole number.`);
		return object[name];
	}

	word(object, name) {
		const value = object[name];

		if (typeof value !== "string" || !/^[a-z_]{1,15}$/.test(value))
			this.fail(`“${name}” is ${excerpt(value)}, which is not a short word.`);
		return value;
	}

	numbers(object, name, nr) {
		const value = object[name];

		if (!Array.isArray(value) || value.length !== nr ||
		    !value.every((item) => Number.isInteger(item) && item >= 0))
			this.fail(`“${name}” is not a list of ${nr} whole numbers.`);
		return value;
	}

	bits(object, name) {
		const value = object[name];

		if (typeof value !== "string" || !/^[0-9a-f]{16}$/.test(value))
			this.fail(`“${name}” is ${excerpt(value)}, which is not 16 hexadecimal digits.`);
		return value;
	}
}

function readLevel(reader, value) {
	if (value === null || typeof value !== "object")
		reader.fail("“levels” has something that is not a level.");
	return {
		level: reader.whole(value, "level", 0, LEVELS - 1),
		counts: reader.numbers(value, "count", SLOTS),
		crowded: reader.bits(value, "crowded"),
	};
}

// The slots of a wheel, as the engine has them. They are made when they are shown: a recording
// has many wheels.
function slotsOf(wheel) {
	const counts = new Uint32Array(LEVELS * SLOTS), flags = new Uint8Array(LEVELS * SLOTS);

	for (const { level, counts: own, crowded } of wheel.levels) {
		for (let slot = 0; slot < SLOTS; slot++) {
			const digit = parseInt(crowded[15 - (slot >> 2)], 16);

			counts[level * SLOTS + slot] = own[slot];
			// debugfs does not tell which are urgent: those of more than 256 events.
			flags[level * SLOTS + slot] = (digit >> (slot & 3) & 1 ? CROWDED : 0) |
				(own[slot] > 256 ? URGENT : 0);
		}
	}
	return { counts, flags, mins: null };
}

function readWheel(reader, value) {
	const wheel = {
		cpu: reader.whole(value, "cpu", 0, 65535),
		clock: reader.word(value, "clock"),
		kind: reader.word(value, "kind"),
		online: value.online !== false,
		tickNs: reader.whole(value, "tick_ns", 1, 1e9),
		clk: reader.whole(value, "clk"),
		now: reader.whole(value, "now"),
		next: value.next === null ? -1 : reader.whole(value, "next"),
		armed: reader.whole(value, "armed"),
		interrupts: reader.whole(value, "interrupts"),
		expired: reader.whole(value, "expired"),
		cascaded: reader.whole(value, "cascaded"),
		postponed: reader.whole(value, "postponed"),
		lateness: reader.numbers(value, "lateness", 24),
	};

	if (!Array.isArray(value.levels) || value.levels.length > LEVELS)
		reader.fail("“levels” is not a list of levels.");
	wheel.levels = value.levels.map((level) => readLevel(reader, level));
	wheel.name = `CPU ${wheel.cpu}, ${wheel.clock}, ${wheel.kind}`;
	return wheel;
}

function readEvent(reader, value) {
	return {
		atS: reader.numeric(value, "at_s", 0, 1e9),
		event: reader.word(value, "event"),
		name: `CPU ${reader.whole(value, "cpu", 0, 65535)}, ` +
			`${reader.word(value, "clock")}, ${reader.word(value, "kind")}`,
	};
}

// A sample ends when a wheel comes that it has already, or when the time differs.
class Recording {
	constructor(fileName) {
		this.fileName = fileName;
		this.frames = [];
		this.events = [];
		this.lost = 0;
		this.time = null;
		this.note = "";
	}

	addWheel(atS, wheel) {
		let frame = this.frames.at(-1);

		if (!frame || frame.atS !== atS || frame.wheels.has(wheel.name)) {
			if (frame && atS < frame.atS)
				return false;
			frame = { atS, wheels: new Map() };
			this.frames.push(frame);
		}
		frame.wheels.set(wheel.name, wheel);
		return true;
	}

	names() {
		const names = new Set();

		for (const frame of this.frames)
			for (const name of frame.wheels.keys())
				names.add(name);
		return [...names];
	}
}

function readStart(reader, value, recording) {
	if (reader.whole(value, "version") !== RECORD_VERSION)
		reader.fail(`this is version ${value.version} of a recording; this page knows ` +
			`version ${RECORD_VERSION}. Use the page of the same release as twheelctl.`);
	if (typeof value.time === "string")
		recording.time = value.time.slice(0, 40);
}

function readLine(reader, value, recording) {
	switch (value.type) {
	case undefined:
		recording.addWheel(0, readWheel(reader, value));
		break;
	case "wheel":
		if (!recording.addWheel(reader.numeric(value, "at_s", 0, 1e9),
			readWheel(reader, value)))
			reader.fail("“at_s” is less than that of the wheel before.");
		break;
	case "event":
		recording.events.push(readEvent(reader, value));
		break;
	case "lost":
		recording.lost += reader.whole(value, "events");
		break;
	case "start":
		readStart(reader, value, recording);
		break;
	case "end":
		break;
	default:
		reader.fail(`“type” is ${excerpt(value.type)}, which this page does not know.`);
	}
}

// The recording in a text. A last line without its end that is no JSON was cut off.
function readRecording(fileName, text) {
	const recording = new Recording(fileName);
	const lines = text.replace(/^\ufeff/, "").split("\n");

	for (let i = 0; i < lines.length; i++) {
		const line = lines[i].trim(), reader = new LineReader(i + 1);
		let value;

		if (!line)
			continue;
		try {
			value = reader.parse(line);
		} catch (error) {
			if (i !== lines.length - 1 || !recording.frames.length)
				throw error;
			recording.note = "The last line is cut off, and was left out.";
			break;
		}
		readLine(reader, value, recording);
	}
	if (!recording.frames.length)
		throw new FileError("The file has no wheel. If twheelctl show printed none, " +
			"no wheel has been used yet on that machine.");
	return recording;
}

async function openFile(file) {
	if (file.size > FILE_BYTES)
		throw new FileError(`The file has ${countText(file.size / 1e6)} MB; this page opens ` +
			`up to ${countText(FILE_BYTES / 1e6)} MB. Record fewer samples: --interval, --count.`);
	return readRecording(file.name, await file.text());
}
