// SPDX-License-Identifier: GPL-2.0
// The page for people. It shows frames, which come as events; asks for lists of jobs; and sends
// actions. What others have sent is only ever put in as text.
"use strict";

const BOARD_ROWS = 50,
	JOB_ROWS = 50,
	REFRESH_MS = 3000,
	TOAST_MS = 5000,
	AGAIN_MS = 2000;
const STATES = ["ready", "delayed", "reserved", "buried"];
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

let frame = null,
	before = null; // the last two frames
let view = null; // what is shown: {update(), refresh(), query()}
let stream = null,
	againTimer = 0;
let token = sessionStorage.getItem("token") || "";
const boards = new Map(); // by name: {sort, filter, from}

// --- making elements ---------------------------------------------------------------------

function set(node, properties) {
	for (const [name, value] of Object.entries(properties)) {
		if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
		else if (value === true || value === false) node.toggleAttribute(name, value);
		else if (value !== null && value !== undefined) node.setAttribute(name, value);
	}
	return node;
}

function el(tag, properties = {}, ...children) {
	const node = set(document.createElement(tag), properties);
	node.append(...children.flat().filter((child) => child !== null));
	return node;
}

function svg(tag, properties = {}, ...children) {
	const node = set(document.createElementNS(SVG, tag), properties);
	node.append(...children);
	return node;
}

// Change a text only if it is another one: a selection and a screen reader stay calm.
function write(node, text) {
	if (node.textContent !== text) node.textContent = text;
}

// Characters that are not seen, or change the order of what is: shown by their number.
const ODD =
	/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

function visible(text, keepLines = false) {
	const parts = [];
	let at = 0;
	const odd = keepLines ? ODD : new RegExp(ODD.source + "|[\\t\\n]", "gu");
	for (const match of text.matchAll(odd)) {
		parts.push(text.slice(at, match.index));
		const number = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
		parts.push(
			el(
				"span",
				{class: "odd", title: "a character that is not seen"},
				"U+" + number,
			),
		);
		at = match.index + match[0].length;
	}
	parts.push(text.slice(at));
	return parts.filter((part) => part !== "");
}

// --- texts of values ---------------------------------------------------------------------

const grouped = new Intl.NumberFormat("en");
const count = (n) => grouped.format(n);

const capitalised = (word) => word[0].toUpperCase() + word.slice(1);

function rate(n) {
	return n === 0 ? "0" : n < 9.95 ? n.toFixed(1) : count(Math.round(n));
}

function seconds(s) {
	s = Math.max(0, Math.floor(s));
	if (s < 60) return `${s} s`;
	const [large, small, name, smallName] =
		s < 3600
			? [60, 1, "m", "s"]
			: s < 86400
				? [3600, 60, "h", "m"]
				: [86400, 3600, "d", "h"];
	const rest = Math.floor((s % large) / small);
	return `${Math.floor(s / large)} ${name}` + (rest ? ` ${rest} ${smallName}` : "");
}

function milliseconds(ms) {
	return ms < 1000
		? `${ms} ms`
		: ms % 1000 && ms < 60000
			? `${ms / 1000} s`
			: seconds(ms / 1000);
}

function micro(us) {
	if (us < 1000) return `${us} \u00b5s`;
	if (us < 1e6) return `${us < 1e4 ? (us / 1e3).toFixed(1) : Math.round(us / 1e3)} ms`;
	return us < 6e7 ? `${(us / 1e6).toFixed(us < 1e7 ? 1 : 0)} s` : seconds(us / 1e6);
}

function bytes(n) {
	const units = ["B", "kB", "MB", "GB", "TB"];
	let i = 0;
	for (; n >= 999.5 && i < units.length - 1; i++) n /= 1000;
	return `${i && n < 9.95 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

function clockTime(ms) {
	return ms ? new Date(ms).toLocaleString("sv-SE") : "";
}

function fromNow(ms, now) {
	const s = (ms - now) / 1000;
	return s >= 0 ? `in ${seconds(s)}` : `${seconds(-s)} ago`;
}

// --- asking and acting -------------------------------------------------------------------

function address(path, parameters = {}) {
	const given = Object.entries(parameters).filter(
		([, value]) => value !== "" && value !== null,
	);
	const query = new URLSearchParams(given).toString();
	return `api/${path}${query ? "?" + query : ""}`;
}

class Refused extends Error {
	constructor(status, message) {
		super(message);
		this.status = status;
	}
}

async function request(method, path, parameters) {
	const headers = token ? {Authorization: `Bearer ${token}`} : {};
	let response, answer;
	try {
		response = await fetch(address(path, parameters), {
			method,
			headers,
			cache: "no-store",
		});
		answer = await response.json();
	} catch {
		throw new Refused(0, "There is no answer.");
	}
	if (!response.ok)
		throw new Refused(
			response.status,
			answer.error || answer.reply || `status ${response.status}`,
		);
	return answer;
}

const ask = (path, parameters) => request("GET", path, parameters);

let toastTimer = 0;

function say(text, wrong = false) {
	const toast = $("said");
	toast.replaceChildren(...visible(text));
	toast.classList.toggle("wrong", wrong);
	toast.hidden = false;
	clearTimeout(toastTimer);
	toastTimer = setTimeout(() => {
		toast.hidden = true;
	}, TOAST_MS);
}

function setToken(text) {
	token = text;
	if (text) sessionStorage.setItem("token", text);
	else sessionStorage.removeItem("token");
	showLock();
}

function showLock() {
	const may = frame && frame.actions;
	$("lock").hidden = !may;
	$("readonly").hidden = !frame || may;
	write($("lock"), token ? "Lock" : "Unlock");
	set($("lock"), {title: token ? "Forget the token" : "Enter the token, for actions"});
}

// Do an action; without the token, ask for it first. Returns the answer, or null.
async function act(path, parameters) {
	if (!token && !(await unlock())) return null;
	try {
		const answer = await request("POST", path, parameters);
		say(answer.reply);
		return answer;
	} catch (error) {
		if (error.status === 401) setToken("");
		say(error.message, true);
		return null;
	} finally {
		if (view && view.refresh) view.refresh();
	}
}

// --- dialogs -----------------------------------------------------------------------------

// Show a dialog; what it comes to is what close() is given, or null for Escape. After it, the
// focus is where it was.
function openDialog(title, make, narrow = true) {
	const dialog = $("dialog"),
		last = document.activeElement;
	let result = null;
	const close = (value) => {
		result = value;
		dialog.close();
	};
	const head = el(
		"div",
		{class: "dialog-head"},
		el("h2", {id: "dialog-title"}, ...visible(title)),
		el(
			"button",
			{type: "button", class: "small quiet", onclick: () => close(null)},
			"Close",
		),
	);
	dialog.classList.toggle("narrow", narrow);
	dialog.replaceChildren(head, make(close));
	dialog.showModal();
	const first = dialog.querySelector("[autofocus]");
	if (first) first.focus();
	return new Promise((resolve) => {
		dialog.addEventListener(
			"close",
			() => {
				dialog.replaceChildren();
				if (last && last.isConnected) last.focus();
				resolve(result);
			},
			{once: true},
		);
	});
}

function unlock() {
	return openDialog("Unlock actions", (close) => {
		const input = el("input", {
			type: "password",
			autocomplete: "off",
			autofocus: true,
			required: true,
			id: "token",
		});
		const wrong = el("p", {class: "wrong-text", role: "alert", hidden: true});
		return el(
			"form",
			{
				onsubmit: async (event) => {
					event.preventDefault();
					setToken(input.value.trim());
					try {
						await request("POST", "token");
						close(true);
					} catch (error) {
						setToken("");
						wrong.textContent = error.message;
						wrong.hidden = false;
						input.select();
					}
				},
			},
			el(
				"p",
				{class: "muted"},
				"The token is in the file of --http-token-file. It stays in this tab ",
				"until you lock actions, or close the tab.",
			),
			el("label", {}, "Token", input),
			wrong,
			el(
				"div",
				{class: "buttons"},
				el("button", {type: "submit", class: "main"}, "Unlock"),
			),
		);
	});
}

// Ask before something that cannot be undone. With @word, it has to be typed.
function confirmAction(title, sentence, button, word = "") {
	return openDialog(title, (close) => {
		const submit = el(
			"button",
			{
				type: "submit",
				class: "danger",
				disabled: Boolean(word),
				autofocus: !word,
			},
			button,
		);
		const input = word
			? el("input", {
					autocomplete: "off",
					spellcheck: "false",
					autofocus: true,
					id: "word",
					oninput: () => {
						submit.disabled = input.value !== word;
					},
				})
			: null;
		return el(
			"form",
			{
				onsubmit: (event) => {
					event.preventDefault();
					close(true);
				},
			},
			el("p", {}, ...visible(sentence)),
			input
				? el(
						"label",
						{},
						"To go on, type ",
						el("b", {class: "mono"}, word),
						input,
					)
				: null,
			el("div", {class: "buttons"}, submit),
		);
	});
}

// A form of a few fields: [{name, label, value, ...attributes}]. Returns their values, or null.
function askFields(title, sentence, fields, button, extra = null) {
	return openDialog(title, (close) => {
		const inputs = fields.map(({label, ...attributes}, i) =>
			el("input", {
				autocomplete: "off",
				spellcheck: "false",
				autofocus: i === 0,
				id: `field-${attributes.name}`,
				...attributes,
			}),
		);
		return el(
			"form",
			{
				onsubmit: (event) => {
					event.preventDefault();
					close(
						Object.fromEntries(
							inputs.map((input) => [
								input.name,
								input.value.trim(),
							]),
						),
					);
				},
			},
			el("p", {class: "muted"}, sentence),
			el(
				"div",
				{class: "fields"},
				fields.map((field, i) => el("label", {}, field.label, inputs[i])),
			),
			el(
				"div",
				{class: "buttons"},
				el("button", {type: "submit", class: "main"}, button),
				extra
					? el(
							"button",
							{
								type: "button",
								onclick: () => close(extra.value),
							},
							extra.label,
						)
					: null,
			),
		);
	});
}

// --- charts ------------------------------------------------------------------------------

// The parts of a path through values, with gaps where there is none.
function linePath(values, width, height, top) {
	const step = width / Math.max(1, values.length - 1);
	let path = "",
		pen = false;
	values.forEach((value, i) => {
		if (value === null) {
			pen = false;
			return;
		}
		const y = height - 1 - (height - 3) * (top ? value / top : 0);
		path += `${pen ? "L" : "M"}${(i * step).toFixed(1)} ${y.toFixed(1)}`;
		// A value alone is a dot.
		if (!pen && (values[i + 1] === null || i + 1 === values.length)) path += "h.1";
		pen = true;
	});
	return path;
}

const largest = (values) => Math.max(0, ...values.filter((value) => value !== null));

class Spark {
	constructor(title) {
		this.path = svg("path", {class: "line"});
		this.node = svg(
			"svg",
			{
				class: "spark",
				viewBox: "0 0 120 22",
				preserveAspectRatio: "none",
				role: "img",
			},
			svg("path", {class: "axis", d: "M0 21.5H120"}),
			this.path,
		);
		this.title = title;
	}

	update(values) {
		const top = largest(values),
			known = values.filter((value) => value !== null);
		this.path.setAttribute("d", top ? linePath(values, 120, 22, top) : "");
		this.node.setAttribute(
			"aria-label",
			`${this.title} in the last ten minutes: at most ${top}, now ${known.at(-1) ?? 0}`,
		);
	}
}

// A chart of the last ten minutes. @lines: [{key, title, scale}].
class Chart {
	constructor(title, lines, unit) {
		this.lines = lines;
		this.unit = unit;
		this.paths = lines.map((line) => svg("path", {class: `line ${line.key}`}));
		this.area = svg("path", {class: "area"});
		this.top = svg("text", {x: 0, y: 11});
		this.svg = svg(
			"svg",
			{viewBox: "0 0 600 150", role: "img"},
			svg("path", {class: "axis", d: "M0 16H600M0 73H600M0 130.5H600"}),
			this.area,
			...this.paths,
			this.top,
			svg("text", {x: 0, y: 146}, "10 minutes ago"),
			svg("text", {"x": 600, "y": 146, "text-anchor": "end"}, "now"),
		);
		this.legend = el("p", {class: "points legend"});
		this.node = el(
			"div",
			{class: "panel chart"},
			el("h3", {}, title),
			this.svg,
			this.legend,
		);
	}

	update(history) {
		const series = this.lines.map((line) =>
			(history?.[line.key] ?? []).map((value) =>
				value === null ? null : value / line.scale,
			),
		);
		const top = Math.max(...series.map(largest), 0);
		// linePath() draws from 1 to its height less 1: move that to between 16 and 130.
		series.forEach((values, i) => {
			this.paths[i].setAttribute("transform", "translate(0 14)");
			this.paths[i].setAttribute("d", linePath(values, 600, 117, top));
		});
		write(
			this.top,
			`${top < 10 ? +top.toFixed(1) : count(Math.round(top))} ${this.unit}`,
		);
		this.svg.setAttribute(
			"aria-label",
			this.lines
				.map(
					(line, i) =>
						`${line.title}: at most ${largest(series[i])} in the last ten minutes`,
				)
				.join("; "),
		);
		this.legend.replaceChildren(
			...this.lines.map((line, i) => {
				const now = series[i].filter((value) => value !== null).at(-1) ?? 0;
				return el(
					"span",
					{},
					el("i", {class: line.key}),
					`${line.title} `,
					el("b", {}, rate(now)),
				);
			}),
		);
	}
}

// Lateness: bucket n has what is below 2^n us.
class Histogram {
	constructor(name, title) {
		this.bars = svg("g");
		this.labels = svg("g");
		this.svg = svg(
			"svg",
			{viewBox: "0 0 600 118", role: "img"},
			this.bars,
			this.labels,
		);
		this.points = el("p", {class: "points"});
		this.node = el(
			"div",
			{class: `panel chart ${name}`},
			el("h3", {}, title),
			this.svg,
			this.points,
		);
	}

	update(lateness) {
		const counts = lateness.counts,
			used = counts.map((n, i) => (n ? i : -1)).filter((i) => i >= 0);
		const first = Math.max(0, Math.min(used[0] ?? 4, 20) - 1),
			last = Math.min(31, Math.max((used.at(-1) ?? 0) + 1, first + 13));
		const width = 600 / (last - first + 1),
			top = Math.log10(1 + Math.max(...counts, 1));
		const bars = [],
			labels = [svg("path", {class: "axis", d: "M0 100.5H600"})];
		for (let i = first; i <= last; i++) {
			const x = (i - first) * width,
				height = (98 * Math.log10(1 + counts[i])) / top;
			const below = i === 31 ? "longer" : `below ${micro(2 ** i)}`;
			bars.push(
				svg(
					"rect",
					{
						class: "bar",
						x: (x + 1).toFixed(1),
						y: (100 - height).toFixed(1),
						width: (width - 2).toFixed(1),
						height: height.toFixed(1),
					},
					svg("title", {}, `${below}: ${count(counts[i])}`),
				),
			);
			if ((i - first) % 2 === 0 && i < last)
				labels.push(
					svg(
						"text",
						{
							"x": (x + width).toFixed(1),
							"y": 114,
							"text-anchor": "middle",
						},
						micro(2 ** i),
					),
				);
		}
		this.bars.replaceChildren(...bars);
		this.labels.replaceChildren(...labels);
		const points = lateness.count
			? [
					["half below", lateness.p50_us],
					["99 %", lateness.p99_us],
					["99.9 %", lateness.p999_us],
					["longest", lateness.max_us],
				]
			: [];
		this.svg.setAttribute(
			"aria-label",
			points.length
				? points.map(([name, us]) => `${name} ${micro(us)}`).join(", ")
				: "no job yet",
		);
		this.svg.toggleAttribute("hidden", !points.length);
		if (!points.length) {
			this.points.replaceChildren("Nothing was due yet.");
			return;
		}
		this.points.replaceChildren(
			...points.map(([name, us]) =>
				el("span", {}, `${name} `, el("b", {}, micro(us))),
			),
			el("span", {}, `${count(lateness.count)} ${lateness.unit ?? "jobs"}`),
			el("span", {}, "(height: logarithm of the number)"),
		);
	}
}

// --- tiles -------------------------------------------------------------------------------

class Tiles {
	constructor() {
		this.tiles = new Map();
		this.node = el("dl", {"class": "panel tiles", "aria-label": "Numbers"});
	}

	text(tile) {
		const old = before && before.tiles.find((other) => other.key === tile.key);
		switch (tile.kind) {
			case "rate": {
				const s = before ? (frame.now_ms - before.now_ms) / 1000 : 0;
				return [
					s > 0
						? rate(Math.max(0, (tile.value - old.value) / s))
						: "\u2013",
					"a second",
				];
			}
			case "bytes":
				return [bytes(tile.value), ""];
			case "seconds":
				return [seconds(tile.value), ""];
			default:
				return [
					tile.value < 1e8
						? count(tile.value)
						: `${(tile.value / 1e6).toFixed(0)} M`,
					"",
				];
		}
	}

	update() {
		for (const tile of frame.tiles) {
			if (!this.tiles.has(tile.key)) {
				const value = el("span"),
					unit = el("small"),
					dd = el("dd", {}, value, " ", unit);
				this.tiles.set(tile.key, {value, unit, dd});
				this.node.append(
					el(
						"div",
						{"class": "tile", "data-key": tile.key},
						el("dt", {title: tile.title}, tile.title),
						dd,
					),
				);
			}
			const {value, unit, dd} = this.tiles.get(tile.key),
				[text, unitText] = this.text(tile);
			write(value, text);
			write(unit, unitText);
			dd.classList.toggle("bad", tile.kind === "bad" && tile.value > 0);
		}
	}
}

// --- boards: tubes, targets --------------------------------------------------------------

function boardView(name) {
	if (!boards.has(name)) boards.set(name, {sort: "", filter: "", from: 0});
	return boards.get(name);
}

// The arguments of a frame: which rows of each board.
function boardQuery() {
	const query = {};
	for (const [name, {sort, filter, from}] of boards) {
		query[`${name}.sort`] = sort;
		query[`${name}.filter`] = filter;
		query[`${name}.from`] = from || "";
		query[`${name}.count`] = BOARD_ROWS;
	}
	return query;
}

class Board {
	constructor(first, open) {
		this.view = boardView(first.name);
		this.name = first.name;
		this.open = open;
		this.line = first.line;
		this.rows = new Map();
		this.total = el("span", {class: "muted"});
		let timer = 0;
		this.filter = el("input", {
			"type": "search",
			"placeholder": "Filter by name",
			"aria-label": `Filter ${first.title.toLowerCase()} by name`,
			"value": this.view.filter,
			"class": "filter",
			"oninput": () => {
				clearTimeout(timer);
				timer = setTimeout(
					() =>
						this.look({
							filter: this.filter.value.trim(),
							from: 0,
						}),
					200,
				);
			},
		});
		this.heads = first.columns.map((column) =>
			el(
				"th",
				{scope: "col", class: "number"},
				el(
					"button",
					{
						type: "button",
						title: column.help,
						onclick: () =>
							this.look({sort: column.key, from: 0}),
					},
					column.title + (column.kind === "rate" ? "/s" : ""),
				),
			),
		);
		this.nameHead = el(
			"th",
			{scope: "col", class: "first"},
			el(
				"button",
				{
					type: "button",
					title: "In the order of names",
					onclick: () => this.look({sort: "", from: 0}),
				},
				"Name",
			),
		);
		this.body = el("tbody");
		this.empty = el("p", {class: "empty", hidden: true});
		this.back = el(
			"button",
			{
				type: "button",
				class: "small",
				onclick: () =>
					this.look({from: Math.max(0, this.view.from - BOARD_ROWS)}),
			},
			"Back",
		);
		this.more = el(
			"button",
			{
				type: "button",
				class: "small",
				onclick: () => this.look({from: this.view.from + BOARD_ROWS}),
			},
			"Next",
		);
		this.where = el("span", {class: "muted"});
		this.pager = el("div", {class: "pager"}, this.back, this.more, this.where);
		this.table = el(
			"table",
			{},
			el(
				"thead",
				{},
				el(
					"tr",
					{},
					this.nameHead,
					el("th", {scope: "col"}, `${first.line}, 10 minutes`),
					this.heads,
				),
			),
			this.body,
		);
		this.node = el(
			"section",
			{"data-board": first.name, "aria-label": first.title},
			el(
				"div",
				{class: "title"},
				el("h2", {}, first.title),
				this.total,
				el("span", {class: "space"}),
				this.filter,
			),
			el(
				"div",
				{class: "panel"},
				el("div", {class: "scroll"}, this.table),
				this.empty,
				this.pager,
			),
		);
	}

	look(change) {
		Object.assign(this.view, change);
		connect();
	}

	cellText(column, value, rateValue) {
		if (column.kind === "rate") return rate(rateValue);
		return column.kind === "seconds" ? (value ? seconds(value) : "0") : count(value);
	}

	makeRow(row, columns) {
		const name = this.open
			? el("a", {href: this.open(row.name), class: "name"}, row.name)
			: el("span", {class: "name"}, row.name);
		const spark = new Spark(this.line),
			cells = columns.map(() => el("td", {class: "number"}));
		return {
			spark,
			cells,
			node: el(
				"tr",
				{"data-name": row.name},
				el("th", {scope: "row", class: "first"}, name),
				el("td", {}, spark.node),
				cells,
			),
		};
	}

	updateRow(row, columns) {
		if (!this.rows.has(row.name)) this.rows.set(row.name, this.makeRow(row, columns));
		const known = this.rows.get(row.name);
		columns.forEach((column, i) => {
			const cell = known.cells[i],
				shown = column.kind === "rate" ? row.rates[i] : row.values[i];
			write(cell, this.cellText(column, row.values[i], row.rates[i]));
			cell.classList.toggle("zero", shown === 0);
			cell.classList.toggle("bad", column.bad && shown > 0);
		});
		known.spark.update(row.line);
		return known.node;
	}

	update(board) {
		const {columns} = board,
			order = board.rows.map((row) => this.updateRow(row, columns));
		if (
			order.length !== this.body.children.length ||
			order.some((node, i) => this.body.children[i] !== node)
		)
			keepFocus(() => this.body.replaceChildren(...order));
		for (const name of this.rows.keys())
			if (!board.rows.some((row) => row.name === name)) this.rows.delete(name);
		columns.forEach((column, i) =>
			set(this.heads[i], {
				"aria-sort": this.view.sort === column.key ? "descending" : "none",
			}),
		);
		set(this.nameHead, {"aria-sort": this.view.sort ? "none" : "ascending"});
		write(
			this.total,
			this.view.filter
				? `${count(board.matched)} of ${count(board.total)}`
				: count(board.total),
		);
		this.pager.hidden =
			board.matched <= BOARD_ROWS && !this.view.from && !board.left_out;
		this.back.disabled = !this.view.from;
		this.more.disabled = this.view.from + BOARD_ROWS >= board.matched;
		write(
			this.where,
			`${count(Math.min(board.matched, this.view.from + 1))} to ${count(Math.min(board.matched, this.view.from + board.rows.length))} of ${count(board.matched)}` +
				(board.left_out
					? `; ${count(board.left_out)} more are not shown, for lack of memory`
					: ""),
		);
		this.empty.hidden = board.rows.length > 0;
		write(
			this.empty,
			this.view.filter ? "No name has that in it." : "There are none yet.",
		);
	}
}

// Replace rows, and leave the focus on what has it.
function keepFocus(change) {
	const active = document.activeElement;
	change();
	if (active && active !== document.activeElement && active.isConnected)
		active.focus({preventScroll: true});
}

// --- the overview ------------------------------------------------------------------------

class Overview {
	constructor() {
		this.title = "";
		this.tiles = new Tiles();
		this.charts = el("div", {class: "charts"});
		this.histograms = new Map();
		this.boards = new Map();
		this.boardsNode = el("div");
		this.node = [
			el("section", {"aria-label": "In all"}, this.tiles.node),
			this.boardsNode,
			el(
				"section",
				{},
				el(
					"div",
					{class: "title"},
					el("h2", {}, "Lateness"),
					el("span", {class: "muted"}, "since the start"),
				),
				this.charts,
			),
		];
	}

	query() {
		return boardQuery();
	}

	update() {
		this.tiles.update();
		for (const board of frame.boards) {
			if (!this.boards.has(board.name)) {
				const open =
					frame.product === "twheelq"
						? (name) => `#/tube/${encodeURIComponent(name)}`
						: null;
				this.boards.set(board.name, new Board(board, open));
				this.boardsNode.append(this.boards.get(board.name).node);
			}
			this.boards.get(board.name).update(board);
		}
		for (const lateness of frame.lateness) {
			if (!this.histograms.has(lateness.name)) {
				this.histograms.set(
					lateness.name,
					new Histogram(lateness.name, lateness.title),
				);
				this.charts.append(this.histograms.get(lateness.name).node);
			}
			this.histograms.get(lateness.name).update(lateness);
		}
	}
}

// --- a tube ------------------------------------------------------------------------------

const JOB_COLUMNS = {
	due: {
		title: "Due",
		number: true,
		text: (job, now) => (job.due_ms ? fromNow(job.due_ms, now) : ""),
		help: (job) => clockTime(job.due_ms),
	},
	left: {
		title: "Time left",
		number: true,
		text: (job, now) => (job.due_ms ? seconds((job.due_ms - now) / 1000) : ""),
		help: (job) => clockTime(job.due_ms),
	},
	died: {
		title: "Died",
		number: true,
		text: (job, now) => (job.died_ms ? fromNow(job.died_ms, now) : ""),
		help: (job) => clockTime(job.died_ms),
	},
	pri: {title: "Priority", number: true, text: (job) => count(job.pri)},
	age: {title: "Age", number: true, text: (job) => seconds(job.age_s)},
	attempts: {title: "Attempts", number: true, text: (job) => count(job.attempts)},
	bytes: {title: "Body", number: true, text: (job) => bytes(job.bytes)},
	origin: {title: "From", text: (job) => job.origin},
	key: {title: "Key", text: (job) => job.key},
	reason: {title: "Reason", text: (job) => job.reason, help: (job) => job.reason},
};

const COLUMNS_OF = {
	ready: ["pri", "age", "attempts", "bytes", "key", "reason"],
	delayed: ["due", "pri", "age", "attempts", "bytes", "key", "reason"],
	reserved: ["left", "pri", "age", "attempts", "bytes", "key", "reason"],
	buried: ["died", "age", "attempts", "bytes", "origin", "key", "reason"],
};

// Jobs of a tube in a state, page by page.
class Jobs {
	constructor(tube, state) {
		this.tube = tube;
		this.state = state;
		this.cursors = [""];
		this.next = null;
		this.columns = COLUMNS_OF[state].map((key) => ({key, ...JOB_COLUMNS[key]}));
		this.rows = new Map();
		this.body = el("tbody");
		this.empty = el("p", {class: "empty", role: "status"}, "Reading\u2026");
		this.back = el(
			"button",
			{
				type: "button",
				class: "small",
				disabled: true,
				onclick: () => {
					if (this.cursors.length < 2) return;
					this.cursors.pop();
					this.next = null;
					this.refresh();
				},
			},
			"Back",
		);
		this.more = el(
			"button",
			{
				type: "button",
				class: "small",
				disabled: true,
				// What comes after that page is known when it is there.
				onclick: () => {
					if (this.next === null) return;
					this.cursors.push(this.next);
					this.next = null;
					this.refresh();
				},
			},
			"Next",
		);
		this.where = el("span", {class: "muted"});
		this.pager = el("div", {class: "pager"}, this.back, this.more, this.where);
		this.node = el(
			"div",
			{},
			el(
				"div",
				{class: "scroll"},
				el(
					"table",
					{},
					el("caption", {class: "skip"}, `${state} jobs`),
					el(
						"thead",
						{},
						el(
							"tr",
							{},
							el(
								"th",
								{scope: "col", class: "first"},
								"Job",
							),
							this.columns.map((column) =>
								el(
									"th",
									{
										scope: "col",
										class: column.number
											? "number"
											: "",
									},
									column.title,
								),
							),
						),
					),
					this.body,
				),
			),
			this.empty,
			this.pager,
		);
	}

	makeRow(job) {
		const cells = this.columns.map((column) =>
			el("td", {
				class: column.number
					? "number"
					: column.key === "reason"
						? "reason"
						: "",
			}),
		);
		const link = el(
			"button",
			{
				"type": "button",
				"class": "link",
				"aria-label": `Job ${job.id}`,
				"onclick": () => openJob(job.id),
			},
			job.id,
		);
		return {
			cells,
			texts: [],
			node: el(
				"tr",
				{"data-id": job.id},
				el("th", {scope: "row", class: "first"}, link),
				cells,
			),
		};
	}

	updateRow(job, now) {
		if (!this.rows.has(job.id)) this.rows.set(job.id, this.makeRow(job));
		const row = this.rows.get(job.id);
		this.columns.forEach((column, i) => {
			const text = column.text(job, now);
			if (row.texts[i] === text) return;
			row.texts[i] = text;
			row.cells[i].replaceChildren(...visible(text));
			if (column.help)
				set(row.cells[i], {title: column.help(job).slice(0, 1000)});
		});
		return row.node;
	}

	show(answer) {
		const order = answer.jobs.map((job) => this.updateRow(job, answer.now_ms));
		keepFocus(() => this.body.replaceChildren(...order));
		this.rows = new Map(answer.jobs.map((job) => [job.id, this.rows.get(job.id)]));
		this.next = answer.next;
		this.back.disabled = this.cursors.length < 2;
		this.more.disabled = this.next === null;
		this.pager.hidden = this.back.disabled && this.more.disabled;
		write(
			this.where,
			`page ${this.cursors.length}` +
				(answer.partial
					? "; there may be more: only part was looked through"
					: ""),
		);
		this.empty.hidden = answer.jobs.length > 0;
		write(this.empty, `No job is ${this.state} here.`);
	}

	async refresh() {
		const cursor = this.cursors.at(-1);
		if (this.busy) return;
		this.busy = true;
		try {
			const answer = await ask("jobs", {
				tube: this.tube,
				state: this.state,
				cursor,
				count: JOB_ROWS,
			});
			if (cursor === this.cursors.at(-1)) this.show(answer);
		} catch (error) {
			this.body.replaceChildren();
			this.pager.hidden = true;
			this.empty.hidden = false;
			this.empty.replaceChildren(
				error.message,
				...(error.status === 401 && frame && frame.actions
					? [
							" ",
							el(
								"button",
								{
									type: "button",
									class: "small",
									onclick: async () => {
										if (await unlock())
											this.refresh();
									},
								},
								"Enter the token",
							),
						]
					: []),
			);
		} finally {
			this.busy = false;
			if (cursor !== this.cursors.at(-1)) this.refresh();
		}
	}
}

// Dead jobs by reason.
class Reasons {
	constructor(tube) {
		this.tube = tube;
		this.body = el("tbody");
		this.note = el("span", {class: "muted"});
		this.more = el(
			"button",
			{
				type: "button",
				class: "small",
				hidden: true,
				onclick: () => this.count(this.next),
			},
			"Count more",
		);
		this.node = el(
			"section",
			{"data-reasons": "", "hidden": true},
			el(
				"div",
				{class: "title"},
				el("h2", {}, "Dead jobs by reason"),
				this.note,
				this.more,
			),
			el(
				"div",
				{class: "panel scroll"},
				el(
					"table",
					{},
					el(
						"thead",
						{},
						el(
							"tr",
							{},
							el(
								"th",
								{scope: "col", class: "number"},
								"Jobs",
							),
							el("th", {scope: "col"}, "Reason"),
							el(
								"th",
								{scope: "col", class: "number"},
								"Last",
							),
							el(
								"th",
								{scope: "col"},
								el(
									"span",
									{class: "skip"},
									"Actions",
								),
							),
						),
					),
					this.body,
				),
			),
		);
	}

	async count(cursor = "") {
		let answer;
		this.more.hidden = true;
		try {
			answer = await ask("reasons", {tube: this.tube, cursor});
		} catch {
			this.node.hidden = true;
			return;
		}
		if (!cursor) {
			this.found = new Map();
			this.looked = this.others = 0;
		}
		for (const reason of answer.reasons) {
			const known = this.found.get(reason.number) ?? {...reason, count: 0};
			this.found.set(reason.number, {
				...known,
				count: known.count + reason.count,
				died_ms: Math.max(known.died_ms, reason.died_ms),
			});
		}
		this.looked += answer.looked;
		this.others += answer.other_reasons;
		this.next = answer.next;
		this.show();
	}

	show() {
		const now = frame ? frame.now_ms : Date.now();
		const sorted = [...this.found.values()].sort((a, b) => b.count - a.count);
		keepFocus(() =>
			this.body.replaceChildren(
				...sorted.map((reason) =>
					el(
						"tr",
						{"data-reason": reason.number},
						el("td", {class: "number"}, count(reason.count)),
						el(
							"td",
							{
								class: "reason",
								title: reason.reason.slice(0, 1000),
							},
							reason.reason
								? visible(reason.reason)
								: el(
										"span",
										{class: "muted"},
										"no reason was given",
									),
						),
						el(
							"td",
							{
								class: "number",
								title: clockTime(reason.died_ms),
							},
							fromNow(reason.died_ms, now),
						),
						el(
							"td",
							{class: "number"},
							frame && frame.actions
								? el(
										"button",
										{
											type: "button",
											class: "small",
											onclick: () =>
												this.retry(
													reason,
												),
										},
										"Retry all",
									)
								: "",
						),
					),
				),
			),
		);
		this.node.hidden = !sorted.length;
		this.more.hidden = this.next === null;
		write(
			this.note,
			(this.next === null ? "" : `of the first ${count(this.looked)} jobs`) +
				(this.others ? `; ${count(this.others)} have other reasons` : ""),
		);
	}

	async retry(reason) {
		const sure = await confirmAction(
			"Retry dead jobs",
			`All dead jobs of ${this.tube} with this reason become ready in the tubes that they came from: ${reason.reason || "no reason"}`,
			"Retry all",
		);
		let cursor = "",
			kicked = 0,
			answer;
		while (sure && cursor !== null) {
			answer = await act("retry", {
				tube: this.tube,
				reason: reason.number,
				cursor,
			});
			if (!answer) return;
			kicked += Number(answer.reply.split(" ")[1]);
			cursor = answer.next;
			say(`KICKED ${count(kicked)}`);
		}
	}
}

const TUBE_ACTIONS = [
	[
		"Kick\u2026",
		async (tube) => {
			const values = await askFields(
				`Kick jobs of ${tube}`,
				"Buried jobs become ready, or delayed ones if none is buried. Dead jobs return to the tube that they came from.",
				[
					{
						name: "count",
						label: "At most",
						value: "100",
						inputmode: "numeric",
						required: true,
						pattern: "[0-9]+",
					},
				],
				"Kick",
			);
			if (values) await act("kick", {tube, ...values});
		},
	],
	[
		"Pause\u2026",
		async (tube) => {
			const values = await askFields(
				`Pause ${tube}`,
				"For this time no worker gets a job of this tube. 0 ends a pause.",
				[
					{
						name: "duration",
						label: "For (such as 10m; a bare number is seconds)",
						value: frame.tube?.pause_left_ms ? "0" : "10m",
						required: true,
					},
				],
				"Pause",
			);
			if (values) await act("pause", {tube, ...values});
		},
	],
	[
		"Policy\u2026",
		async (tube) => {
			const {policy} = frame.tube,
				ms = (n) => (n % 1000 ? `${n}ms` : `${n / 1000}s`);
			const values = await askFields(
				`Retry policy of ${tube}`,
				"The k-th retry waits base \u00d7 factor^(k-1), but not longer than cap, more or less by jitter.",
				[
					{
						name: "attempts",
						label: "Attempts",
						value: policy.max_attempts,
						inputmode: "numeric",
						required: true,
					},
					{
						name: "base",
						label: "Base",
						value: ms(policy.base_ms),
						required: true,
					},
					{
						name: "factor",
						label: "Factor",
						value: policy.factor,
						required: true,
					},
					{
						name: "cap",
						label: "Cap",
						value: ms(policy.cap_ms),
						required: true,
					},
					{
						name: "jitter",
						label: "Jitter, percent",
						value: policy.jitter_percent,
						required: true,
					},
					{
						name: "dead",
						label: "Tube for dead jobs",
						value: policy.dead_tube,
					},
				],
				"Set policy",
				policy.set
					? {label: "Take the policy away", value: {default: "1"}}
					: null,
			);
			if (values) await act("policy", {tube, ...values});
		},
	],
];

class Tube {
	constructor(name, state) {
		this.name = name;
		this.title = name;
		this.chosen = Boolean(state);
		this.charts = [
			new Chart("Ready jobs", [{key: "ready", title: "Ready", scale: 1}], "jobs"),
			new Chart(
				"Put and done",
				[
					{key: "put", title: "Put a second", scale: 10},
					{key: "deleted", title: "Done a second", scale: 10},
				],
				"a second",
			),
		];
		this.badge = el("span", {class: "badge bad", hidden: true});
		this.policy = el("p", {class: "muted"});
		this.buttons = el(
			"div",
			{class: "buttons", hidden: true},
			TUBE_ACTIONS.map(([label, run]) =>
				el("button", {type: "button", onclick: () => run(name)}, label),
			),
			el(
				"button",
				{type: "button", class: "danger", onclick: () => this.purge()},
				"Purge\u2026",
			),
		);
		this.tabs = STATES.map((one) =>
			el(
				"button",
				{
					"type": "button",
					"role": "tab",
					"id": `tab-${one}`,
					"aria-controls": "jobs",
					"data-state": one,
					"onclick": () => this.choose(one),
				},
				capitalised(one),
			),
		);
		this.panel = el("div", {id: "jobs", role: "tabpanel"});
		this.reasons = new Reasons(name);
		const tablist = el(
			"div",
			{
				"class": "tabs",
				"role": "tablist",
				"aria-label": "Jobs by state",
				"onkeydown": (event) => this.arrow(event),
			},
			this.tabs,
		);
		this.chartsNode = el(
			"section",
			{"class": "charts", "aria-label": "The last ten minutes"},
			this.charts.map((chart) => chart.node),
		);
		this.missing = el(
			"p",
			{class: "empty panel", hidden: true},
			"There is no such tube (now).",
		);
		this.found = el(
			"div",
			{},
			this.policy,
			this.chartsNode,
			this.reasons.node,
			el(
				"section",
				{"aria-label": "Jobs"},
				el("div", {class: "panel"}, tablist, this.panel),
			),
		);
		this.node = [
			el(
				"nav",
				{"class": "crumbs", "aria-label": "Where you are"},
				el("a", {href: "#/"}, "\u2190 All tubes"),
			),
			el(
				"div",
				{class: "title"},
				el("h2", {class: "name"}, name),
				this.badge,
				el("span", {class: "space"}),
				this.buttons,
			),
			this.missing,
			this.found,
		];
		this.choose(state || "ready", false);
		this.timer = setInterval(() => {
			if (!document.hidden) this.refresh();
		}, REFRESH_MS);
		this.reasons.count();
	}

	close() {
		clearInterval(this.timer);
	}

	query() {
		return {...boardQuery(), tube: this.name};
	}

	choose(state, go = true) {
		this.state = state;
		this.tabs.forEach((tab) =>
			set(tab, {
				"aria-selected": String(tab.dataset.state === state),
				"tabindex": tab.dataset.state === state ? "0" : "-1",
			}),
		);
		this.panel.setAttribute("aria-labelledby", `tab-${state}`);
		this.jobs = new Jobs(this.name, state);
		this.panel.replaceChildren(this.jobs.node);
		this.jobs.refresh();
		if (go) {
			this.chosen = true;
			history.replaceState(
				null,
				"",
				`#/tube/${encodeURIComponent(this.name)}/${state}`,
			);
		}
	}

	arrow(event) {
		const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
		if (!step) return;
		const tab =
			this.tabs[
				(STATES.indexOf(this.state) + step + STATES.length) % STATES.length
			];
		this.choose(tab.dataset.state);
		tab.focus();
		event.preventDefault();
	}

	async purge() {
		const {state} = this;
		if (state === "reserved") {
			say("Reserved jobs cannot be purged: their workers have them.", true);
			return;
		}
		if (
			await confirmAction(
				`Purge ${this.name}`,
				`All jobs of this tube that are ${state} now are deleted. That cannot be undone.`,
				`Delete all that are ${state}`,
				this.name,
			)
		)
			await act("purge", {tube: this.name, state});
	}

	refresh() {
		this.jobs.refresh();
		if (!this.reasons.next) this.reasons.count();
	}

	update() {
		const {tube} = frame;
		if (!tube || tube.name !== this.name) return;
		this.missing.hidden = tube.found;
		this.found.hidden = !tube.found;
		this.buttons.hidden = !frame.actions || !tube.found;
		this.badge.hidden = !tube.pause_left_ms;
		if (!tube.found) return;
		write(this.badge, `paused for ${seconds(tube.pause_left_ms / 1000)}`);
		this.tabs.forEach((tab) =>
			write(
				tab,
				`${capitalised(tab.dataset.state)} ${count(tube[tab.dataset.state])}`,
			),
		);
		this.charts.forEach((chart) => chart.update(tube.history));
		this.chartsNode.hidden =
			!tube.history ||
			!["ready", "put", "deleted"].some((key) => largest(tube.history[key]));
		const {policy} = tube;
		write(
			this.policy,
			`${policy.set ? "Policy" : "No policy is set; the default is"}: ${count(policy.max_attempts)} ${policy.max_attempts === 1 ? "attempt" : "attempts"}, after ${milliseconds(policy.base_ms)}, \u00d7 ${policy.factor}, ` +
				`at most ${milliseconds(policy.cap_ms)}, \u00b1 ${policy.jitter_percent} %; then ${policy.dead_tube}. ` +
				`${count(tube.watching)} watching, ${count(tube.waiting)} of them idle; ${count(tube.using)} using.`,
		);
		// A tube of dead jobs alone is opened at these.
		if (!this.chosen) {
			this.chosen = true;
			const first = STATES.find((state) => tube[state] > 0);
			if (first && first !== this.state) this.choose(first, false);
		}
	}
}

// --- a job -------------------------------------------------------------------------------

function fromHex(hex) {
	return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

// The text of a body, if it is UTF-8 without odd control characters; a cut end is left out.
function textOf(array, cut) {
	for (let end = array.length; end >= Math.max(0, array.length - (cut ? 3 : 0)); end--) {
		try {
			return new TextDecoder("utf-8", {fatal: true, ignoreBOM: true}).decode(
				array.subarray(0, end),
			);
		} catch {
			// Perhaps a character was cut.
		}
	}
	return null;
}

// Lay out JSON by its own characters, so that no number loses a digit.
function layOut(text) {
	let out = "",
		depth = 0;
	const line = () => "\n" + "  ".repeat(depth);
	for (const [piece] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gu)) {
		if (piece === "}" || piece === "]") {
			depth--;
			out = /[{[]$/.test(out.trimEnd())
				? out.trimEnd() + piece
				: out + line() + piece;
		} else if (piece === "{" || piece === "[") {
			depth++;
			out += piece + line();
		} else {
			out += piece === "," ? piece + line() : piece === ":" ? ": " : piece;
		}
		out = out.replace(/\n *(\n *)$/, "$1");
	}
	return out;
}

function isJson(text) {
	try {
		JSON.parse(text);
		return /^\s*[[{]/.test(text);
	} catch {
		return false;
	}
}

function hexDump(array) {
	const lines = [];
	for (let at = 0; at < array.length; at += 16) {
		const part = [...array.subarray(at, at + 16)];
		lines.push(
			at.toString(16).padStart(4, "0") +
				"  " +
				part
					.map((byte) => byte.toString(16).padStart(2, "0"))
					.join(" ")
					.padEnd(48) +
				" " +
				part
					.map((byte) =>
						byte > 31 && byte < 127
							? String.fromCharCode(byte)
							: ".",
					)
					.join(""),
		);
	}
	return lines.join("\n");
}

// The body as text, as JSON, or as hex: whichever of them it can be.
function bodyView(job) {
	if (job.body === null)
		return el(
			"p",
			{class: "empty"},
			"The body cannot be read; see the log of the daemon.",
		);
	const array = fromHex(job.body),
		text = textOf(array, job.cut),
		ways = [];
	if (text !== null && !job.cut && isJson(text))
		ways.push(["JSON", () => visible(layOut(text), true)]);
	if (text !== null && !text.includes("\0")) ways.push(["Text", () => visible(text, true)]);
	ways.push(["Hex", () => [hexDump(array)]]);
	const pre = el("pre", {
		"class": "mono",
		"tabindex": "0",
		"aria-label": "Body",
		"id": "body",
	});
	const tabs = ways.map(([label, make], i) =>
		el(
			"button",
			{
				"type": "button",
				"role": "tab",
				"aria-controls": "body",
				"data-way": label,
				"onclick": () => choose(i),
			},
			label,
		),
	);
	const choose = (chosen) => {
		tabs.forEach((tab, i) => set(tab, {"aria-selected": String(i === chosen)}));
		pre.replaceChildren(...ways[chosen][1]());
	};
	choose(0);
	return el(
		"div",
		{},
		el("div", {"class": "tabs", "role": "tablist", "aria-label": "Body as"}, tabs),
		pre,
		job.cut
			? el(
					"p",
					{class: "muted", id: "cut"},
					`The first ${bytes(array.length)} of ${bytes(job.bytes)}.`,
				)
			: null,
	);
}

function jobFacts(job) {
	const facts = [
		["Tube", job.tube],
		["State", job.state],
		["Priority", count(job.pri)],
		["Age", seconds(job.age_s)],
		["Time to run", milliseconds(job.ttr_ms)],
		["Failed attempts", count(job.attempts)],
		["Reserves", count(job.reserves)],
		["Timeouts", count(job.timeouts)],
		["Releases", count(job.releases)],
		["Buries", count(job.buries)],
		["Kicks", count(job.kicks)],
		["Body", bytes(job.bytes)],
	];
	if (job.due_ms)
		facts.splice(2, 0, [
			job.state === "reserved" ? "Time to run ends" : "Due",
			clockTime(job.due_ms),
		]);
	if (job.died_ms) facts.push(["Died", clockTime(job.died_ms)]);
	if (job.origin) facts.push(["Came from", job.origin]);
	if (job.key) facts.push(["Key", job.key]);
	return el(
		"dl",
		{class: "facts"},
		facts.map(([name, value]) =>
			el(
				"div",
				{},
				el("dt", {}, name),
				el("dd", {"data-fact": name}, visible(value)),
			),
		),
		job.reason
			? el(
					"div",
					{class: "wide"},
					el("dt", {}, "Reason"),
					el(
						"dd",
						{"data-fact": "Reason"},
						visible(job.reason, true),
					),
				)
			: null,
	);
}

async function openJob(id) {
	let job;
	try {
		job = await ask("job", {id});
	} catch (error) {
		say(error.message, true);
		return;
	}
	const what = await openDialog(
		`Job ${job.id}`,
		(close) =>
			el(
				"div",
				{},
				jobFacts(job),
				bodyView(job),
				frame && frame.actions && job.state !== "reserved"
					? el("p", {})
					: null,
				frame && frame.actions && job.state !== "reserved"
					? el(
							"div",
							{class: "buttons"},
							job.state === "buried" ||
								job.state === "delayed"
								? el(
										"button",
										{
											type: "button",
											class: "main",
											onclick: () =>
												close(
													"kick",
												),
										},
										"Kick: make it ready",
									)
								: null,
							el(
								"button",
								{
									type: "button",
									class: "danger",
									onclick: () =>
										close("delete"),
								},
								"Delete\u2026",
							),
						)
					: null,
			),
		false,
	);
	if (what === "kick") await act("kick", {id});
	else if (
		what === "delete" &&
		(await confirmAction(
			`Delete job ${id}`,
			`Job ${id} of ${job.tube} is deleted. That cannot be undone.`,
			"Delete it",
		))
	)
		await act("delete", {id});
}

// --- frames, the stream, and where we are ------------------------------------------------

function showHealth() {
	const badge = $("health"),
		wrong = frame.health.trim();
	write(badge, wrong || "all is well");
	badge.className = `badge ${wrong ? "bad" : "good"}`;
}

function take(text) {
	before = frame;
	frame = JSON.parse(text);
	if (before && before.now_ms >= frame.now_ms) before = null;
	write($("product"), frame.product);
	write(
		$("host"),
		`${frame.host}, version ${frame.version}, up for ${seconds(frame.uptime_s)}`,
	);
	document.title =
		(view.title ? `${view.title} \u2013 ` : "") + `${frame.product} on ${frame.host}`;
	$("lost").hidden = true;
	showHealth();
	showLock();
	view.update();
}

function lose(text) {
	write($("lost"), text);
	$("lost").hidden = false;
	write($("health"), "no connection");
	$("health").className = "badge";
}

// Begin to listen, with what the view wants.
function connect() {
	clearTimeout(againTimer);
	if (stream) stream.close();
	stream = null;
	if (document.hidden || !view) return;
	const mine = (stream = new EventSource(address("events", view.query())));
	mine.onmessage = (event) => {
		if (mine === stream) take(event.data);
	};
	mine.onerror = () => {
		mine.close();
		if (mine !== stream) return;
		lose(
			"The connection is lost, or too many pages are open. What is shown is old; trying again.",
		);
		againTimer = setTimeout(connect, AGAIN_MS);
	};
}

function navigate() {
	const parts = location.hash.replace(/^#\/?/, "").split("/");
	let name = "";
	if (location.hash === "#main") return;
	try {
		name = decodeURIComponent(parts[1] ?? "");
	} catch {
		// A wrong address shows all.
	}
	if (view && view.close) view.close();
	view =
		parts[0] === "tube" && name
			? new Tube(name, STATES.includes(parts[2]) ? parts[2] : "")
			: new Overview();
	$("main").replaceChildren(...view.node);
	scrollTo(0, 0);
	connect();
}

// --- light and dark ----------------------------------------------------------------------

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function showTheme() {
	const chosen = localStorage.getItem("theme"),
		dark = chosen ? chosen === "dark" : prefersDark.matches;
	document.documentElement.classList.toggle("dark", dark);
	write($("theme"), dark ? "Light" : "Dark");
}

// --- the beginning -----------------------------------------------------------------------

$("theme").addEventListener("click", () => {
	localStorage.setItem(
		"theme",
		document.documentElement.classList.contains("dark") ? "light" : "dark",
	);
	showTheme();
});
$("lock").addEventListener("click", () => {
	if (token) setToken("");
	else
		unlock().then((unlocked) => {
			if (unlocked && view.refresh) view.refresh();
		});
});
prefersDark.addEventListener("change", showTheme);
document.addEventListener("visibilitychange", connect);
document.addEventListener("keydown", (event) => {
	if (
		event.key !== "/" ||
		/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName) ||
		$("dialog").open
	)
		return;
	const filter = document.querySelector(".filter");
	if (filter) {
		filter.focus();
		event.preventDefault();
	}
});
addEventListener("hashchange", navigate);
showTheme();
navigate();
