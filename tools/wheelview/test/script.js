// SPDX-License-Identifier: GPL-2.0
// A random script of adds and cancels, for the wheel in a page and in machine code.
"use strict";

// xorshift32: the same numbers everywhere.
function generator(seed) {
	let state = 2 * seed + 1;

	return () => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return (state >>> 0) / 2 ** 32;
	};
}

// Delays of all magnitudes, crowds at neighbouring ticks, slack, cancels of old and young
// events. Ticks go beyond 2^32, and some events are years ahead.
function makeScript(events, seed) {
	const random = generator(seed);
	const lines = [], due = [];
	let now = 2 ** 33 + 12345, crowd = 0;

	lines.push(`start ${now}`);
	while (due.length < events) {
		const what = random();

		if (what < 0.55) {
			const nr = random() < 0.005 ? 600 : 1;

			if (nr > 1)
				crowd = now + 40 + Math.floor(random() * 2 ** (6 + random() * 20));
			for (let i = 0; i < nr && due.length < events; i++) {
				const first = nr > 1 ? crowd + Math.floor(random() * 1000) :
					now + Math.floor(2 ** (random() * 34));
				const slack = random() < 0.3 ? Math.floor(2 ** (random() * 12)) : 0;

				lines.push(`add ${first} ${first + slack}`);
				due.push([first, first + slack]);
			}
		} else if (what < 0.8 && due.length) {
			lines.push(`cancel ${Math.floor(due.length * (1 - random() ** 3))}`);
		} else {
			now += Math.floor(2 ** (random() * 17));
			lines.push(`pass ${now}`);
		}
	}
	lines.push(`pass ${now + 2 ** 35}`);
	return { lines, due };
}

module.exports = { generator, makeScript };
