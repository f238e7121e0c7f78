// SPDX-License-Identifier: GPL-2.0
// What tests in a browser share: TAP, processes, clients of the queue, and pages that note what
// goes wrong in them. playwright-core is found by NODE_PATH; see tools/vm/setup browser.
"use strict";

const {spawn} = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const os = require("node:os");
const path = require("node:path");

// A condition is waited for so long; nothing is judged by how long it took.
const PATIENCE_MS = 120000;

const sleep = (ms) =>
	new Promise((resolve) => {
		setTimeout(resolve, ms);
	});

// Wait until @condition() is true, and return what it is.
async function until(condition, what) {
	const end = Date.now() + PATIENCE_MS;
	for (;;) {
		const result = await condition();
		if (result) return result;
		if (Date.now() > end)
			throw new Error(
				`it does not come: ${typeof what === "function" ? await what() : what}`,
			);
		await sleep(50);
	}
}

function equal(seen, expected, what = "seen") {
	const [a, b] = [JSON.stringify(seen), JSON.stringify(expected)];
	if (a !== b) throw new Error(`${what}: ${a}, expected: ${b}`);
}

function holds(condition, text) {
	if (!condition) throw new Error(text);
}

async function freePort() {
	const server = net.createServer();
	await new Promise((resolve) => {
		server.listen(0, "127.0.0.1", resolve);
	});
	const {port} = server.address();
	await new Promise((resolve) => {
		server.close(resolve);
	});
	return port;
}

// A client of the queue: one command at a time.
class Client {
	constructor(port) {
		this.data = Buffer.alloc(0);
		this.socket = net.connect(port, "127.0.0.1");
		this.waiting = null;
		this.socket.on("data", (data) => {
			this.data = Buffer.concat([this.data, data]);
			this.deliver();
		});
		this.socket.on("error", (error) => this.waiting?.reject(error));
	}

	deliver() {
		const end = this.data.indexOf("\r\n");
		if (end < 0 || !this.waiting) return;
		const line = this.data.subarray(0, end).toString("latin1");
		const size = /^(OK|RESERVED \d+|FOUND \d+) (\d+)$/.exec(line);
		const length = size ? Number(size[2]) : -2;
		if (this.data.length < end + 4 + length) return;
		const body = size ? this.data.subarray(end + 2, end + 2 + length) : null;
		this.data = this.data.subarray(end + 4 + length);
		const {resolve} = this.waiting;
		this.waiting = null;
		resolve({line, body});
	}

	ask(command, body = null) {
		return new Promise((resolve, reject) => {
			this.waiting = {resolve, reject};
			this.socket.write(`${command}\r\n`);
			if (body !== null)
				this.socket.write(
					Buffer.concat([Buffer.from(body), Buffer.from("\r\n")]),
				);
		});
	}

	async put(body, {pri = 1024, delay = 0, ttr = 600} = {}) {
		const bytes = Buffer.from(body);
		const {line} = await this.ask(`put ${pri} ${delay} ${ttr} ${bytes.length}`, bytes);
		holds(/^INSERTED \d+$/.test(line), `put: ${line}`);
		return line.split(" ")[1];
	}

	// A reply in YAML as an object; null if it is none.
	async stats(command) {
		const {body} = await this.ask(command);
		if (!body) return null;
		return Object.fromEntries(
			body
				.toString()
				.split("\n")
				.filter((line) => line.includes(": "))
				.map((line) => line.split(/: (.*)/s).slice(0, 2)),
		);
	}

	// The ids of list-jobs.
	async list(tube, state, most = 10000) {
		const {body} = await this.ask(`list-jobs ${tube} ${state} 0 ${most}`);
		return body
			? [...body.toString().matchAll(/^(\d+): /gm)].map((match) => match[1])
			: [];
	}

	// A job that has failed for good, in a tube whose policy has one attempt.
	async bury(tube, body, reason) {
		await this.ask(`use ${tube}`);
		const id = await this.put(body);
		await this.ask(`reserve-job ${id}`);
		const bytes = Buffer.from(reason);
		equal((await this.ask(`fail ${id} ${bytes.length}`, bytes)).line, "DEAD");
		return id;
	}

	close() {
		this.socket.destroy();
	}
}

const running = new Set();

// A program with a page, and a directory of its own.
class Program {
	constructor() {
		this.directory = fs.mkdtempSync(path.join(os.tmpdir(), "twheel-browser-"));
		running.add(this);
	}

	spawn(command, words) {
		const log = fs.openSync(path.join(this.directory, "log"), "a");
		this.process = spawn(command, words, {stdio: ["ignore", log, log]});
		this.ended = new Promise((resolve) => {
			this.process.on("exit", resolve);
		});
		fs.closeSync(log);
	}

	said() {
		return fs.readFileSync(path.join(this.directory, "log"), "utf8");
	}

	async stop() {
		this.process.kill("SIGTERM");
		return this.ended;
	}

	async close() {
		running.delete(this);
		if (this.process) {
			this.process.kill("SIGKILL");
			await this.ended;
		}
		fs.rmSync(this.directory, {recursive: true, force: true});
	}
}

const TOKEN = "a-token-for-the-browser";

class Twheelq extends Program {
	constructor({token = true, options = []} = {}) {
		super();
		this.token = token;
		this.options = options;
	}

	async start() {
		this.port ??= await freePort();
		this.http ??= await freePort();
		const words = [
			"serve",
			"--dir",
			path.join(this.directory, "jobs"),
			"--listen",
			`127.0.0.1:${this.port}`,
			"--http",
			`127.0.0.1:${this.http}`,
			"--wheel",
			"process",
			"--reserve",
			"16M",
			...this.options,
		];
		if (this.token) {
			fs.writeFileSync(path.join(this.directory, "token"), `${TOKEN}\n`, {
				mode: 0o600,
			});
			words.push("--http-token-file", path.join(this.directory, "token"));
		}
		this.spawn(process.env.TWHEELQ, words);
		this.url = `http://127.0.0.1:${this.http}/`;
		await until(
			() =>
				fetch(`${this.url}healthz`).then(
					(answer) => answer.ok,
					() => false,
				),
			() => this.said(),
		);
		return this;
	}

	client() {
		return new Client(this.port);
	}
}

// A page of the browser, which notes every error, dialog, and request to anywhere else.
async function openPage(browser, url, options = {}) {
	const context = await browser.newContext({
		viewport: {width: 1280, height: 800},
		...options,
	});
	const page = await context.newPage();
	page.setDefaultTimeout(PATIENCE_MS);
	page.wrong = [];
	page.on("console", (message) => {
		if (message.type() === "error" || message.type() === "warning")
			page.wrong.push(`${message.type()}: ${message.text()}`);
	});
	page.on("pageerror", (error) => page.wrong.push(`error: ${error.message}`));
	page.on("dialog", (dialog) => {
		page.wrong.push(`dialog: ${dialog.message()}`);
		dialog.dismiss();
	});
	page.on("request", (request) => {
		if (!request.url().startsWith(url) && !request.url().startsWith("data:"))
			page.wrong.push(`request to ${request.url()}`);
	});
	await page.goto(url);
	await page.locator(".tile").first().waitFor();
	return page;
}

async function closePage(page, expected = []) {
	equal(
		page.wrong.filter((line) => !expected.some((one) => line.includes(one))),
		[],
		"what went wrong in the page",
	);
	await page.context().close();
}

// The texts of a row of a table, by the titles of its columns; null if it is not there. Of more
// tables with such rows, @board names one.
async function row(page, name, board = null) {
	return page.evaluate(
		([key, of]) => {
			const within = of ? `[data-board="${of}"] ` : "";
			const line = document.querySelector(
				`${within}tr[data-name="${CSS.escape(key)}"]`,
			);
			if (!line) return null;
			const titles = [...line.closest("table").querySelectorAll("thead th")].map(
				(th) => th.textContent,
			);
			return Object.fromEntries(
				[...line.children].map((cell, i) => [titles[i], cell.textContent]),
			);
		},
		[name, board],
	);
}

// Text whose contrast to what is behind it is below that of WCAG AA. Runs in the page. Colours that
// change slowly are judged as they are in the end.
function lowContrast() {
	for (const animation of document.getAnimations()) animation.finish();
	const parse = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
	const luminance = ([r, g, b]) => {
		const [x, y, z] = [r, g, b]
			.map((c) => c / 255)
			.map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
		return 0.2126 * x + 0.7152 * y + 0.0722 * z;
	};
	const ground = (node) => {
		for (; node; node = node.parentElement) {
			const color = parse(getComputedStyle(node).backgroundColor);
			if (color.length === 3 || color[3] === 1) return color;
		}
		return [255, 255, 255];
	};
	const found = [];
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let text = walker.nextNode(); text; text = walker.nextNode()) {
		const node = text.parentElement;
		if (
			!text.textContent.trim() ||
			!node.checkVisibility() ||
			node.closest(":disabled, .skip, script, title")
		)
			continue;
		let opacity = 1;
		for (let one = node; one; one = one.parentElement)
			opacity *= Number(getComputedStyle(one).opacity);
		const style = getComputedStyle(node),
			behind = ground(node);
		const color = parse(node.namespaceURI.endsWith("svg") ? style.fill : style.color)
			.slice(0, 3)
			.map((c, i) => c * opacity + behind[i] * (1 - opacity));
		const [a, b] = [luminance(color), luminance(behind)].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5)
			found.push(`${text.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
	}
	return found;
}

const tests = [];
const test = (name, run) => tests.push({name, run});

async function runTests(names) {
	let chromium;
	try {
		({chromium} = require("playwright-core"));
	} catch {
		console.log("1..0 # SKIP no playwright-core: tools/vm/setup browser");
		return 0;
	}
	const browser = await chromium.launch({
		executablePath: process.env.CHROMIUM,
		args: ["--no-sandbox", "--disable-dev-shm-usage"],
	});
	const chosen = tests.filter(
		({name}) => !names.length || names.some((one) => name.includes(one)),
	);
	let failed = 0;
	console.log(`1..${chosen.length}`);
	for (const [i, {name, run}] of chosen.entries()) {
		try {
			await run(browser);
			console.log(`ok ${i + 1} - ${name}`);
		} catch (error) {
			failed++;
			for (const line of String(error.stack).split("\n"))
				console.log(`# ${line}`);
			console.log(`not ok ${i + 1} - ${name}`);
		}
		for (const context of browser.contexts()) await context.close();
		for (const program of [...running]) await program.close();
	}
	await browser.close();
	return failed || !chosen.length ? 1 : 0;
}

module.exports = {
	Client,
	Program,
	TOKEN,
	Twheelq,
	closePage,
	equal,
	freePort,
	holds,
	lowContrast,
	openPage,
	row,
	runTests,
	sleep,
	test,
	until,
};
