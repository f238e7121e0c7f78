// SPDX-License-Identifier: GPL-2.0
//! DelayQueue of tokio-util: six wheels of 64 slots, whole ms; each insert() reads the clock.
//!
//! The harness is that of peer.c.

use std::fs;
use std::future::Future;
use std::pin::Pin;
use std::process::exit;
use std::ptr::write_volatile;
use std::task::{Context, Poll};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio_util::time::delay_queue::Key;
use tokio_util::time::DelayQueue;

const PAIR_DELAY_US: u32 = 60_000_000;
const EXPIRE_SPREAD_US: u32 = 2;
const EXPIRE_MARGIN_US: u32 = 20_000;
const CHECK_DELAY_MS: u32 = 20;
const CHECK_SPREAD_MS: u32 = 300;
const SWEEP_BYTES: usize = 64 << 20;

// --- clocks, memory, random numbers ---

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

fn cpu_ns() -> f64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };

    unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.seconds as f64 * 1e9 + time.nanoseconds as f64
}

/// xorshift32
struct Random(u32);

impl Random {
    fn draw(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    fn pair_delay(&mut self) -> Duration {
        Duration::from_micros((PAIR_DELAY_US + self.draw() % PAIR_DELAY_US).into())
    }
}

fn sweep() {
    let mut memory = vec![0u8; SWEEP_BYTES];

    for byte in memory.iter_mut().step_by(64) {
        unsafe { write_volatile(byte, 1) };
    }
}

fn memory_bytes() -> f64 {
    let file = fs::read_to_string("/proc/self/smaps_rollup").expect("smaps_rollup");
    let line = file.lines().find(|line| line.starts_with("Anonymous:")).expect("Anonymous:");

    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0
}

// --- what is measured ---

/// The next timer that has expired; None if none is armed.
struct Next<'a>(&'a mut DelayQueue<u32>);

impl Future for Next<'_> {
    type Output = Option<u32>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_expired(context).map(|next| next.map(|expired| expired.into_inner()))
    }
}

struct Bench {
    count: u32,
    random: Random,
    queue: DelayQueue<u32>,
    keys: Vec<Key>,
}

impl Bench {
    fn print(&self, work: &str, value: f64, unit: &str) {
        println!("result w6.tokio.{}.{} {} {}", work, self.count, value, unit);
    }

    fn arm_all(&mut self) {
        self.keys.clear();
        for i in 0..self.count {
            let delay = self.random.pair_delay();
            self.keys.push(self.queue.insert(i, delay));
        }
    }

    fn pair(&mut self, times: u32) {
        self.arm_all();
        let start = cpu_ns();
        for _ in 0..times {
            let victim = self.random.draw() % self.count;

            self.queue.remove(&self.keys[victim as usize]);
            let delay = self.random.pair_delay();
            self.keys[victim as usize] = self.queue.insert(victim, delay);
        }
        self.print("pair", (cpu_ns() - start) / times as f64, "ns");
    }

    async fn expire_all(&mut self) -> f64 {
        let spread_us = EXPIRE_SPREAD_US * self.count;
        let mut expired = 0;

        for i in 0..self.count {
            let delay_us = 1 + self.random.draw() % spread_us;
            self.queue.insert(i, Duration::from_micros(delay_us.into()));
        }
        sweep();
        sleep(Duration::from_micros((spread_us + EXPIRE_MARGIN_US).into()));
        let start = cpu_ns();
        while Next(&mut self.queue).await.is_some() {
            expired += 1;
        }
        let cost = cpu_ns() - start;
        assert_eq!(expired, self.count, "timers that expired");
        cost / self.count as f64
    }

    async fn expire(&mut self, times: u32) {
        let mut samples = Vec::new();

        for _ in 0..times {
            samples.push(self.expire_all().await);
        }
        samples.sort_by(f64::total_cmp);
        self.print("expire", samples[samples.len() / 2], "ns");
    }

    fn bytes(&mut self) {
        // The keys are the harness's.
        let before = memory_bytes() + (self.count * 8) as f64;
        self.arm_all();
        self.print("bytes", (memory_bytes() - before) / self.count as f64, "bytes");
    }

    async fn check(&mut self) {
        let mut due = Vec::new();
        let mut expirations = vec![0; self.count as usize];
        let mut cancelled = vec![false; self.count as usize];
        let mut late_us = Vec::new();

        for i in 0..self.count {
            let delay_ms = CHECK_DELAY_MS + self.random.draw() % CHECK_SPREAD_MS;
            let delay = Duration::from_millis(delay_ms.into());

            due.push(Instant::now() + delay);
            self.keys.push(self.queue.insert(i, delay));
        }
        for i in 0..self.count as usize {
            if self.random.draw() % 2 == 0 {
                self.queue.remove(&self.keys[i]);
                cancelled[i] = true;
            }
        }
        while let Some(i) = Next(&mut self.queue).await {
            let (now, due) = (Instant::now(), due[i as usize]);
            let early = due.saturating_duration_since(now).as_nanos() as f64;
            let late = now.saturating_duration_since(due).as_nanos() as f64;

            late_us.push((late - early) / 1000.0);
            expirations[i as usize] += 1;
        }
        let early = late_us.iter().filter(|late| **late < 0.0).count();
        self.print("armed", self.count as f64, "count");
        self.print("cancelled", cancelled.iter().filter(|it| **it).count() as f64, "count");
        self.print("expired", late_us.len() as f64, "count");
        self.print("early", early as f64, "count");
        for i in 0..self.count as usize {
            assert_eq!(expirations[i], !cancelled[i] as u32, "expirations of timer {}", i);
        }
        late_us.sort_by(f64::total_cmp);
        self.print("late", late_us[late_us.len() / 2], "us");
        self.print("least_late", late_us[0], "us");
        assert_eq!(early, 0, "early timers");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |i: usize| arguments.get(i).map_or(1, |text| text.parse().expect("a number"));
    let work = arguments.get(1).map_or("", String::as_str);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();

    runtime.block_on(async {
        let mut bench = Bench {
            count: number(2),
            random: Random(2463534242),
            queue: DelayQueue::new(),
            keys: Vec::with_capacity(number(2) as usize),
        };

        match work {
            "pair" => bench.pair(number(3)),
            "expire" => bench.expire(number(3)).await,
            "bytes" => bench.bytes(),
            "check" => bench.check().await,
            _ => {
                eprintln!("usage: tokio pair|expire|bytes|check COUNT [TIMES]");
                exit(2);
            }
        }
    });
}
