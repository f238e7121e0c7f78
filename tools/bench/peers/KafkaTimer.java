// SPDX-License-Identifier: GPL-2.0

import java.util.concurrent.CountDownLatch;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * Kafka's SystemTimer: hierarchical wheels of 20 slots, the finest with ticks of 1 ms, and a
 * DelayQueue of the slots that are not empty. Each call reads the clock.
 *
 * <p>A thread advances the clock, as brokers' own do. It hands what is due to a thread of the
 * timer's, which calls the functions.
 */
final class KafkaTimer extends Peer {
    private static final int ADVANCE_MS = 200; // as in SystemTimerReaper

    private final SystemTimer timer = new SystemTimer("peer");

    /** While this is closed, the clock stands still. */
    private volatile CountDownLatch gate = new CountDownLatch(0);

    private KafkaTimer() {
        super("kafka");
        Thread reaper = new Thread(this::advance, "reaper");
        reaper.setDaemon(true);
        reaper.start();
    }

    private void advance() {
        try {
            while (true) {
                gate.await();
                timer.advanceClock(ADVANCE_MS);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static final class Task extends TimerTask {
        private final Runnable function;

        Task(Runnable function, long delayMs) {
            super(delayMs);
            this.function = function;
        }

        @Override
        public void run() {
            function.run();
        }
    }

    @Override
    Object arm(Runnable function, long delayUs) {
        Task task = new Task(function, (delayUs + 999) / 1000);

        timer.add(task);
        return task;
    }

    @Override
    boolean cancel(Object timer) {
        TimerTask task = (TimerTask) timer;
        boolean isArmed = !task.isCancelled();

        task.cancel();
        return isArmed;
    }

    /** Delays count from the last whole millisecond. */
    @Override
    boolean isNeverEarly() {
        return false;
    }

    /** A function that waits would hold up the thread of the functions only, not the wheels. */
    @Override
    void hold(CountDownLatch release, long delayUs) {
        gate = release;
    }

    public static void main(String[] arguments) throws Exception {
        new KafkaTimer().run(arguments);
    }
}
