// SPDX-License-Identifier: GPL-2.0
//
// Node's setTimeout: a list for each delay, in whole ms, and a heap of lists. A program that
// has few different delays has short ways; here they are random, as is the harness of peer.c.
'use strict';

const fs = require('fs');

const SEED = 2463534242;
const PAIR_DELAY_US = 60000000;
const EXPIRE_SPREAD_US = 2; // for each timer
const EXPIRE_MARGIN_US = 20000;
const CHECK_DELAY_MS = 20;
const CHECK_SPREAD_MS = 300;
const SWEEP_BYTES = 64 << 20;

const WARM_TIMERS = 1000;
const WARM_PAIRS = 300000;
const WARM_EXPIRE_TIMES = 20;

let count;
let timers;
let isWarm = false;

// --- clocks, memory, random numbers ---

let random = SEED;

// xorshift32
function draw() {
  random ^= random << 13;
  random ^= random >>> 17;
  random ^= random << 5;
  return random >>> 0;
}

// setTimeout() rounds down.
function ms(us) {
  return Math.ceil(us / 1000);
}

function pairDelay() {
  return ms(PAIR_DELAY_US + draw() % PAIR_DELAY_US);
}

function cpuNs() {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

function nowUs() {
  return Number(process.hrtime.bigint()) / 1000;
}

function sweep() {
  const memory = new Uint8Array(SWEEP_BYTES);
  for (let i = 0; i < SWEEP_BYTES; i += 64) memory[i] = 1;
}

// The event loop does not run meanwhile.
function sleepUs(us) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, us / 1000);
}

// Collects garbage and returns what is left.
function memoryBytes() {
  global.gc();
  const rollup = fs.readFileSync('/proc/self/smaps_rollup', 'utf8');
  return 1024 * Number(rollup.match(/^Anonymous: *(\d+)/m)[1]);
}

function median(samples) {
  return samples.sort((a, b) => a - b)[samples.length >> 1];
}

function print(work, value, unit) {
  if (isWarm) console.log(`result w6.node.${work}.${count} ${Number(value.toFixed(3))} ${unit}`);
}

function expect(what, seen, wanted) {
  if (seen !== wanted) throw new Error(`${what}: ${seen}, not ${wanted}`);
}

// --- what is measured ---

function begin(nr) {
  count = nr;
  timers = new Array(count).fill(null);
}

function pair(times) {
  let expired = 0;
  const onTimer = (i) => { expired++; };

  for (let i = 0; i < count; i++) timers[i] = setTimeout(onTimer, pairDelay(), i);
  const start = cpuNs();
  for (let i = 0; i < times; i++) {
    const victim = draw() % count;

    clearTimeout(timers[victim]);
    timers[victim] = setTimeout(onTimer, pairDelay(), victim);
  }
  print('pair', (cpuNs() - start) / times, 'ns');
  expect('timers that expired in the first minute', expired, 0);
  for (const timer of timers) clearTimeout(timer);
}

function expireAll() {
  return new Promise((resolve) => {
    const spreadUs = EXPIRE_SPREAD_US * count;
    let expired = 0;
    let start = 0;
    const onTimer = (i) => {
      if (++expired === count) resolve((cpuNs() - start) / count);
    };

    for (let i = 0; i < count; i++) setTimeout(onTimer, ms(1 + draw() % spreadUs), i);
    sweep();
    sleepUs(spreadUs + EXPIRE_MARGIN_US);
    start = cpuNs();
  });
}

async function expire(times) {
  const samples = [];

  for (let i = 0; i < times; i++) samples.push(await expireAll());
  print('expire', median(samples), 'ns');
}

function bytes() {
  const onTimer = (i) => {};
  const before = memoryBytes();

  for (let i = 0; i < count; i++) timers[i] = setTimeout(onTimer, pairDelay(), i);
  print('bytes', (memoryBytes() - before) / count, 'bytes');
  process.exit();
}

async function check() {
  const fates = [];
  const late = [];
  let cancelled = 0;

  for (let i = 0; i < count; i++) {
    const delay = CHECK_DELAY_MS + draw() % CHECK_SPREAD_MS;
    const fate = { dueUs: nowUs() + 1000 * delay, expirations: 0, isCancelled: false };

    fates.push(fate);
    timers[i] = setTimeout(() => {
      fate.expirations++;
      late.push(nowUs() - fate.dueUs);
    }, delay);
  }
  for (let i = 0; i < count; i++) {
    if (draw() % 2) continue;
    clearTimeout(timers[i]);
    fates[i].isCancelled = true;
    cancelled++;
  }
  // The loop ends when no timer is armed.
  process.on('exit', () => {
    const early = late.filter((us) => us < 0).length;

    print('armed', count, 'count');
    print('cancelled', cancelled, 'count');
    print('expired', late.length, 'count');
    print('early', early, 'count');
    for (const fate of fates) {
      expect('expirations of a timer', fate.expirations, fate.isCancelled ? 0 : 1);
    }
    print('late', median(late), 'us');
    print('least_late', late[0], 'us');
  });
}

async function main(work, nr, times) {
  if (!(nr > 0 && times > 0)) throw new Error('usage: node pair|expire|bytes|check COUNT [TIMES]');
  begin(WARM_TIMERS);
  if (work === 'pair') pair(WARM_PAIRS);
  if (work === 'expire') await expire(WARM_EXPIRE_TIMES);
  isWarm = true;
  random = SEED;
  begin(nr);
  await { pair, expire, bytes, check }[work](times);
}

main(process.argv[2], Number(process.argv[3]), Number(process.argv[4] || 1));
