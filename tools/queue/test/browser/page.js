// SPDX-License-Identifier: GPL-2.0
// The page of twheelq in Chromium: it shows what the protocol says, each action does what it says,
// and what others put into jobs does nothing in it.
"use strict";

const path = require("node:path");
const {
	TOKEN,
	Twheelq,
	closePage,
	equal,
	holds,
	lowContrast,
	openPage,
	row,
	runTests,
	sleep,
	test,
	until,
} = require("../../../test/browser/lib.js");

const HOSTILE = [
	"<script>window.hit = 1</script>",
	"<img src=x onerror='window.hit = 1'>",
	"\u202egnp.exe\u202c",
	"javascript:window.hit=1",
	"\"'`${window.hit=1}&amp;<b>",
	"a\0b\x1b[31m\u2028",
	"</td></table><svg onload=alert(1)>",
];

async function started(options) {
	const daemon = await new Twheelq(options).start();
	return {daemon, client: daemon.client()};
}

async function ids(page) {
	return page
		.locator("#jobs tbody tr")
		.evaluateAll((rows) => rows.map((one) => one.dataset.id));
}

async function openTube(page, daemon, tube, state = "") {
	await page.goto(
		`${daemon.url}#/tube/${encodeURIComponent(tube)}${state ? "/" + state : ""}`,
	);
	await page.locator(`h2:text-is("${tube}")`).waitFor();
}

// Controls and pictures that a screen reader has no name for; runs in the page.
function withoutName() {
	return [...document.querySelectorAll("button, input, a[href], [role=img]")]
		.filter(
			(node) =>
				!(
					node.getAttribute("aria-label") ||
					node.textContent.trim() ||
					node.labels?.length
				),
		)
		.map((node) => node.outerHTML.slice(0, 80));
}

async function unlock(page) {
	await page.locator("#lock").click();
	await page.locator("#token").fill(TOKEN);
	await page.getByRole("button", {name: "Unlock", exact: true}).last().click();
	await page.locator("#lock:text-is('Lock')").waitFor();
}

async function said(page, text) {
	await until(
		async () => (await page.locator("#said").textContent()) === text,
		async () => `${text}, but: ${await page.locator("#said").textContent()}`,
	);
}

test("tubes_are_shown_with_the_numbers_of_the_protocol_and_live", async (browser) => {
	const {daemon, client} = await started();
	await client.ask("policy mails 1 1s 2 1h 0");
	await client.ask("use mails");
	for (let i = 0; i < 5; i++) await client.put("x", {delay: i < 3 ? 0 : 1000});
	await client.ask("watch mails");
	await client.ask("reserve-with-timeout 0");
	const page = await openPage(browser, daemon.url);
	const same = async () => {
		const stats = await client.stats("stats-tube mails"),
			shown = await row(page, "mails");
		return (
			shown &&
			shown.Ready === stats["current-jobs-ready"] &&
			shown.Delayed === stats["current-jobs-delayed"] &&
			shown.Reserved === stats["current-jobs-reserved"] &&
			shown.Buried === stats["current-jobs-buried"]
		);
	};
	await until(same, async () => JSON.stringify(await row(page, "mails")));
	equal((await row(page, "mails")).Ready, "2");
	await client.bury("mails", "x", "no");
	await client.put("x");
	await until(same, "the new numbers");
	await until(
		async () =>
			(await row(page, "mails")).Dead === "1" &&
			(await row(page, "mails.dead")).Buried === "1",
		"the dead one",
	);
	const tiles = await page
		.locator(".tile")
		.evaluateAll((all) =>
			Object.fromEntries(
				all.map((one) => [
					one.dataset.key,
					one.querySelector("span").textContent,
				]),
			),
		);
	equal([tiles.ready, tiles.delayed, tiles.reserved, tiles.buried], ["3", "2", "1", "1"]);
	await client.ask("use another-tube");
	await client.put("x");
	await until(async () => await row(page, "another-tube"), "a new tube");
	await closePage(page);
});

test("tubes_are_sorted_filtered_and_paged", async (browser) => {
	const {daemon, client} = await started();
	for (let i = 0; i < 120; i++) {
		await client.ask(`use tube-${String(i).padStart(3, "0")}`);
		for (let k = 0; k < i % 7; k++) await client.put("x");
	}
	const page = await openPage(browser, daemon.url);
	const names = () =>
		page
			.locator("[data-board] tbody tr")
			.evaluateAll((rows) => rows.map((one) => one.dataset.name));
	// Tubes without jobs, and without clients that use them, are gone: i % 7 is 0.
	await until(async () => (await names()).length === 50, names);
	await page.getByRole("button", {name: "Ready", exact: true}).click();
	await until(
		async () => (await row(page, (await names())[0]))?.Ready === "6",
		"the largest first",
	);
	const ready = await page
		.locator("[data-board] tbody tr")
		.evaluateAll((rows) => rows.map((one) => Number(one.children[2].textContent)));
	equal(
		ready,
		[...ready].sort((a, b) => b - a),
	);
	equal(await page.locator("th[aria-sort=descending]").textContent(), "Ready");
	await page.getByRole("button", {name: "Next"}).click();
	await until(
		async () => (await page.locator(".pager").textContent()).includes("51 to 100"),
		"the next page",
	);
	await page.keyboard.press("/");
	await page.keyboard.type("E-11");
	await until(
		async () =>
			(await names()).every((name) => name.includes("tube-11")) &&
			(await names()).length > 5,
		names,
	);
	await closePage(page);
});

test("lists_of_jobs_are_those_of_the_protocol", async (browser) => {
	const {daemon, client} = await started();
	await client.ask("use t");
	for (let i = 0; i < 70; i++) await client.put(`body ${i}`, {pri: (i * 7) % 5});
	for (let i = 0; i < 4; i++) await client.put("later", {delay: 500 + i});
	await client.ask("watch t");
	for (let i = 0; i < 3; i++) await client.ask("reserve-with-timeout 0");
	const buried = await client.put("x");
	await client.ask(`reserve-job ${buried}`);
	await client.ask(`bury ${buried} 0`);
	const page = await openPage(browser, daemon.url);
	await openTube(page, daemon, "t");
	for (const state of ["ready", "delayed", "reserved", "buried"]) {
		await page.locator(`#tab-${state}`).click();
		const want = await client.list("t", state);
		await until(
			async () =>
				JSON.stringify(await ids(page)) ===
				JSON.stringify(want.slice(0, 50)),
			`${state}: ${want}`,
		);
	}
	await page.locator("#tab-ready").click();
	await page.locator("#jobs").getByRole("button", {name: "Next"}).click();
	const want = await client.list("t", "ready");
	await until(
		async () => JSON.stringify(await ids(page)) === JSON.stringify(want.slice(50)),
		"the second page",
	);
	await page.locator("#jobs").getByRole("button", {name: "Back"}).click();
	await until(async () => (await ids(page)).length === 50, "the first page");
	// It is live: a more urgent job comes first.
	await client.ask("use t");
	const urgent = await client.put("x", {pri: 0});
	await client.ask("kick-job 1");
	await until(async () => (await ids(page)).includes(urgent), "a job that was put meanwhile");
	await closePage(page);
});

test("next_and_back_go_one_page_further_however_late_its_jobs_are", async (browser) => {
	const {daemon, client} = await started();
	const page = await openPage(browser, daemon.url);
	// No answer comes between two clicks of one script.
	const clicks = (...names) =>
		page.evaluate((all) => {
			const named = (name) =>
				[...document.querySelectorAll("#jobs button")].find(
					(button) => button.textContent === name,
				);
			for (const name of all)
				(document.querySelector(`#tab-${name}`) ?? named(name)).click();
		}, names);
	const shows = (number, jobs) =>
		until(
			async () =>
				(await page.locator("#jobs .pager").textContent()).includes(
					`page ${number}`,
				) && JSON.stringify(await ids(page)) === JSON.stringify(jobs),
			`page ${number}`,
		);

	await client.ask("use t");
	for (let i = 0; i < 170; i++) await client.put("x");
	await openTube(page, daemon, "t");
	const want = await client.list("t", "ready");
	await clicks("buried", "ready", "Next");
	await shows(1, want.slice(0, 50));
	await clicks("Next", "Next");
	await shows(2, want.slice(50, 100));
	await clicks("Next");
	await shows(3, want.slice(100, 150));
	await clicks("Back", "Back", "Back");
	await shows(1, want.slice(0, 50));
	await closePage(page);
});

test("a_body_is_shown_as_json_text_or_hex", async (browser) => {
	const {daemon, client} = await started({options: ["--max-job-size", "2M"]});
	await client.ask("use t");
	const json = await client.put(
		'{"b":[1,{"c":12345678901234567890123}],"e":{},"s":"a,b:{}"}',
	);
	const text = await client.put("caf\u00e9\tline 1\nline 2");
	const binary = await client.put(Buffer.from([0, 1, 2, 0xff, 65, 66]));
	const long = await client.put("y".repeat(1048576));
	const empty = await client.put("");
	const page = await openPage(browser, daemon.url);
	await openTube(page, daemon, "t");
	const open = async (id) => {
		await page.getByRole("button", {name: `Job ${id}`, exact: true}).click();
		await page.locator("#body").waitFor();
		return {
			ways: await page.locator("dialog [data-way]").allTextContents(),
			shown: await page.locator("#body").textContent(),
		};
	};
	const close = () => page.keyboard.press("Escape");
	equal(await open(json), {
		ways: ["JSON", "Text", "Hex"],
		shown: '{\n  "b": [\n    1,\n    {\n      "c": 12345678901234567890123\n    }\n  ],\n  "e": {},\n  "s": "a,b:{}"\n}',
	});
	await page.locator("[data-way=Hex]").click();
	holds((await page.locator("#body").textContent()).startsWith("0000  7b 22 62 22"), "hex");
	await close();
	equal(await open(text), {ways: ["Text", "Hex"], shown: "caf\u00e9\tline 1\nline 2"});
	await close();
	equal(await open(binary), {
		ways: ["Hex"],
		shown: `0000  ${"00 01 02 ff 41 42".padEnd(48)} ....AB`,
	});
	await close();
	const cut = await open(long);
	equal(cut.shown.length, 4096);
	equal(await page.locator("#cut").textContent(), "The first 4.1 kB of 1.0 MB.");
	await close();
	equal((await open(empty)).shown, "");
	await close();
	await closePage(page);
});

test("actions_take_the_right_token", async (browser) => {
	const {daemon, client} = await started();
	await client.ask("use t");
	const id = await client.put("x", {delay: 1000});
	const page = await openPage(browser, daemon.url);
	await openTube(page, daemon, "t");
	await page.getByRole("button", {name: `Job ${id}`, exact: true}).click();
	await page.getByRole("button", {name: "Kick: make it ready"}).click();
	await page.locator("#token").fill("not-the-right-token");
	await page.getByRole("button", {name: "Unlock", exact: true}).last().click();
	await page.getByText("The token is missing or wrong.").waitFor();
	equal((await client.stats(`stats-job ${id}`)).state, "delayed");
	await page.locator("#token").fill(TOKEN);
	await page.keyboard.press("Enter");
	await said(page, "KICKED");
	equal((await client.stats(`stats-job ${id}`)).state, "ready");
	await page.locator("#lock").click();
	equal(await page.evaluate(() => sessionStorage.length), 0);
	await closePage(page, ["401"]);
});

test("each_action_does_what_it_says", async (browser) => {
	const {daemon, client} = await started();
	await client.ask("use t");
	const jobs = [];
	for (let i = 0; i < 6; i++) jobs.push(await client.put("x", {delay: 1000}));
	const page = await openPage(browser, daemon.url);
	await unlock(page);
	await openTube(page, daemon, "t", "delayed");
	await page.getByRole("button", {name: `Job ${jobs[0]}`, exact: true}).click();
	await page.getByRole("button", {name: "Delete\u2026"}).click();
	await page.getByRole("button", {name: "Delete it"}).click();
	await said(page, "DELETED");
	equal((await client.ask(`peek ${jobs[0]}`)).line, "NOT_FOUND");

	await page.getByRole("button", {name: "Kick\u2026"}).click();
	await page.locator("#field-count").fill("2");
	await page.getByRole("button", {name: "Kick", exact: true}).click();
	await said(page, "KICKED 2");
	equal((await client.stats("stats-tube t"))["current-jobs-ready"], "2");

	await page.getByRole("button", {name: "Pause\u2026"}).click();
	await page.locator("#field-duration").fill("2h");
	await page.getByRole("button", {name: "Pause", exact: true}).click();
	await said(page, "PAUSED");
	equal((await client.stats("stats-tube t")).pause, "7200");
	await page.locator(".badge:has-text('paused for')").waitFor();

	await page.getByRole("button", {name: "Policy\u2026"}).click();
	for (const [name, value] of Object.entries({
		attempts: "7",
		base: "3s",
		factor: "1.5",
		cap: "5m",
		jitter: "20",
		dead: "graves",
	}))
		await page.locator(`#field-${name}`).fill(value);
	await page.getByRole("button", {name: "Set policy"}).click();
	await said(page, "POLICY");
	const stats = await client.stats("stats-tube t");
	equal(
		["max-attempts", "base-ms", "factor", "cap-ms", "jitter-percent", "dead-tube"].map(
			(key) => stats[`policy-${key}`],
		),
		["7", "3000", "1.5", "300000", "20", "graves"],
	);
	await page
		.getByText(
			"Policy: 7 attempts, after 3 s, \u00d7 1.5, at most 5 m, \u00b1 20 %; then graves.",
		)
		.waitFor();
	await page.getByRole("button", {name: "Policy\u2026"}).click();
	await page.getByRole("button", {name: "Take the policy away"}).click();
	await until(
		async () => (await client.stats("stats-tube t")).policy === "default",
		"the default policy",
	);

	await page.getByRole("button", {name: "Purge\u2026"}).click();
	holds(
		await page.getByRole("button", {name: "Delete all that are delayed"}).isDisabled(),
		"it wants the tube's name",
	);
	await page.locator("#word").fill("t");
	await page.getByRole("button", {name: "Delete all that are delayed"}).click();
	await said(page, "PURGED 3");
	equal(
		[
			(await client.stats("stats-tube t"))["current-jobs-delayed"],
			(await client.stats("stats-tube t"))["current-jobs-ready"],
		],
		["0", "2"],
	);
	await closePage(page);
});

test("all_dead_jobs_of_a_reason_are_retried", async (browser) => {
	const {daemon, client} = await started();
	await client.ask("policy t 1 1s 2 1h 0");
	const ids_ = [];
	for (let i = 0; i < 9; i++)
		ids_.push(await client.bury("t", "x", i % 3 ? "mailbox full" : "no route"));
	const page = await openPage(browser, daemon.url);
	await unlock(page);
	await openTube(page, daemon, "t.dead");
	const reason = page.locator("[data-reason]", {hasText: "mailbox full"});
	equal(await reason.locator("td").first().textContent(), "6");
	await reason.getByRole("button", {name: "Retry all"}).click();
	await page.locator("dialog").getByRole("button", {name: "Retry all"}).click();
	await said(page, "KICKED 6");
	equal(
		await client.list("t", "ready"),
		ids_.filter((_, i) => i % 3),
	);
	await until(
		async () => (await page.locator("[data-reason]").count()) === 1,
		"the other reason is left",
	);
	await closePage(page);
});

test("hostile_texts_are_text", async (browser) => {
	const {daemon, client} = await started({options: ["--max-job-size", "2M"]});
	await client.ask("policy t 1 1s 2 1h 0");
	const bodies = [
		...HOSTILE.map((text) => Buffer.from(text)),
		Buffer.from(JSON.stringify({a: HOSTILE})),
		Buffer.concat([Buffer.from([0xff, 0xfe, 0x80]), Buffer.from(HOSTILE[0])]),
		Buffer.from(HOSTILE[1].repeat(40000)),
	];
	const jobs = [];
	for (const body of bodies) jobs.push(await client.bury("t", body, body.subarray(0, 1000)));
	const page = await openPage(browser, daemon.url);
	await unlock(page);
	for (const hash of [
		"#/tube/t.dead",
		"#/tube/%3Cimg%20src=x%20onerror=alert(1)%3E",
		"#/tube/%E0%A4%A",
		"#/<script>",
	]) {
		await page.goto(daemon.url + hash);
		await sleep(300);
	}
	await openTube(page, daemon, "t.dead");
	for (const id of jobs) {
		await page.getByRole("button", {name: `Job ${id}`, exact: true}).click();
		await page.locator("#body").waitFor();
		for (const way of await page.locator("dialog [data-way]").all()) await way.click();
		await page.keyboard.press("Escape");
	}
	const shown = await page.locator("#jobs td.reason").allTextContents();
	holds(
		shown.includes(HOSTILE[0]) &&
			shown.includes("U+202Egnp.exeU+202C") &&
			shown.includes("aU+0000bU+001B[31mU+2028"),
		JSON.stringify(shown),
	);
	await page.locator("[data-reason]", {hasText: "<img"}).first().getByRole("button").click();
	await page.keyboard.press("Escape");
	equal(
		await page.evaluate(() => [
			window.hit === undefined,
			document.querySelectorAll("script").length,
			document.querySelectorAll(
				"img, iframe, object, embed, svg[onload], [onerror]",
			).length,
		]),
		[true, 1, 0],
	);
	await closePage(page);
});

test("scripts_that_were_put_in_would_not_run", async (browser) => {
	const {daemon} = await started();
	const page = await openPage(browser, daemon.url);
	// As if the page had a hole: its policy stops what comes through.
	await page.evaluate(() => {
		document.body.insertAdjacentHTML(
			"beforeend",
			"<img src='data:,' onerror='window.hit = 1'>",
		);
		const script = document.createElement("script");
		script.textContent = "window.hit = 1";
		document.body.append(script);
	});
	await sleep(300);
	equal(await page.evaluate(() => window.hit === undefined), true);
	holds(
		page.wrong.some((line) => line.includes("Content Security Policy")),
		"the policy says so",
	);
	await closePage(page, ["Content Security Policy", "Content-Security-Policy"]);
});

test("a_daemon_that_is_restarted_is_found_again", async (browser) => {
	const {daemon, client} = await started();
	await client.ask("use t");
	await client.put("x");
	const page = await openPage(browser, daemon.url);
	await until(async () => await row(page, "t"), "the tube");
	client.close();
	await daemon.stop();
	await page.locator("#lost").waitFor({state: "visible"});
	await daemon.start();
	await page.locator("#lost").waitFor({state: "hidden"});
	const again = daemon.client();
	await again.ask("use t");
	await again.put("x");
	await until(async () => (await row(page, "t"))?.Ready === "2", "the new number");
	await closePage(page, ["net::ERR_", "Failed to load resource"]);
});

test("without_a_token_file_it_is_read_only", async (browser) => {
	const {daemon, client} = await started({token: false});
	await client.ask("policy t 1 1s 2 1h 0");
	const id = await client.bury("t", "x", "no");
	const page = await openPage(browser, daemon.url);
	await openTube(page, daemon, "t.dead");
	await page.getByRole("button", {name: `Job ${id}`, exact: true}).click();
	await page.locator("#body").waitFor();
	equal(
		await page
			.getByRole("button", {name: /Kick|Delete|Pause|Policy|Purge|Retry|Unlock/})
			.count(),
		0,
	);
	holds(await page.locator("#readonly").isVisible(), "it says so");
	await closePage(page);
});

test("the_keyboard_reaches_everything", async (browser) => {
	const {daemon, client} = await started();
	await client.ask("use t");
	await client.put("x", {delay: 1000});
	const page = await openPage(browser, daemon.url);
	await until(async () => await row(page, "t"), "the tube");
	const order = [];
	for (let i = 0; i < 30; i++) {
		await page.keyboard.press("Tab");
		const name = await page.evaluate(
			() =>
				document.activeElement.getAttribute("aria-label") ||
				document.activeElement.textContent,
		);
		if (!name || order.includes(name)) break;
		order.push(name);
		if (name === "t") break;
	}
	equal(order.slice(0, 5), [
		"Skip to the contents",
		"twheelq",
		"Change between light and dark",
		"Unlock",
		"Filter tubes by name",
	]);
	holds(order.at(-1) === "t" && order.includes("Ready"), order.join(", "));
	await page.keyboard.press("Enter");
	await page.locator("h2:text-is('t')").waitFor();
	await page.locator("#tab-delayed[aria-selected=true]").waitFor();
	await page.locator("#tab-delayed").focus();
	await page.keyboard.press("ArrowLeft");
	equal(await page.evaluate(() => document.activeElement.id), "tab-ready");
	await page.keyboard.press("ArrowRight");
	const job = page.locator("#jobs tbody button");
	await job.waitFor();
	await job.focus();
	await page.keyboard.press("Enter");
	await page.locator("#body").waitFor();
	holds(
		await page.evaluate(() => document.activeElement.closest("dialog") !== null),
		"the focus is in the dialog",
	);
	await page.keyboard.press("Escape");
	holds(
		await page.evaluate(() => /^\d+$/.test(document.activeElement.textContent)),
		"and comes back",
	);
	// It stays there while the list is renewed.
	await sleep(4000);
	holds(
		await page.evaluate(() => /^\d+$/.test(document.activeElement.textContent)),
		"and stays",
	);
	await closePage(page);
});

test("texts_have_contrast_controls_have_names_and_a_phone_has_room", async (browser) => {
	const {daemon, client} = await started();
	await client.ask("policy mails 1 1s 2 1h 0");
	for (const reason of [...HOSTILE, "mailbox full"])
		await client.bury("mails", '{"to":"ann"}', reason);
	for (let i = 0; i < 3; i++) await client.put("x", {delay: "20ms"});
	await until(
		async () => (await client.stats("stats"))["due-to-ready-count"] === "3",
		"lateness",
	);
	for (const colorScheme of ["light", "dark"]) {
		for (const viewport of [
			{width: 1280, height: 800},
			{width: 360, height: 740},
		]) {
			const page = await openPage(browser, daemon.url, {colorScheme, viewport});
			await until(async () => await row(page, "mails.dead"), "the tube");
			for (const show of [
				async () => {},
				() => openTube(page, daemon, "mails.dead"),
				async () => {
					await page.locator("#jobs tbody button").first().click();
					await page.locator("#body").waitFor();
				},
			]) {
				await show();
				equal(
					await page.evaluate(lowContrast),
					[],
					`${colorScheme}, ${viewport.width}: low contrast`,
				);
				equal(
					await page.evaluate(
						() =>
							document.documentElement.scrollWidth <=
							innerWidth,
					),
					true,
					`${viewport.width}: it is too wide`,
				);
				equal(await page.evaluate(withoutName), [], "without a name");
			}
			await page.keyboard.press("Escape");
			await closePage(page);
		}
	}
});

test("controls_have_names_before_the_first_frame", async (browser) => {
	const {daemon, client} = await started();
	await client.put("a");
	const page = await openPage(browser, daemon.url);
	await page.route("**/api/events*", () => {});
	await openTube(page, daemon, "default");
	equal(await page.evaluate(withoutName), [], "without a name");
	equal(await page.locator("#tab-ready").textContent(), "Ready");
	await page.unroute("**/api/events*", {behavior: "ignoreErrors"});
	await closePage(page);
});

// --- screenshots -------------------------------------------------------------------------

// Load for the pictures: producers, workers, and failures, for @minutes.
async function load(daemon, minutes) {
	const client = daemon.client(),
		reasons = [
			"mailbox full",
			"mailbox full",
			"connection refused: smtp.example.org:25",
			"timeout after 30 s",
			"550 5.1.1 no such user",
		];
	const tubes = ["billing", "mails", "reports.daily", "thumbnails", "webhooks"];
	const end = Date.now() + minutes * 60000;
	await client.ask("policy mails 1 1s 2 1h 0");
	await client.ask("policy webhooks 3 30s 2 1h 10");
	for (const tube of tubes) await client.ask(`watch ${tube}`);
	for (let turn = 0; Date.now() < end; turn++) {
		const wave = 1 + Math.sin(turn / 400);
		for (const [i, tube] of tubes.entries()) {
			if (Math.random() > (i === 2 ? 0.01 : 0.2 * (i + 1)) * wave) continue;
			await client.ask(`use ${tube}`);
			await client.put(
				`{"to":"user${turn}@example.org","template":"welcome","tries":[1,2],"order":{"id":${turn * 17},"total":"12.50"}}`,
				{
					pri: (turn % 3) * 100,
					delay:
						Math.random() < 0.3
							? `${Math.floor(Math.random() * 300)}`
							: Math.random() < 0.3
								? "2s"
								: 0,
				},
			);
		}
		for (let n = 0; n < (turn % 900 < 300 ? 1 : 3); n++) {
			const {line} = await client.ask("reserve-with-timeout 0");
			if (!line.startsWith("RESERVED")) break;
			const id = line.split(" ")[1],
				reason = Buffer.from(
					reasons[Math.floor(Math.random() * reasons.length)],
				);
			await client.ask(
				turn % 40 === 7 ? `fail ${id} ${reason.length}` : `delete ${id}`,
				turn % 40 === 7 ? reason : null,
			);
		}
		await sleep(80);
	}
	return client;
}

// The load goes on meanwhile.
async function takeScreenshots(browser, folder, minutes) {
	const {daemon} = await started();
	const end = Date.now() + minutes * 60000;
	load(daemon, minutes + 3).catch(() => {});
	while (Date.now() < end) await sleep(1000);
	const shoot = async (name, options, show = async () => {}) => {
		const page = await openPage(browser, daemon.url, options);
		await sleep(2500);
		await show(page);
		await sleep(1500);
		await page.evaluate(() => document.activeElement.blur());
		await page.screenshot({path: path.join(folder, `page-${name}.png`)});
		await closePage(page);
	};
	await shoot("tubes", {viewport: {width: 1200, height: 660}, colorScheme: "light"});
	await shoot("dark", {viewport: {width: 1200, height: 660}, colorScheme: "dark"});
	await shoot("dead", {viewport: {width: 1200, height: 860}, colorScheme: "light"}, (page) =>
		openTube(page, daemon, "mails.dead"),
	);
	await shoot("tube", {viewport: {width: 1200, height: 700}, colorScheme: "dark"}, (page) =>
		openTube(page, daemon, "mails"),
	);
	await shoot(
		"job",
		{viewport: {width: 1200, height: 760}, colorScheme: "light"},
		async (page) => {
			await openTube(page, daemon, "mails.dead");
			await page.locator("#jobs tbody button").first().click();
		},
	);
	await shoot("phone", {
		viewport: {width: 390, height: 780},
		colorScheme: "dark",
		deviceScaleFactor: 2,
		isMobile: true,
		hasTouch: true,
	});
}

async function main(words) {
	if (words[0] !== "--screenshots") return runTests(words);
	const {chromium} = require("playwright-core");
	const browser = await chromium.launch({
		executablePath: process.env.CHROMIUM,
		args: ["--no-sandbox"],
	});
	try {
		await takeScreenshots(browser, words[1], Number(words[2] ?? 11));
	} finally {
		await browser.close();
	}
	return 0;
}

main(process.argv.slice(2)).then(
	(status) => process.exit(status),
	(error) => {
		console.error(error);
		process.exit(1);
	},
);
