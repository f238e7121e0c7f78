// SPDX-License-Identifier: GPL-2.0
// The page of twheel-relay in Chromium, on librdkafka's mock cluster: it shows what /metrics says,
// a target that cannot be written stands out, and there is nothing that changes anything.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const {spawn} = require("node:child_process");
const {
	Program,
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
} = require("../../../test/browser/lib.js");

const TOPICS = ["delays", "delays-done", "delays-cancelled", "delays.invalid"];
const TARGETS = ["mails", "bills"];

// Widths of buckets with --horizon 2s: 10 s, 60 s, and those that double from the horizon on.
function widths() {
	const all = [10, 60];
	for (let width = 2; width <= 30 * 24 * 3600; width *= 2) all.push(width);
	return all;
}

class Cluster extends Program {
	async start() {
		this.process = spawn(process.env.MOCK_CLUSTER, [], {
			stdio: ["pipe", "pipe", "ignore"],
		});
		this.ended = new Promise((resolve) => {
			this.process.on("exit", resolve);
		});
		this.lines = [];
		let rest = "";
		this.process.stdout.on("data", (data) => {
			const lines = (rest + data).split("\n");
			rest = lines.pop();
			this.lines.push(...lines);
		});
		this.brokers = await until(() => this.lines.shift(), "the cluster");
		for (const topic of [
			...TOPICS,
			...TARGETS,
			...widths().map((width) => `delays-b${width}s`),
		])
			await this.tell(`topic ${topic} ${topic === "delays.invalid" ? 1 : 4}`);
		return this;
	}

	async tell(line) {
		this.process.stdin.write(`${line}\n`);
		equal(await until(() => this.lines.shift(), line), "ok", line);
	}

	// Records with headers, a body each.
	async produce(bodies, headers) {
		const words = ["-P", "-b", this.brokers, "-t", "delays", "-p", "-1"];
		for (const [name, value] of Object.entries(headers))
			words.push("-H", `${name}=${value}`);
		const kcat = spawn("kcat", words, {stdio: ["pipe", "ignore", "ignore"]});
		kcat.stdin.end(`${bodies.join("\n")}\n`);
		equal(await new Promise((resolve) => {
			kcat.on("exit", resolve);
		}), 0, "kcat");
	}
}

class Relay extends Program {
	async start(cluster) {
		this.http ??= await freePort();
		this.url = `http://127.0.0.1:${this.http}/`;
		this.spawn(process.env.TWHEEL_RELAY, [
			"--brokers",
			cluster.brokers,
			"--http",
			`127.0.0.1:${this.http}`,
			"--wheel",
			"process",
			"--horizon",
			"2s",
			"--hold",
			"1s",
		]);
		await until(
			() => this.metrics().then((all) => all.twheel_relay_partitions > 0, () => false),
			() => this.said(),
		);
		return this;
	}

	// Names with their labels, and numbers.
	async metrics() {
		const answer = await fetch(`${this.url}metrics`);
		return Object.fromEntries(
			(await answer.text())
				.split("\n")
				.filter((line) => line && !line.startsWith("#"))
				.map((line) => /^(.*) (\S+)$/.exec(line))
				.map(([, name, value]) => [name, Number(value)]),
		);
	}
}

async function started() {
	const cluster = await new Cluster().start();
	return {cluster, relay: await new Relay().start(cluster)};
}

async function names(page, board) {
	return page
		.locator(`[data-board="${board}"] tbody tr`)
		.evaluateAll((rows) => rows.map((one) => one.dataset.name));
}

async function tile(page, key) {
	return page.locator(`.tile[data-key="${key}"] span`).first().textContent();
}

const bodies = (count) => Array.from({length: count}, (_, i) => `record ${i}`);

// --- tests -------------------------------------------------------------------------------

test("targets_topics_and_partitions_are_shown_as_the_metrics_have_them", async (browser) => {
	const {cluster, relay} = await started();
	await cluster.produce(bodies(50), {"twheel-target": "mails", "twheel-delay": 0});
	await cluster.produce(bodies(30), {"twheel-target": "bills", "twheel-delay": 3600000});
	const page = await openPage(browser, relay.url);
	await until(async () => (await names(page, "targets")).includes("mails"), "the target");
	await until(
		async () =>
			(await relay.metrics())['twheel_relay_target_written_total{target="mails"}'] === 50,
		async () => JSON.stringify(await relay.metrics()),
	);
	const metrics = await relay.metrics();
	equal(Number(await tile(page, "partitions")), metrics.twheel_relay_partitions);
	const topics = await names(page, "topics");
	for (const topic of ["delays", ...widths().map((width) => `delays-b${width}s`)]) {
		holds(topics.includes(topic), `${topic} is missing`);
		equal((await row(page, topic, "topics")).Partitions, "4", topic);
	}
	// Those for bills wait in a bucket, where the relay leaves them unread.
	const waiting = async () => {
		let sum = 0;
		for (const topic of await names(page, "topics"))
			sum += Number((await row(page, topic, "topics")).Waiting);
		return sum;
	};
	await until(async () => (await waiting()) === 30, async () => `${await waiting()} wait`);
	await closePage(page);
});

test("a_target_that_cannot_be_written_stands_out_until_it_can", async (browser) => {
	const {cluster, relay} = await started();
	const page = await openPage(browser, relay.url);
	await cluster.tell("topic-error mails TOPIC_AUTHORIZATION_FAILED");
	await cluster.produce(bodies(20), {"twheel-target": "mails", "twheel-delay": 0});
	await cluster.produce(bodies(20), {"twheel-target": "bills", "twheel-delay": 0});
	const bad = () =>
		page
			.locator('[data-board="targets"] tbody tr[data-name="mails"] td.bad')
			.count();
	await until(async () => (await bad()) > 0, async () => JSON.stringify(await row(page, "mails", "targets")));
	equal(
		await page
			.locator('[data-board="targets"] tbody tr[data-name="bills"] td.bad')
			.count(),
		0,
		"the good one",
	);
	await cluster.tell("topic-error mails NO_ERROR");
	await until(
		async () =>
			(await relay.metrics())['twheel_relay_target_failing{target="mails"}'] === 0 &&
			(await relay.metrics())['twheel_relay_target_written_total{target="mails"}'] === 20,
		"the target is written again",
	);
	await until(async () => (await row(page, "mails", "targets")).Held === "0", "nothing is held");
	await closePage(page);
});

test("targets_that_cannot_be_topics_are_counted_as_invalid_and_not_shown", async (browser) => {
	const {cluster, relay} = await started();
	const page = await openPage(browser, relay.url);
	for (const target of [
		"<script>window.hit = 1</script>",
		"<img src=x onerror='window.hit = 1'>",
		"\u202egnp.exe",
	])
		await cluster.produce(["x"], {"twheel-target": target, "twheel-delay": 0});
	await until(async () => (await tile(page, "invalid")) === "3", () => tile(page, "invalid"));
	equal(await page.evaluate(() => window.hit), undefined);
	equal(await names(page, "targets").then((all) => all.filter((one) => /[<\u202e]/.test(one))), []);
	await closePage(page);
});

test("there_is_nothing_that_changes_anything", async (browser) => {
	const {relay} = await started();
	const page = await openPage(browser, relay.url);
	holds(await page.locator("#readonly").isVisible(), "it says so");
	holds(!(await page.locator("#lock").isVisible()), "no token is asked for");
	for (const place of ["", "metrics", "act", "healthz"]) {
		const answer = await fetch(`${relay.url}${place}`, {
			method: "POST",
			headers: {Origin: relay.url.slice(0, -1)},
		});
		holds(answer.status >= 400, `POST /${place}: ${answer.status}`);
	}
	await closePage(page);
});

test("a_relay_that_is_restarted_is_found_again", async (browser) => {
	const {cluster, relay} = await started();
	const page = await openPage(browser, relay.url);
	equal(await relay.stop(), 0, relay.said());
	await page.locator("#lost").waitFor({state: "visible"});
	await relay.start(cluster);
	await page.locator("#lost").waitFor({state: "hidden"});
	await closePage(page, ["net::ERR_", "Failed to load resource"]);
});

test("texts_have_contrast_and_a_phone_has_room", async (browser) => {
	const {cluster, relay} = await started();
	await cluster.tell("topic-error mails TOPIC_AUTHORIZATION_FAILED");
	await cluster.produce(bodies(5), {"twheel-target": "mails", "twheel-delay": 0});
	await cluster.produce(bodies(5), {"twheel-target": "bills", "twheel-delay": 0});
	for (const colorScheme of ["light", "dark"]) {
		for (const viewport of [
			{width: 1280, height: 800},
			{width: 360, height: 740},
		]) {
			const page = await openPage(browser, relay.url, {colorScheme, viewport});
			await until(async () => await row(page, "mails", "targets"), "the target");
			equal(await page.evaluate(lowContrast), [], `${colorScheme}: low contrast`);
			holds(
				await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
				`${viewport.width}: it is too wide`,
			);
			await closePage(page);
		}
	}
});

// --- screenshots -------------------------------------------------------------------------

// One target that cannot be written among good ones, and records that are due over the next hour.
async function load(cluster, minutes) {
	const end = Date.now() + minutes * 60000;
	await cluster.tell("topic-error bills TOPIC_AUTHORIZATION_FAILED");
	for (let turn = 0; Date.now() < end; turn++) {
		const count = 20 + Math.round(15 * Math.sin(turn / 30));
		await cluster.produce(bodies(count), {"twheel-target": "mails", "twheel-delay": 3000});
		await cluster.produce(bodies(5), {"twheel-target": "webhooks", "twheel-delay": 1000});
		if (turn % 20 === 0)
			await cluster.produce(bodies(200), {
				"twheel-target": "mails",
				"twheel-delay": (1 + (turn % 7)) * 400000,
			});
		if (turn % 50 === 7)
			await cluster.produce(["x"], {"twheel-target": "bills", "twheel-delay": 0});
		await sleep(200);
	}
}

async function takeScreenshots(folder, minutes) {
	const {chromium} = require("playwright-core");
	const browser = await chromium.launch({
		executablePath: process.env.CHROMIUM,
		args: ["--no-sandbox"],
	});
	const {cluster, relay} = await started();
	await cluster.tell("topic webhooks 4");
	await load(cluster, minutes);
	load(cluster, 1).catch(() => {});
	fs.mkdirSync(folder, {recursive: true});
	const page = await openPage(browser, relay.url);
	await sleep(2500);
	await page.screenshot({path: path.join(folder, "page.png")});
	await browser.close();
	await relay.close();
	await cluster.close();
	return 0;
}

const words = process.argv.slice(2);
(words[0] === "--screenshots" ? takeScreenshots(words[1], Number(words[2])) : runTests(words)).then(
	(status) => process.exit(status),
	(error) => {
		console.error(error);
		process.exit(1);
	},
);
