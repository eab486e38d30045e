package io.hudioperator.catalog;

import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;

/**
 * Runs work in separate threads, each for a limited time. A thread that does not end in time is
 * left behind: at most one of a name, and not too many together.
 */
public final class Runs {
    private final int mostThreads;
    private final Function<Throwable, String> explained;
    /** Time limits, by name, of the runs whose thread has not ended. */
    private final Map<String, Long> running = new ConcurrentHashMap<>();

    public Runs(int mostThreads, Function<Throwable, String> explained) {
        this.mostThreads = mostThreads;
        this.explained = explained;
    }

    /**
     * Run it, and wait until it is done or past its limit.
     *
     * @return what it returns, or the explanation of what it throws; {@code busy} or
     *     {@code Timeout}, a line feed and what is wrong when it was not run, or is not done
     */
    public String run(String name, Callable<String> work, long timeoutMillis) throws InterruptedException {
        long now = System.nanoTime();
        Long limit = running.get(name);
        if (limit == null && running.size() >= mostThreads) {
            return "Timeout\n" + mostThreads + " tries of this agent are held by their catalogs";
        }
        if (limit == null) {
            limit = running.putIfAbsent(name, now + TimeUnit.MILLISECONDS.toNanos(timeoutMillis));
        }
        if (limit != null) {
            return limit - now > 0
                    ? "busy\nan earlier try has not ended"
                    : "Timeout\nthe catalog or the storage still holds an earlier try, which is past its time limit";
        }
        AtomicReference<String> outcome = new AtomicReference<>();
        Thread thread = new Thread(
                () -> {
                    try {
                        outcome.set(work.call());
                    } catch (Throwable error) { // NOPMD - an Error is told as well, not lost in a thread
                        outcome.set(explained.apply(error));
                    } finally {
                        running.remove(name);
                    }
                },
                "catalog");
        thread.setDaemon(true);
        thread.start();
        thread.join(timeoutMillis);
        String said = outcome.get();
        if (said == null) {
            thread.interrupt();
            return "Timeout\nnot done within " + timeoutMillis / 1000 + " s";
        }
        return said;
    }
}
