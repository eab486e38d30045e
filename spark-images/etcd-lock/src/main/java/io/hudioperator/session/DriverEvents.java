package io.hudioperator.session;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;

/**
 * Counts of executors, stages and jobs, from the events of this JVM's driver. The events come
 * through a separate queue, which no other listener delays and which drops none (F545, F560).
 */
final class DriverEvents extends SparkListener {
    static final DriverEvents OF_THIS_JVM = new DriverEvents();

    /** The number is not known. */
    static final long UNKNOWN = -1;

    private static final String QUEUE = "hudi-operator";
    private static final String CAPACITY = "spark.scheduler.listenerbus.eventqueue." + QUEUE + ".capacity";

    private final AtomicLong lost = new AtomicLong();
    private final AtomicLong repeated = new AtomicLong();
    private final Set<Integer> jobs = ConcurrentHashMap.newKeySet();
    private final Set<String> executors = ConcurrentHashMap.newKeySet();
    private volatile Consumer<SparkListenerEvent> bus = event -> {};

    /** Goes through the queue behind every event that was sent before it. */
    private static final class Marker implements SparkListenerEvent {
        private final CountDownLatch seen = new CountDownLatch(1);

        /** A reader of the event log does not have this class. */
        @Override
        public boolean logEvent() {
            return false;
        }

        /** Waits for the full time even if the thread is interrupted, which it stays (F561). */
        private boolean comesWithin(long millis) {
            long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
            boolean interrupted = false;
            try {
                while (true) {
                    try {
                        return seen.await(end - System.nanoTime(), TimeUnit.NANOSECONDS);
                    } catch (InterruptedException e) {
                        interrupted = true;
                    }
                }
            } finally {
                if (interrupted) {
                    Thread.currentThread().interrupt();
                }
            }
        }
    }

    /** Hears this driver from now on. Spark calls plugins before there are executors. */
    void of(SparkContext context) {
        executors.clear();
        hears(context, this);
        by(context.listenerBus()::post);
    }

    /** The listener is called by this queue, too: it must neither wait nor work. */
    static void hears(SparkContext context, SparkListener listener) {
        // nothing of the queue is dropped, and what only counts is never far behind
        context.conf().set(CAPACITY, Integer.toString(Integer.MAX_VALUE));
        context.listenerBus().addToQueue(listener, QUEUE);
    }

    /** @param sender sends an event to this listener, behind those that were sent before */
    void by(Consumer<SparkListenerEvent> sender) {
        jobs.clear();
        bus = sender;
    }

    private boolean hasHeardAll(long waitMillis) {
        Marker marker = new Marker();
        bus.accept(marker);
        return marker.comesWithin(waitMillis);
    }

    /**
     * Executors that drivers of this JVM have lost. {@link #UNKNOWN} when not every event that was
     * sent before this call comes within the time; 0: none is waited for.
     */
    long lost(long waitMillis) {
        return waitMillis > 0 && !hasHeardAll(waitMillis) ? UNKNOWN : lost.get();
    }

    /** Stages that were repeated, as far as it was heard. */
    long repeated() {
        return repeated.get();
    }

    /** Whether a job with a smaller number runs; true when that is not known within the time. */
    boolean hasJobBefore(int job, long waitMillis) {
        return !hasHeardAll(waitMillis) || jobs.stream().anyMatch(running -> running < job);
    }

    @Override
    public void onJobStart(SparkListenerJobStart started) {
        jobs.add(started.jobId());
    }

    @Override
    public void onJobEnd(SparkListenerJobEnd ended) {
        jobs.remove(ended.jobId());
    }

    @Override
    public void onStageSubmitted(SparkListenerStageSubmitted submitted) {
        if (submitted.stageInfo().attemptNumber() > 0) {
            repeated.incrementAndGet();
        }
    }

    @Override
    public void onExecutorAdded(SparkListenerExecutorAdded added) {
        executors.add(added.executorId());
    }

    /**
     * Spark tells of the end of executors that never registered, too, and may do so twice: of a pod
     * that waited for a node and was deleted. These have had no task.
     */
    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
        if (executors.remove(removed.executorId())) {
            lost.incrementAndGet();
        }
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof Marker) {
            ((Marker) event).seen.countDown();
        }
    }
}
