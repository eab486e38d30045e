package io.hudioperator.etcd;

import java.util.concurrent.TimeUnit;

/**
 * Waits for the full time even if the thread is interrupted, and keeps the interrupt for the
 * caller.
 */
public final class Pause {
    private Pause() {}

    public static void millis(long millis) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        boolean interrupted = false;
        for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
            try {
                TimeUnit.NANOSECONDS.sleep(left);
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
