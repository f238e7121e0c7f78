// SPDX-License-Identifier: GPL-2.0

import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The JDK's ScheduledThreadPoolExecutor: a binary heap with a lock. Each call reads the clock.
 *
 * <p>By default it leaves cancelled tasks in the heap until they are due; here it removes them.
 */
final class Executor extends Peer {
    private final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(1);

    private Executor() {
        super("jdk");
        executor.setRemoveOnCancelPolicy(true);
    }

    @Override
    Object arm(Runnable function, long delayUs) {
        return executor.schedule(function, delayUs, TimeUnit.MICROSECONDS);
    }

    @Override
    boolean cancel(Object timer) {
        return ((Future<?>) timer).cancel(false);
    }

    public static void main(String[] arguments) throws Exception {
        new Executor().run(arguments);
    }
}
