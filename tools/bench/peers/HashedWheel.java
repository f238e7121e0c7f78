// SPDX-License-Identifier: GPL-2.0

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.util.concurrent.TimeUnit;

/**
 * Netty's HashedWheelTimer: one wheel of 512 slots, in ticks of 100 ms as it has them by default.
 *
 * <p>Calls read the clock and append to queues. At the next ticks a thread puts new timers on the
 * wheel, at most 100,000 in a tick, and takes cancelled ones off.
 */
final class HashedWheel extends Peer {
    private static final int TICK_MS = 100;
    private static final int CALLS_PER_TICK = 100_000;

    private final HashedWheelTimer wheel = new HashedWheelTimer(TICK_MS, TimeUnit.MILLISECONDS);

    private HashedWheel() {
        super("netty");
    }

    @Override
    Object arm(Runnable function, long delayUs) {
        return wheel.newTimeout(timeout -> function.run(), delayUs, TimeUnit.MICROSECONDS);
    }

    @Override
    boolean cancel(Object timer) {
        return ((Timeout) timer).cancel();
    }

    @Override
    void settle(int calls) throws InterruptedException {
        Thread.sleep(TICK_MS * (calls / CALLS_PER_TICK + 3));
    }

    public static void main(String[] arguments) throws Exception {
        new HashedWheel().run(arguments);
    }
}
