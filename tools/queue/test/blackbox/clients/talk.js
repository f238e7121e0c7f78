// SPDX-License-Identifier: GPL-2.0
// A conversation with a daemon, by one of the libraries of beanstalkd's clients; or a worker.
//
// Usage: NODE_PATH=DIR node talk.js LIBRARY HOST PORT [TUBE]
//
// A worker takes the jobs of the tube and does what their bodies say:
//
//	release		the job is released
//	crash		this is said, and the process ends at once, with status 3
//	slow		nothing, until its TTR of 200 ms is over
//	stop		the job is deleted, and the process ends
//	another		the job is deleted, and this is said
//
// The same is said with each library, through an adapter that gives it the same names. The
// status is 0 if all went as it must; else it says what did not.

'use strict';

const assert = require('assert');
const fs = require('fs');

// For functions with a callback of several values: a promise of an array of them.
function promised(client, name) {
	return (...args) => new Promise((resolve, reject) => {
		client[name](...args, (error, ...values) =>
			error ? reject(new Error(String(error))) : resolve(values));
	});
}

const adapters = {
	async beanstalkd(host, port) {
		const Client = require('beanstalkd').default;
		const client = await new Client(host, port).connect();
		const pair = ([id, body]) => ({ id: Number(id), body: Buffer.from(body) });

		return {
			use: (tube) => client.use(tube),
			watch: (tube) => client.watch(tube),
			ignore: (tube) => client.ignore(tube),
			put: async (body, pri, delay, ttr) => Number(await client.put(pri, delay, ttr, body)),
			reserve: async () => pair(await client.reserve()),
			reserveNow: async () => pair(await client.reserveWithTimeout(0)),
			release: (id, pri, delay) => client.release(id, pri, delay),
			bury: (id, pri) => client.bury(id, pri),
			touch: (id) => client.touch(id),
			remove: (id) => client.delete(id),
			kickJob: (id) => client.kickJob(id),
			peek: async (id) => pair([id, (await client.peek(id))[1]]),
			stats: () => client.stats(),
			statsTube: (tube) => client.statsTube(tube),
			statsJob: (id) => client.statsJob(id),
			listTubes: () => client.listTubes(),
			quit: () => client.quit(),
		};
	},

	async fivebeans(host, port) {
		const { client: Client } = require('fivebeans');
		const client = new Client(host, port);
		const call = (name) => promised(client, name);
		const first = (name) => async (...args) => (await call(name)(...args))[0];
		const pair = ([id, body]) => ({ id: Number(id), body: Buffer.from(body) });

		await new Promise((resolve, reject) => {
			client.on('connect', resolve).on('error', reject).connect();
		});
		return {
			use: first('use'),
			watch: first('watch'),
			ignore: first('ignore'),
			put: async (body, pri, delay, ttr) =>
				Number((await call('put')(pri, delay, ttr, body))[0]),
			reserve: async () => pair(await call('reserve')()),
			reserveNow: async () => pair(await call('reserve_with_timeout')(0)),
			release: call('release'),
			bury: call('bury'),
			touch: call('touch'),
			remove: call('destroy'),
			kick: async (bound) => Number((await call('kick')(bound))[0]),
			kickJob: call('kick_job'),
			peek: async (id) => pair(await call('peek')(id)),
			stats: first('stats'),
			statsTube: first('stats_tube'),
			statsJob: first('stats_job'),
			listTubes: first('list_tubes'),
			quit: () => client.end(),
		};
	},

	async 'node-beanstalk'(host, port) {
		const { Client } = require('node-beanstalk');
		const serializer = { serialize: Buffer.from, deserialize: (data) => data };
		const client = new Client({ host, port, serializer });
		const pair = (job) => job && { id: job.id, body: Buffer.from(job.payload) };

		await client.connect();
		return {
			use: (tube) => client.use(tube),
			watch: (tube) => client.watch(tube),
			ignore: (tube) => client.ignore(tube),
			put: async (body, pri, delay, ttr) => (await client.put(body, ttr, pri, delay)).id,
			reserve: async () => pair(await client.reserve()),
			reserveNow: async () => pair(await client.reserveWithTimeout(0)),
			release: (id, pri, delay) => client.release(id, pri, delay),
			bury: (id, pri) => client.bury(id, pri),
			touch: (id) => client.touch(id),
			remove: (id) => client.delete(id),
			kick: (bound) => client.kick(bound),
			kickJob: (id) => client.kickJob(id),
			peek: async (id) => pair(await client.peek(id)),
			stats: () => client.stats(),
			statsTube: (tube) => client.statsTube(tube),
			statsJob: (id) => client.statsJob(id),
			listTubes: () => client.listTubes(),
			quit: () => client.disconnect(),
		};
	},

	async jackd(host, port) {
		const Jackd = require('jackd');
		const client = new (Jackd.default || Jackd)();
		const pair = (job) => ({ id: Number(job.id), body: Buffer.from(job.payload) });

		await client.connect({ host, port });
		return {
			// It makes JSON of what is not a string.
			only_text: true,
			use: (tube) => client.use(tube),
			watch: (tube) => client.watch(tube),
			ignore: (tube) => client.ignore(tube),
			put: async (body, priority, delay, ttr) =>
				Number(await client.put(body.toString(), { priority, delay, ttr })),
			reserve: async () => pair(await client.reserve()),
			reserveNow: async () => pair(await client.reserveWithTimeout(0)),
			release: (id, priority, delay) => client.release(id, { priority, delay }),
			bury: (id, pri) => client.bury(id, pri),
			touch: (id) => client.touch(id),
			remove: (id) => client.delete(id),
			kick: (bound) => client.kick(bound),
			kickJob: (id) => client.kickJob(id),
			peek: async (id) => pair(await client.peek(id)),
			stats: () => client.stats(),
			statsTube: (tube) => client.statsTube(tube),
			statsJob: (id) => client.statsJob(id),
			listTubes: () => client.listTubes(),
			quit: () => client.quit(),
		};
	},
};

// Nothing is there: an error, or null, as the library likes.
async function finds_nothing(promise, what) {
	let value;

	try {
		value = await promise;
	} catch (error) {
		return;
	}
	assert(!value, `${what}: ${JSON.stringify(value)}`);
}

function is_job(job, id, body) {
	assert.strictEqual(job.id, id);
	assert(job.body.equals(Buffer.from(body)), `the body is ${job.body.slice(0, 100)}`);
}

// Libraries differ in whether stats are objects, and numbers in them are numbers.
function stat(stats, key) {
	const camel = key.replace(/-([a-z])/g, (_, letter) => letter.toUpperCase());
	let value = stats instanceof Map ? stats.get(key) : stats[key];

	if (value === undefined)
		value = stats[camel];
	if (value === undefined && typeof stats === 'string')
		value = stats.match(new RegExp(`^${key}: "?([^"\n]*)"?$`, 'm'))[1];
	assert.notStrictEqual(value, undefined, `no ${key} in ${JSON.stringify(stats)}`);
	return String(value);
}

async function conversation(client, tube) {
	const bytes = Buffer.from(Array.from({ length: 1024 }, (_, n) => n % 256));

	assert.strictEqual(await client.use(tube), tube);
	await client.watch(tube);
	await client.ignore('default');

	// Order, release, bury and kick.
	const first = await client.put('first', 10, 0, 60);
	const second = await client.put('second', 5, 0, 60);
	is_job(await client.reserve(), second, 'second');
	await client.touch(second);
	await client.release(second, 20, 0);
	is_job(await client.reserve(), first, 'first');
	assert.strictEqual(stat(await client.statsJob(first), 'state'), 'reserved');
	await client.bury(first, 15);
	assert.strictEqual(stat(await client.statsJob(first), 'state'), 'buried');
	assert.strictEqual(stat(await client.statsTube(tube), 'current-jobs-buried'), '1');
	if (client.kick)
		assert.strictEqual(await client.kick(10), 1);
	else
		await client.kickJob(first);
	is_job(await client.reserve(), first, 'first');
	await client.release(first, 15, 1000);
	assert.strictEqual(stat(await client.statsJob(first), 'state'), 'delayed');
	await client.kickJob(first);
	is_job(await client.reserve(), first, 'first');
	await client.remove(first);
	await finds_nothing(client.remove(first), 'a second delete');
	await finds_nothing(client.statsJob(first), 'stats of what was deleted');
	is_job(await client.reserve(), second, 'second');
	await client.remove(second);

	// A wait, and a delay.
	await finds_nothing(client.reserveNow(), 'an empty tube');
	const start = process.hrtime.bigint();
	const late = await client.put('late', 5, 1, 60);
	is_job(await client.reserve(), late, 'late');
	assert(process.hrtime.bigint() - start >= 1000000000n, 'a delay of 1 s came early');
	await client.remove(late);

	// Bytes.
	for (const body of [client.only_text ? Buffer.from('text') : bytes,
			    Buffer.alloc(60000, 'ä€'), Buffer.from('\r\n\r\nOK 5\r\n')]) {
		const id = await client.put(body, 5, 0, 60);
		is_job(await client.peek(id), id, body);
		is_job(await client.reserve(), id, body);
		await client.remove(id);
	}

	// Stats.
	assert((await client.listTubes()).includes(tube));
	assert(Number(stat(await client.stats(), 'current-connections')) >= 1);
	assert.strictEqual(stat(await client.statsTube(tube), 'current-jobs-ready'), '0');
	await finds_nothing(client.statsTube('no-such-tube'), 'stats of no tube');
}

async function work(client) {
	const { id, body } = await client.reserve();

	switch (String(body)) {
	case 'release':
		await client.release(id, 100, 0);
		break;
	case 'crash':
		fs.writeSync(1, `crashed ${id}\n`);
		process.exit(3);
		break;
	case 'slow':
		await new Promise((resolve) => setTimeout(resolve, 300));
		break;
	default:
		await client.remove(id);
		fs.writeSync(1, `deleted ${id}\n`);
	}
	return String(body) !== 'stop';
}

async function main(library, host, port, tube) {
	const client = await adapters[library](host, Number(port));

	if (tube) {
		await client.watch(tube);
		while (await work(client))
			;
	} else {
		await conversation(client, `${library}-1`);
	}
	await client.quit();
}

main(...process.argv.slice(2)).then(() => process.exit(0), (error) => {
	console.error(error && error.stack || error);
	process.exit(1);
});
