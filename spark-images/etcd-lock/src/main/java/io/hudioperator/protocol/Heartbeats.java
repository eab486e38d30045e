package io.hudioperator.protocol;

import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Schedule of the heartbeats of this process: one thread keeps it, however many tables there are. A
 * beat runs in another thread, which it has until etcd has answered. There is always one more
 * thread, so no heartbeat waits for the answer to another one; threads that are not needed end.
 */
final class Heartbeats {
    /** The heartbeat of one incarnation. */
    interface Heart {
        /**
         * Beats once. Returns the pause until the next beat in milliseconds, {@link #NONE} when
         * there is none.
         */
        long beat();

        /** The same for a beat that could not begin. Must not wait for anything. */
        long missed(Throwable why);
    }

    static final long NONE = -1;

    private static final long RETRY_MILLIS = 100;

    private static final int IDLE_SECONDS = 10;

    static final Heartbeats OF_PROCESS = new Heartbeats(new ThreadPoolExecutor(
            0,
            Integer.MAX_VALUE,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new SynchronousQueue<>(),
            threads("hudi-operator-heartbeat-")));

    private final ScheduledThreadPoolExecutor due =
            new ScheduledThreadPoolExecutor(1, threads("hudi-operator-heartbeats"));
    private final Executor beats;

    /** @param beats runs each beat in a thread, without waiting for another one */
    Heartbeats(Executor beats) {
        this.beats = beats;
    }

    private static ThreadFactory threads(String name) {
        AtomicInteger made = new AtomicInteger();
        return run -> {
            Thread thread = new Thread(run, name.endsWith("-") ? name + made.incrementAndGet() : name);
            thread.setDaemon(true);
            thread.setPriority(Thread.MAX_PRIORITY);
            return thread;
        };
    }

    /** The first beat is due now. */
    void begin(Heart heart) {
        next(heart, 0);
    }

    /**
     * Up to a tenth less, and never more: after an outage the heartbeats of all tables would stay
     * together.
     */
    static long spread(long millis) {
        return millis - ThreadLocalRandom.current().nextLong(millis / 10 + 1);
    }

    private void next(Heart heart, long millis) {
        if (millis != NONE) {
            due.schedule(() -> isDue(heart), millis, TimeUnit.MILLISECONDS);
        }
    }

    private void isDue(Heart heart) {
        try {
            beats.execute(() -> next(heart, pauseAfter(heart)));
        } catch (OutOfMemoryError e) { // no thread can be made, for this beat
            next(heart, heart.missed(e));
        }
    }

    private static long pauseAfter(Heart heart) {
        try {
            return heart.beat();
        } catch (Error e) { // NOPMD - nobody would beat again, and nothing would say so
            try {
                return heart.missed(e);
            } catch (Error again) { // NOPMD - the same
                return RETRY_MILLIS;
            }
        }
    }
}
