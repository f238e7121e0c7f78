// SPDX-License-Identifier: GPL-2.0
// Tests of the page, in Chromium. TAP.
//
// Usage: page.js [--screenshots DIRECTORY] [NAME...]
//
// CHROMIUM is the browser, NATIVE the program native, RECORDING a recording of twheelctl record,
// SHOWN what twheelctl show --json printed. playwright-core is found by NODE_PATH; see
// tools/vm/setup browser. Times are reported and never judged.
"use strict";

const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { chromium } = require("playwright-core");
const { makeScript } = require("./script.js");

const url = `file://${path.join(__dirname, "..", "wheelview.html")}`;
const PATIENCE_MS = 60000;
const HANG_MS = Number(process.env.HANG_MS ?? 300000);

let screenshots = null;
let browser;

function holds(condition, text) {
	if (!condition)
		throw new Error(text);
}

function equal(is, should, what) {
	const [a, b] = [JSON.stringify(is), JSON.stringify(should)];
	holds(a === b, `${what}: ${a.slice(0, 300)}, but it should be ${b.slice(0, 300)}`);
}

// A page that notes errors, and requests to anywhere.
async function openPage(options = {}) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 1000 }, ...options });
	const page = await context.newPage();

	page.setDefaultTimeout(PATIENCE_MS);
	page.wrong = [];
	page.on("console", (message) => page.wrong.push(`${message.type()}: ${message.text()}`));
	page.on("pageerror", (error) => page.wrong.push(`error: ${error.message}`));
	page.on("dialog", (dialog) => {
		page.wrong.push(`dialog: ${dialog.message()}`);
		dialog.dismiss();
	});
	page.on("request", (request) => {
		if (request.url() !== url && !request.url().startsWith("data:"))
			page.wrong.push(`request to ${request.url()}`);
	});
	await page.goto(url);
	await page.locator("html[data-ready]").waitFor();
	return page;
}

async function closePage(page) {
	equal(page.wrong, [], "what the page complained of");
	await page.context().close();
}

function text(page, selector) {
	return page.locator(selector).innerText();
}

async function picture(page, name) {
	if (screenshots)
		await page.screenshot({ path: path.join(screenshots, `${name}.png`) });
}

// The numbers of the table, by row: [twheel, Kafka, hashed].
function compared(page) {
	return page.evaluate(() => Object.fromEntries([...document.querySelectorAll("#compared tr")]
		.map((row) => [row.cells[0].textContent,
			[...row.cells].slice(1).map((cell) => cell.textContent.replace(/\u202f/g, ""))])));
}

async function openText(page, name, content) {
	await page.locator("#file").setInputFiles({ name, mimeType: "application/json",
		buffer: Buffer.from(content) });
}

function wheelLine(changes = {}) {
	const wheel = {
		cpu: 0, clock: "monotonic", kind: "events", online: true, tick_ns: 65536, clk: 1000,
		now: 1000, next: 2000, armed: 3, gap: 0, interrupts: 5, expired: 7, postponed: 0,
		cascaded: 2, lateness: [0, 0, 0, 1, 2, 3, 1, ...Array(17).fill(0)],
		levels: [{ level: 1, position: 31, occupied: "4000000000000000",
			crowded: "0000000000000000", armed: 3,
			count: Array.from({ length: 64 }, (_, slot) => slot === 62 ? 3 : 0) }],
		...changes,
	};
	return JSON.stringify(wheel);
}

// Runs a script of script.js in a page; gives what native prints.
function runInPage(lines) {
	const engine = window.wheelview.simulation.engine;
	const out = [];
	let id = 0;

	for (const line of lines) {
		const [what, first, last] = line.split(" ");

		if (what === "start")
			engine.start(Number(first));
		else if (what === "add")
			engine.add(id++, Number(first), Number(last));
		else if (what === "cancel")
			engine.cancel(Number(first));
		else
			engine.advance(Number(first), (one, tick) => out.push(`${one} ${tick}`));
	}
	const broken = engine.check();
	if (broken)
		throw new Error(broken);
	const state = engine.state();
	out.push(`clk ${state.clk} programmed ${state.programmed} armed ${state.armed} ` +
		`wakeups ${state.wakeups} idle ${state.idleWakeups} cascaded ${state.cascaded} ` +
		`prefetched ${state.prefetched}`);
	return out;
}

const tests = {
	async wasm_and_machine_code_give_the_same_expirations_of_100000_events() {
		const page = await openPage();

		for (const [events, seed] of [[100000, 7], [20000, 8], [20000, 9]]) {
			const { lines, due } = makeScript(events, seed);
			const native = execFileSync(process.env.NATIVE, { input: lines.join("\n") + "\n",
				maxBuffer: 2 ** 28 }).toString().trimEnd().split("\n");
			const wasm = await page.evaluate(runInPage, lines);
			const different = native.findIndex((line, i) => line !== wasm[i]);

			holds(different < 0 && native.length === wasm.length,
				`line ${different}: “${wasm[different]}” in the page, “${native[different]}” natively`);
			// And both are right: in its time, in the order of time.
			let last = 0;
			for (const line of native.slice(0, -1)) {
				const [id, tick] = line.split(" ").map(Number);

				holds(tick >= due[id][0] && tick <= due[id][1],
					`event ${id} came at ${tick}, not from ${due[id][0]} to ${due[id][1]}`);
				holds(tick >= last, "ticks are not in order");
				last = tick;
			}
			console.log(`# ${native.length - 1} of ${events} events came out; ${native.at(-1)}`);
			holds(native.length > events / 3, "too few events came out to show much");
		}
		await closePage(page);
	},

	async event_ten_days_ahead_costs_one_wakeup_and_one_move() {
		const page = await openPage();

		equal(await text(page, "#story h2"), "Eleven levels of 64 slots", "the first step");
		await picture(page, "begin");
		await page.click("#story-next");
		holds(/level 6,\s+whose slots are 19.5 h/.test(await text(page, "#story")), "the level is told");
		equal(await text(page, "#fact-next"), "in 10 d", "the next wakeup");
		await picture(page, "far-added");
		await page.click("#story-next");
		equal((await compared(page)).Wakeups, ["0", "0", "4320000"], "wakeups after five days");
		await page.click("#story-next");
		equal((await compared(page)).Wakeups.slice(0, 2), ["0", "1"], "wakeups as Kafka's begin");
		await page.click("#story-next");
		const table = await compared(page);
		equal(table.Wakeups, ["1", "7", "8640001"], "wakeups");
		equal(table["Moves, looks"], ["1", "6", "16875"], "moves");
		equal(table["Came out"], ["1", "1", "1"], "what came out");
		equal(table["Late, at most"][0], "0", "lateness");
		await page.waitForTimeout(300);
		await picture(page, "far-due");
		await page.click("#story-next");
		holds((await text(page, "#story h2")).startsWith("Why one interrupt"), "the explanation");
		await closePage(page);
	},

	async every_scenario_runs_to_its_end_and_says_what_is_so() {
		const page = await openPage();
		const titles = [];

		for (const name of ["far", "timeouts", "crowd", "slack"]) {
			await page.click(`[data-scenario=${name}]`);
			const steps = Number((await text(page, "#steps")).split(" of ")[1]);

			for (let step = 1; ; step++) {
				const story = await text(page, "#story");

				titles.push(await text(page, "#story h2"));
				holds(!/undefined|NaN|null/.test(story), `the text of ${name}: ${story}`);
				equal(await page.evaluate(() => window.wheelview.simulation.engine.check()), null,
					`the invariants in ${name}`);
				if (name === "crowd" && step === 2)
					await picture(page, "crowd");
				if (step === steps)
					break;
				await page.click("#story-next");
			}
			const table = await compared(page);
			const late = await page.evaluate(() => window.wheelview.simulation.summary().wheel);

			equal(table.Waiting, ["0", "0", "0"].slice(0, 3), `what waits at the end of ${name}`);
			equal(late.earlyNs, 0, `how early an event of ${name} was`);
			holds(late.worstNs <= 65536 + (name === "slack" ? 100e6 : 0), `how late in ${name}: ${late.worstNs}`);
			if (name === "timeouts")
				holds(Number(table.Wakeups[0]) <= 20 && Number(table["Came out"][0]) === 10,
					`timeouts: ${JSON.stringify(table)}`);
			if (name === "slack")
				holds(Number(table.Wakeups[0]) <= 200, `slack: ${JSON.stringify(table)}`);
			console.log(`# ${name}: wakeups ${table.Wakeups}, moves ${table["Moves, looks"]}`);
		}
		equal(new Set(titles.filter((title) => !/wakeups$/.test(title))).size,
			titles.filter((title) => !/wakeups$/.test(title)).length, "titles differ");
		await closePage(page);
	},

	async going_back_runs_the_recording_anew() {
		const page = await openPage();

		await page.click("#tab-try");
		await page.click("[data-add=thousand]");
		const states = [];
		const state = () => page.evaluate(() => JSON.stringify([window.wheelview.simulation.summary(),
			[...window.wheelview.simulation.engine.counts]]));

		for (let step = 0; step < 40; step++) {
			states.push(await state());
			await page.click("#next");
		}
		await page.click("#cancel-half");
		await page.click("#next");
		for (let position = 40; position >= 1; position -= 13) {
			await page.evaluate((value) => {
				document.getElementById("scrub").value = value;
				document.getElementById("scrub").dispatchEvent(new Event("input"));
			}, position);
			equal(await state(), states[position - 1], `step ${position}`);
		}
		await page.click("#restart");
		equal(await text(page, "#fact-armed"), "0 events", "at the start");
		equal(await text(page, "#time-of-scrub"), "step 0 of 43", "the recording stays");
		await page.keyboard.press("End");
		equal(await text(page, "#time-of-scrub"), "step 43 of 43", "its end");
		await page.click("#back");
		await page.click("[data-add=one]");
		equal(await text(page, "#time-of-scrub"), "step 43 of 43", "something else drops what came later");
		holds((await text(page, "#said")).includes("dropped"), "and says so");
		await closePage(page);
	},

	async what_is_typed_is_added_and_what_is_wrong_changes_nothing() {
		const page = await openPage();
		const fill = async (count, delay, until, slack) => {
			await page.fill("#add-count", count);
			await page.fill("#add-delay", delay);
			await page.fill("#add-until", until);
			await page.fill("#add-slack", slack);
			await page.keyboard.press("Enter");
		};

		await page.click("#tab-try");
		await fill("3", "1.5 h", "2h", "10 ms");
		equal(await text(page, "#fact-armed"), "3 events", "added");
		for (const [values, message] of [
			[["0", "1 s", "2 s", "0"], "How many: “0” is not a whole number from 1 to 100"],
			[["x", "1 s", "2 s", "0"], "How many: “x” is not a whole number"],
			[["1", "soon", "2 s", "0"], "Due in: “soon” is not a time such as 10 d"],
			[["1", "5", "2 s", "0"], "Due in: “5” lacks its unit"],
			[["1", "3 s", "2 s", "0"], "the latest due time is before the earliest"],
			[["1", "1 s", "200 y", "0"], "no further than 100 years"],
			[["1", "1 s", "2 s", "<img src=x onerror=alert(1)>"], "Slack: “<img src=x onerror=alert(1)>” is not"],
		]) {
			await fill(...values);
			const said = await text(page, "#add-error");
			holds(said.includes(message), `${JSON.stringify(values)}: ${said}`);
			equal(await text(page, "#fact-armed"), "3 events", "nothing was added");
		}
		await fill("1", "100 y", "100 y", "0");
		equal(await page.locator("#add-error").isVisible(), false, "the message goes");
		await page.click("#cancel-all");
		equal(await text(page, "#fact-armed"), "0 events", "all are cancelled");
		equal((await compared(page)).Waiting, ["0", "0", "0"], "for all three");
		for (let i = 0; i < 3; i++)
			await fill("100000", "1 s", "1 h", "0");
		holds((await text(page, "#add-error")).includes("room for"), "a recording is full at some time");
		await closePage(page);
	},

	async plays_until_nothing_is_left_at_every_pace() {
		const page = await openPage();

		await page.click("#tab-try");
		for (const pace of ["fast", "rush", "60e9", "3600e9"]) {
			await page.click("#clear");
			await page.fill("#add-count", "20");
			await page.fill("#add-delay", "10 ms");
			await page.fill("#add-until", "30 s");
			await page.keyboard.press("Enter");
			await page.selectOption("#pace", pace);
			await page.click("#play");
			await page.waitForFunction(() => document.getElementById("play").textContent === "Play");
			equal((await compared(page))["Came out"], ["20", "20", "20"], `pace ${pace}`);
			await page.click("#restart");
			await page.click("#play");
			await page.waitForFunction(() => document.getElementById("play").textContent === "Play");
			equal((await compared(page))["Came out"], ["20", "20", "20"], `pace ${pace}, played back`);
		}
		await closePage(page);
	},

	async keyboard_is_enough() {
		const page = await openPage();

		await page.keyboard.press("Tab");
		equal(await page.evaluate(() => document.activeElement.id), "tab-tour", "the first focus");
		await page.keyboard.press("ArrowRight");
		equal(await page.locator("#panel-try").isVisible(), true, "arrows change tabs");
		await page.evaluate(() => document.activeElement.blur());
		await page.keyboard.press("a");
		equal(await text(page, "#fact-armed"), "1\u202f000 events", "A adds");
		await page.keyboard.press("c");
		equal(await text(page, "#fact-armed"), "500 events", "C cancels half");
		await page.keyboard.press("ArrowRight");
		equal(await text(page, "#time-of-scrub"), "step 3 of 3", "→ steps on");
		await page.keyboard.press("ArrowLeft");
		equal(await text(page, "#time-of-scrub"), "step 2 of 3", "← steps back");
		await page.keyboard.press("Home");
		equal(await text(page, "#time-of-scrub"), "step 0 of 3", "Home");
		await page.keyboard.press("End");
		await page.keyboard.press("r");
		equal(await page.getAttribute("#as-rings", "aria-pressed"), "true", "R draws rings");
		await page.keyboard.press(" ");
		equal(await text(page, "#play"), "Pause", "Space plays");
		await page.keyboard.press(" ");
		equal(await text(page, "#play"), "Play", "and pauses");
		await page.focus("#wheel");
		await page.keyboard.press("ArrowUp");
		holds((await text(page, "#inspected")).startsWith("Level 0, slot"), "the focus chooses a slot");
		await page.keyboard.press("ArrowUp");
		holds((await text(page, "#inspected")).startsWith("Level 1, slot"), "arrows move");
		await page.keyboard.press("Escape");
		holds(!(await text(page, "#inspected")).startsWith("Level"), "Esc ends that");
		// Everything that can be pressed can be reached, and has a name.
		const nameless = await page.evaluate(() => [...document.querySelectorAll("button, select, input, canvas")]
			.filter((one) => one.checkVisibility() && !one.textContent.trim() && !one.ariaLabel &&
				!one.closest("label") && !one.labels?.length).map((one) => one.outerHTML.slice(0, 80)));
		equal(nameless, [], "what has no name");
		await closePage(page);
	},

	async recordings_of_twheelctl_are_opened() {
		const page = await openPage();

		await page.click("#tab-file");
		await page.locator("#file").setInputFiles(process.env.RECORDING);
		await page.locator("#wheel-name").waitFor();
		const lines = fs.readFileSync(process.env.RECORDING, "utf8").trim().split("\n").map(JSON.parse);
		const wheels = lines.filter((line) => line.type === "wheel");
		const names = new Set(wheels.map((w) => `CPU ${w.cpu}, ${w.clock}, ${w.kind}`));

		equal(await page.evaluate(() => document.getElementById("wheel-name").length), names.size, "wheels");
		// The one with the most events at any time.
		const most = wheels.reduce((a, b) => a.armed >= b.armed ? a : b);
		await page.selectOption("#wheel-name", `CPU ${most.cpu}, ${most.clock}, ${most.kind}`);
		const own = wheels.filter((w) => w.cpu === most.cpu && w.clock === most.clock && w.kind === most.kind);
		await page.keyboard.press("Home");
		equal(await page.locator("#scrub").getAttribute("max"), String(own.length - 1), "samples");
		for (let i = 0; i < own.indexOf(most); i++)
			await page.click("#next");
		equal(await text(page, "#fact-armed"), `${most.armed} event${most.armed === 1 ? "" : "s"}`
			.replace(/\B(?=(\d{3})+ )/g, "\u202f"), "armed");
		const counts = await page.evaluate(() => {
			const { counts } = window.wheelview.source.data();
			return Array.from({ length: 11 }, (_, level) =>
				counts.subarray(64 * level, 64 * level + 64).reduce((sum, nr) => sum + nr, 0));
		});
		equal(counts, Array.from({ length: 11 }, (_, level) =>
			most.levels.find((one) => one.level === level)?.armed ?? 0), "events on each level");
		await picture(page, "recording");
		// Trace events between samples are counted, and each is in some sample or after the last.
		const counted = await page.evaluate(() => {
			const { file } = window.wheelview;
			let due = 0;
			for (file.position = 0; file.position <= file.length; file.position++)
				due += file.events().get("due") ?? 0;
			file.position = 0;
			return due;
		});
		const last = own.at(-1).at_s;
		equal(counted, lines.filter((line) => line.event === "due" && line.cpu === most.cpu &&
			line.clock === most.clock && line.kind === most.kind && line.at_s <= last).length, "trace events");
		await page.selectOption("#file-pace", "100");
		await page.click("#play");
		await page.waitForFunction(() => document.getElementById("play").textContent === "Play");
		equal(await text(page, "#time-of-scrub"), `step ${own.length - 1} of ${own.length - 1}`, "played");
		// What show --json prints is one sample.
		await page.locator("#file").setInputFiles(process.env.SHOWN);
		await page.waitForFunction(() => /\b1 sample\b/.test(document.getElementById("file-name").textContent));
		equal(await page.evaluate(() => document.getElementById("wheel-name").length),
			fs.readFileSync(process.env.SHOWN, "utf8").trim().split("\n").length, "wheels of show");
		await page.click("#tab-tour");
		equal(await page.locator("#others").isVisible(), true, "the tour is as it was");
		await closePage(page);
	},

	async file_can_be_dropped() {
		const page = await openPage();
		const transfer = await page.evaluateHandle((content) => {
			const data = new DataTransfer();
			data.items.add(new File([content], "dropped.json"));
			return data;
		}, wheelLine());

		await page.dispatchEvent("body", "dragover", { dataTransfer: transfer });
		await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
		await page.waitForFunction(() => document.getElementById("file-name").textContent.startsWith("dropped.json"));
		equal(await text(page, "#fact-armed"), "3 events", "what it has");
		await closePage(page);
	},

	async broken_file_is_told_and_changes_nothing() {
		const page = await openPage();
		const start = '{"type":"start","version":1,"time":"now","interval_s":1,"trace":false}';

		await page.click("#tab-file");
		await openText(page, "good.json", wheelLine());
		await page.waitForFunction(() => document.getElementById("file-name").textContent.startsWith("good.json"));
		const before = await page.evaluate(() => JSON.stringify(window.wheelview.source.data()));
		const broken = [
			["", "has no wheel"],
			["not json\n", "Line 1: “not json” is not JSON"],
			["[1]\n", "Line 1: “[1]” is not an object"],
			[`${wheelLine()}\n{"cpu":\n${wheelLine()}`, "Line 2: “{\"cpu\":” is not JSON"],
			[wheelLine({ cpu: -1 }), "Line 1: “cpu” is -1, which is not a number from 0"],
			[wheelLine({ cpu: 1.5 }), "“cpu” is 1.5, which is not a whole number"],
			[wheelLine({ clk: "1" }), "“clk” is 1, which is not a number"],
			[wheelLine({ clk: 1e300 }), "“clk” is 1e+300, which is not a number"],
			[wheelLine({ tick_ns: 0 }), "“tick_ns” is 0"],
			[wheelLine({ next: undefined }), "“next” is nothing"],
			[wheelLine({ clock: "<script>" }), "“clock” is <script>, which is not a short word"],
			[wheelLine({ lateness: [1] }), "“lateness” is not a list of 24"],
			[wheelLine({ levels: {} }), "“levels” is not a list of levels"],
			[wheelLine({ levels: [null] }), "“levels” has something that is not a level"],
			[wheelLine({ levels: [{ level: 11 }] }), "“level” is 11"],
			[wheelLine({ levels: [{ level: 0, count: Array(64).fill(-1) }] }), "“count” is not a list of 64"],
			[wheelLine({ levels: [{ level: 0, count: Array(64).fill(0), crowded: "xyz" }] }),
				"“crowded” is xyz, which is not 16 hexadecimal digits"],
			[`${start.replace(":1,", ":2,")}\n${wheelLine()}`, "this is version 2 of a recording"],
			['{"type":"photo"}\n', "“type” is photo, which this page does not know"],
			[start, "has no wheel"],
			[wheelLine({ type: "wheel", at_s: 5 }) + "\n" + wheelLine({ type: "wheel", at_s: 4 }),
				"Line 2: “at_s” is less than"],
			["\0\x01\xff".repeat(1000), "is not JSON"],
			["x".repeat(1 << 20), "Line 1: “" + "x".repeat(40) + "…” is not JSON"],
		];

		for (const [content, message] of broken) {
			await openText(page, "broken.json", content);
			await page.waitForFunction((part) => document.getElementById("file-error").checkVisibility() &&
				document.getElementById("file-error").textContent.includes(part), message,
			{ timeout: 10000 }).catch(async () => {
				throw new Error(`“${content.slice(0, 60)}”: ${await page.locator("#file-error").textContent()}`);
			});
			equal(await page.evaluate(() => JSON.stringify(window.wheelview.source.data())), before, message);
			equal(await page.locator("#file-name").textContent().then((name) => name.slice(0, 9)), "good.json", message);
			if (content.includes("<script>"))
				await picture(page, "broken");
			// So that the same message again is a new one.
			await page.evaluate(() => { document.getElementById("file-error").textContent = ""; });
		}
		// A recording that was cut off in its last line is opened without that.
		await openText(page, "cut.json", `${start}\n${wheelLine({ type: "wheel", at_s: 0 })}\n{"type":"whe`);
		await page.waitForFunction(() => document.getElementById("file-note").textContent.includes("cut off"));
		equal(await page.locator("#file-error").isVisible(), false, "the message goes");
		await closePage(page);
	},

	async hostile_texts_are_text() {
		const page = await openPage();
		const evil = '<img src=x onerror="document.title=\'evil\'">\u202e<script>alert(1)</script>';

		await openText(page, `${evil}.json`.replaceAll("/", "∕"), evil);
		await page.locator("#file-error").waitFor();
		await openText(page, "x.json", JSON.stringify({ type: evil }));
		await page.waitForFunction(() => document.getElementById("file-error").textContent.includes("“type” is <img"));
		await openText(page, `${evil}.json`.replaceAll("/", "∕"),
			`{"type":"start","version":1,"time":${JSON.stringify(evil)}}\n${wheelLine()}\n`);
		await page.waitForFunction(() => document.getElementById("file-name").textContent.includes("<img"));
		await openText(page, "proto.json", wheelLine().replace("{", '{"__proto__":{"type":"x"},"constructor":1,'));
		await page.waitForFunction(() => document.getElementById("file-name").textContent.startsWith("proto"));
		equal(await page.evaluate(() => [document.querySelectorAll("img").length, document.title,
			document.querySelectorAll("script").length]), [0, "A timing wheel, turning", 2], "the document");
		await closePage(page);
	},

	async many_samples_are_opened() {
		const page = await openPage();
		const lines = [];

		for (let sample = 0; sample < 6000; sample++)
			for (let cpu = 0; cpu < 4; cpu++)
				lines.push(wheelLine({ type: "wheel", at_s: sample / 10, cpu, now: 1000 + sample, expired: sample }));
		await openText(page, "long.json", lines.join("\n"));
		await page.waitForFunction(() => document.getElementById("file-name").textContent.includes("6\u202f000 samples"));
		const readMs = await page.evaluate((content) => {
			const before = performance.now();
			readRecording("again", content);
			return performance.now() - before;
		}, lines.join("\n"));
		console.log(`# ${lines.length} wheels, ${(lines.join("\n").length / 1e6).toFixed(0)} MB: read in ${readMs.toFixed(0)} ms`);
		await page.evaluate(() => {
			document.getElementById("scrub").value = 5999;
			document.getElementById("scrub").dispatchEvent(new Event("input"));
		});
		holds((await text(page, "#file-counters")).includes("expired\t1"), "the counters are differences");
		await closePage(page);
	},

	async text_has_contrast_and_fits_in_light_and_dark_and_on_a_phone() {
		for (const [name, options] of [
			["light", { colorScheme: "light" }],
			["dark", { colorScheme: "dark" }],
			["phone", { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }],
			["tablet", { viewport: { width: 800, height: 1100 } }],
		]) {
			const page = await openPage(options);

			for (const tab of ["tour", "try", "file"]) {
				await page.click(`#tab-${tab}`);
				if (tab === "try")
					await page.click("[data-add=thousand]");
				equal(await page.evaluate(lowContrast), [], `${name}, ${tab}: low contrast`);
				holds(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
					`${name}, ${tab}: it is wider than the screen`);
			}
			await page.click("#tab-tour");
			await page.click("[data-scenario=crowd]");
			await page.click("#story-next");
			if (name === "dark") {
				await page.click("#as-rings");
				await page.waitForTimeout(200);
			}
			await picture(page, name);
			await closePage(page);
		}
	},

	async colours_follow_the_system_and_motion_can_be_still() {
		const page = await openPage({ colorScheme: "light", reducedMotion: "reduce" });
		const pixel = () => page.evaluate(() => {
			const canvas = document.getElementById("wheel"), layout = window.wheelview.picture.layout;
			const [x, y] = layout.centre(4, 40), scale = devicePixelRatio;
			const copy = document.createElement("canvas").getContext("2d");

			copy.drawImage(canvas, -x * scale, -y * scale);
			return [...copy.getImageData(0, 0, 1, 1).data];
		});
		const still = () => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() =>
			requestAnimationFrame(resolve))));

		await still();
		const light = await pixel();
		await page.emulateMedia({ colorScheme: "dark" });
		await still();
		const dark = await pixel();
		holds(light[0] > 200 && dark[0] < 80, `an empty slot is ${light} and ${dark}`);
		await page.click("#story-next");
		for (let i = 0; i < 3; i++)
			await page.click("#story-next");
		equal(await page.evaluate(() => window.wheelview.picture.dots.length), 0, "dots that move");
		await closePage(page);
	},

	async smooth_with_10000_events() {
		const page = await openPage();

		await page.click("#tab-try");
		await page.fill("#add-count", "10000");
		await page.fill("#add-delay", "10 ms");
		await page.fill("#add-until", "20 s");
		for (const [pace, rings] of [["1e9", false], ["rush", false], ["1e9", true]]) {
			await page.click("#clear");
			await page.focus("#add-count");
			await page.keyboard.press("Enter");
			equal(await text(page, "#fact-armed"), "10\u202f000 events", "added");
			await page.click(rings ? "#as-rings" : "#as-rows");
			await page.selectOption("#pace", pace);
			await page.evaluate(() => {
				for (const list of ["frameMs", "workMs"])
					window.wheelview[list].length = 0;
				window.wheelview.picture.drawMs.length = 0;
			});
			await page.click("#play");
			await page.waitForTimeout(3000);
			if (pace === "1e9" && !rings)
				await picture(page, "many");
			const lists = await page.evaluate(() => {
				window.wheelview.pause();
				return [window.wheelview.frameMs, window.wheelview.workMs, window.wheelview.picture.drawMs];
			});
			const [frames, work, draws] = lists.map((list) => [0.5, 0.95, 1].map((part) =>
				[...list].sort((x, y) => x - y)[Math.floor((list.length - 1) * part)].toFixed(1)).join(", "));

			holds(lists[0].length > 1, "nothing was played");
			console.log(`# ${pace}, ${rings ? "rings" : "rows"}: ${lists[0].length} frames in 3 s; ms, median, ` +
				`95 % and worst: between frames ${frames}; wheel and page ${work}; drawing ${draws}`);
		}
		equal(await page.evaluate(() => window.wheelview.simulation.engine.check()), null, "the invariants");
		await closePage(page);
	},
};

// Text whose contrast to what is behind it is below that of WCAG AA. Runs in the page.
function lowContrast() {
	const parse = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
	const luminance = (rgb) => {
		const [r, g, b] = rgb.slice(0, 3).map((c) => c / 255)
			.map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ground = (node) => {
		for (; node; node = node.parentElement) {
			const colour = parse(getComputedStyle(node).backgroundColor);
			if (colour.length === 3 || colour[3] === 1)
				return colour;
		}
		return [255, 255, 255];
	};
	const found = [];

	for (const node of document.querySelectorAll("body *")) {
		const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
		if (!own || !node.checkVisibility() || node.closest(":disabled, .out-of-sight, script, option"))
			continue;
		const [a, b] = [luminance(parse(getComputedStyle(node).color)), luminance(ground(node))]
			.sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5)
			found.push(`${node.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
	}
	return found;
}

async function launch() {
	browser = await chromium.launch({ executablePath: process.env.CHROMIUM,
		args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

// A page that never comes back would hold up the rest: it fails, and the browser is ended.
async function runOne(test) {
	let timer;
	const hung = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new Error("the page does not come back")), HANG_MS);
	});

	try {
		await Promise.race([test(), hung]);
	} finally {
		clearTimeout(timer);
	}
}

async function endPages() {
	await Promise.race([Promise.all(browser.contexts().map((context) => context.close())),
		new Promise((resolve) => { setTimeout(resolve, 10000); })]);
	if (browser.contexts().length) {
		await browser.close();
		await launch();
	}
}

async function main() {
	const names = process.argv.slice(2);

	if (names[0] === "--screenshots") {
		[, screenshots] = names.splice(0, 2);
		fs.mkdirSync(screenshots, { recursive: true });
	}
	const chosen = Object.entries(tests).filter(([name]) =>
		!names.length || names.some((part) => name.includes(part)));
	let failed = 0;

	await launch();
	console.log(`1..${chosen.length}`);
	for (const [i, [name, test]] of chosen.entries()) {
		try {
			await runOne(test);
			console.log(`ok ${i + 1} - ${name}`);
		} catch (error) {
			failed++;
			console.log(`# ${String(error.stack).split("\n").join("\n# ")}`);
			console.log(`not ok ${i + 1} - ${name}`);
		}
		await endPages();
	}
	await browser.close();
	process.exitCode = failed || !chosen.length ? 1 : 0;
}

main();
