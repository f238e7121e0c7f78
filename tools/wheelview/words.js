// SPDX-License-Identifier: GPL-2.0
// Numbers and times as text.

const UNITS = [
	["y", 365.25 * 86400e9], ["d", 86400e9], ["h", 3600e9], ["min", 60e9], ["s", 1e9],
	["ms", 1e6], ["µs", 1e3], ["ns", 1],
];

// What a person may type after a number.
const TYPED_UNITS = {
	ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, m: 60e9, min: 60e9, h: 3600e9, d: 86400e9,
	w: 7 * 86400e9, y: 365.25 * 86400e9,
};

// Whole numbers with narrow spaces.
function countText(number) {
	return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

// Three significant digits: 65.5 µs, 2.15 s, 10 d.
function spanText(ns) {
	if (ns === 0)
		return "0";
	if (ns < 0)
		return "−" + spanText(-ns);
	const [unit, size] = UNITS.find(([, size]) => ns >= size * 0.9995) ?? UNITS.at(-1);
	const value = ns / size;

	if (value >= 1e6)
		return `${value.toExponential(1).replace("e+", " × 10^")} ${unit}`;
	return `${value >= 100 ? countText(value) : Number(value.toPrecision(3))} ${unit}`;
}

// Two units for what is longer than a minute: 9 d 23 h.
function longSpanText(ns) {
	const at = UNITS.findIndex(([, size]) => ns >= size);

	if (at < 0 || at >= 4 || ns >= 1000 * UNITS[0][1])
		return spanText(ns);
	const [unit, size] = UNITS[at], [lower, lowerSize] = UNITS[at + 1];
	const first = Math.floor(ns / size);
	const rest = Math.floor((ns - first * size) / lowerSize);

	return rest ? `${countText(first)} ${unit} ${rest} ${lower}` : `${countText(first)} ${unit}`;
}

// A time since the beginning: 9 d 23:59:59.934.
function timeText(ns) {
	const two = (number) => String(number).padStart(2, "0");
	let ms = Math.floor(ns / 1e6);
	const days = Math.floor(ms / 86400000);

	ms -= days * 86400000;
	const time = `${two(Math.floor(ms / 3600000))}:${two(Math.floor(ms / 60000) % 60)}:` +
		`${two(Math.floor(ms / 1000) % 60)}.${String(ms % 1000).padStart(3, "0")}`;
	return days ? `${countText(days)} d ${time}` : time;
}

// "1 event", "2 events".
function plural(number, word) {
	return `${countText(number)} ${word}${number === 1 ? "" : "s"}`;
}

// What was typed, "1.5 h", in nanoseconds. Throws a message for people.
function parseSpan(text, name) {
	const match = /^\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zµ]*)\s*$/i.exec(text);
	const unit = match && match[2].toLowerCase();

	if (!match || (unit && !(unit in TYPED_UNITS)))
		throw new Error(`${name}: “${text}” is not a time such as 10 d, 1.5 h, 30 s or 20 ms.`);
	if (!unit && Number(match[1]) !== 0)
		throw new Error(`${name}: “${text}” lacks its unit: ms, s, min, h or d.`);
	const ns = Number(match[1]) * (TYPED_UNITS[unit] ?? 1);
	if (ns > 100 * 365.25 * 86400e9)
		throw new Error(`${name}: this page goes no further than 100 years.`);
	return ns;
}

function parseCount(text, name, most) {
	const number = Number(text);

	if (!/^\s*\d+\s*$/.test(text) || number < 1 || number > most)
		throw new Error(`${name}: “${text}” is not a whole number from 1 to ${countText(most)}.`);
	return number;
}
