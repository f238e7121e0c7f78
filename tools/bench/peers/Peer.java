// SPDX-License-Identifier: GPL-2.0

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The harness of the peers in Java, which does what peer.c does. Before it measures, it does the
 * same work for a while, so that the code is compiled.
 *
 * <p>Timers expire in a thread of the library's. One that waits for a latch keeps it from the
 * others, until these are due.
 */
abstract class Peer {
    private static final int SEED = (int) 2463534242L;
    private static final long PAIR_DELAY_US = 60_000_000;
    private static final long ARM_TIME_US = 4; // for each timer
    private static final long EXPIRE_SPREAD_US = 2; // the same
    private static final long EXPIRE_MARGIN_US = 250_000; // Netty has ticks of 100 ms
    private static final long CHECK_DELAY_MS = 200;
    private static final long CHECK_SPREAD_MS = 300;
    private static final int SWEEP_BYTES = 64 << 20;

    private static final int WARM_PAIR_TIMERS = 1000;
    private static final int WARM_PAIRS = 300_000;
    private static final int WARM_EXPIRE_TIMERS = 20_000;
    private static final int WARM_EXPIRE_TIMES = 5;

    static {
        System.loadLibrary("peer_jni");
    }

    private final String name;
    private int count;
    private int random = SEED;
    private boolean isWarm;

    /** What the library has returned for each timer. */
    private Object[] timers;

    Peer(String name) {
        this.name = name;
    }

    /** Arms a timer, which calls a function. */
    abstract Object arm(Runnable function, long delayUs);

    /** Cancels a timer; returns whether it was still armed. */
    abstract boolean cancel(Object timer);

    /** Waits until the library's thread has done what so many calls have left to it. */
    void settle(int calls) throws InterruptedException {}

    /** Does the library promise that no timer is early? */
    boolean isNeverEarly() {
        return true;
    }

    /** Keeps all timers that are due after the delay from expiring, until the release. */
    void hold(CountDownLatch release, long delayUs) {
        arm(() -> await(release), delayUs);
    }

    // --- clocks, memory, random numbers ---

    private static native long cpuNs();

    /** Returns xorshift32 % limit, without a sign. */
    private long below(long limit) {
        random ^= random << 13;
        random ^= random >>> 17;
        random ^= random << 5;
        return Integer.toUnsignedLong(random) % limit;
    }

    private long pairDelayUs() {
        return PAIR_DELAY_US + below(PAIR_DELAY_US);
    }

    private static void sweep() {
        byte[] memory = new byte[SWEEP_BYTES];

        for (int i = 0; i < memory.length; i += 64) {
            memory[i] = 1;
        }
    }

    /** Collects garbage and returns what is left. */
    private static double memoryBytes() throws IOException {
        System.gc();
        for (String line : Files.readAllLines(Path.of("/proc/self/smaps_rollup"))) {
            if (line.startsWith("Anonymous:")) {
                return 1024 * Double.parseDouble(line.split(" +")[1]);
            }
        }
        throw new IOException("smaps_rollup has no Anonymous:");
    }

    private void print(String work, double value, String unit) {
        if (isWarm) {
            System.out.printf(
                    Locale.ROOT, "result w6.%s.%s.%d %.3f %s%n", name, work, count, value, unit);
        }
    }

    // --- what is measured ---

    private void begin(int count) {
        this.count = count;
        timers = new Object[count];
    }

    private void armAll(AtomicInteger expired) throws InterruptedException {
        for (int i = 0; i < count; i++) {
            timers[i] = arm(expired::incrementAndGet, pairDelayUs());
        }
        settle(count);
    }

    private void pair(int times) throws InterruptedException {
        AtomicInteger expired = new AtomicInteger();

        armAll(expired);
        long start = cpuNs();
        for (int i = 0; i < times; i++) {
            int victim = (int) below(count);

            cancel(timers[victim]);
            timers[victim] = arm(expired::incrementAndGet, pairDelayUs());
        }
        settle(times);
        print("pair", (double) (cpuNs() - start) / times, "ns");
        if (expired.get() != 0) {
            throw new IllegalStateException("timers expired in the first minute");
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Returns 0 if timers were due before all were armed. */
    private double expireAll() throws InterruptedException {
        long spreadUs = EXPIRE_SPREAD_US * count;
        long holdUs = ARM_TIME_US * count + EXPIRE_MARGIN_US;
        CountDownLatch release = new CountDownLatch(1);
        CountDownLatch left = new CountDownLatch(count);

        hold(release, holdUs);
        for (int i = 0; i < count; i++) {
            arm(left::countDown, holdUs + 1 + below(spreadUs));
        }
        sweep();
        Thread.sleep((holdUs + spreadUs + EXPIRE_MARGIN_US) / 1000);
        boolean isEarly = left.getCount() < count;
        long start = cpuNs();
        release.countDown();
        left.await();
        return isEarly ? 0 : (double) (cpuNs() - start) / count;
    }

    private void expire(int times) throws InterruptedException {
        double[] samples = new double[times];

        for (int i = 0, tries = 0; i < times; tries++) {
            samples[i] = expireAll();
            if (samples[i] != 0) {
                i++;
            } else if (tries == 10 * times) {
                throw new IllegalStateException("timers are due before all are armed");
            }
        }
        Arrays.sort(samples);
        print("expire", samples[times / 2], "ns");
    }

    private void bytes() throws IOException, InterruptedException {
        double before = memoryBytes();

        armAll(new AtomicInteger());
        print("bytes", (memoryBytes() - before) / count, "bytes");
    }

    /** What becomes of a timer. */
    private class Fate implements Runnable {
        final long dueNs;
        final AtomicInteger expirations = new AtomicInteger();
        volatile long lateNs;
        boolean isCancelled;

        Fate(long delayUs) {
            dueNs = System.nanoTime() + 1000 * delayUs;
        }

        @Override
        public void run() {
            lateNs = System.nanoTime() - dueNs;
            expirations.incrementAndGet();
        }
    }

    private void check() throws InterruptedException {
        Fate[] fates = new Fate[count];
        int cancelled = 0;

        for (int i = 0; i < count; i++) {
            long delayUs = 1000 * (CHECK_DELAY_MS + below(CHECK_SPREAD_MS));

            fates[i] = new Fate(delayUs);
            timers[i] = arm(fates[i], delayUs);
        }
        for (int i = 0; i < count; i++) {
            if (below(2) == 0 && cancel(timers[i])) {
                fates[i].isCancelled = true;
                cancelled++;
            }
        }
        // When this one expires, all others have, or will not.
        CountDownLatch last = new CountDownLatch(1);
        arm(last::countDown, 1000 * (CHECK_DELAY_MS + CHECK_SPREAD_MS) + EXPIRE_MARGIN_US);
        last.await();

        int expired = Arrays.stream(fates).mapToInt(fate -> fate.expirations.get()).sum();
        double[] lateUs =
                Arrays.stream(fates)
                        .filter(fate -> fate.expirations.get() > 0)
                        .mapToDouble(fate -> fate.lateNs / 1000.0)
                        .sorted()
                        .toArray();
        long early = Arrays.stream(lateUs).filter(late -> late < 0).count();
        print("armed", count, "count");
        print("cancelled", cancelled, "count");
        print("expired", expired, "count");
        print("early", early, "count");
        for (Fate fate : fates) {
            if (fate.expirations.get() != (fate.isCancelled ? 0 : 1)) {
                throw new IllegalStateException("a timer expired " + fate.expirations + " times");
            }
        }
        print("late", lateUs[lateUs.length / 2], "us");
        print("least_late", lateUs[0], "us");
        if (early != 0 && isNeverEarly()) {
            throw new IllegalStateException(early + " timers were early");
        }
    }

    private void warmUp(String work) throws InterruptedException {
        if (work.equals("pair")) {
            begin(WARM_PAIR_TIMERS);
            pair(WARM_PAIRS);
        } else if (work.equals("expire")) {
            begin(WARM_EXPIRE_TIMERS);
            expire(WARM_EXPIRE_TIMES);
        }
        for (Object timer : timers == null ? new Object[0] : timers) {
            if (timer != null) {
                cancel(timer);
            }
        }
        settle(WARM_PAIR_TIMERS);
        random = SEED;
        isWarm = true;
    }

    void run(String[] arguments) throws IOException, InterruptedException {
        String work = arguments[0];
        int times = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 1;

        // The library's thread would go on.
        Thread.setDefaultUncaughtExceptionHandler(
                (thread, problem) -> {
                    problem.printStackTrace();
                    System.exit(1);
                });
        warmUp(work);
        begin(Integer.parseInt(arguments[1]));
        System.gc();
        switch (work) {
            case "pair" -> pair(times);
            case "expire" -> expire(times);
            case "bytes" -> bytes();
            case "check" -> check();
            default -> throw new IllegalArgumentException(work);
        }
        System.exit(0);
    }
}
