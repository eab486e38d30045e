package io.hudioperator.session;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongUnaryOperator;
import java.util.stream.Collectors;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;

/**
 * Tracks which instants were written while an executor was lost. A task of a lost executor may
 * still run, and its file may arrive after Hudi has compared the files with the commit's metadata.
 * Such a file belongs to a completed instant but no metadata names it, and readers that list files
 * would show it (F36).
 */
public final class LostExecutors {
    private static final long EVENTS_MILLIS = 2_000;
    /** The number cannot be told. */
    public static final long UNKNOWN = -1;

    /** Of those whose end could not be told, so many are asked about with one release. */
    private static final int ASKED_AGAIN = 100;

    private static final String QUEUE = "hudi-operator";

    private static final AtomicLong REPEATED = new AtomicLong();
    /** Executors that the driver has lost since it began; Spark's own list forgets the oldest. */
    private static final AtomicLong LOST = new AtomicLong();

    private static volatile SparkContext driver;

    private final Map<String, Long> atBegin = new ConcurrentHashMap<>();
    /** Completed instants whose records stand: the number was not known at their release. */
    private final Set<String> kept = ConcurrentHashMap.newKeySet();

    private final LongUnaryOperator lost;

    LostExecutors() {
        this(LostExecutors::count);
    }

    /**
     * @param lost the number of executors that were lost, or {@link #UNKNOWN}; its argument is for
     *     how many milliseconds it may wait for events that are on their way
     */
    LostExecutors(LongUnaryOperator lost) {
        this.lost = lost;
    }

    /** This JVM is the driver of executors. The Spark plugin calls this; every such JVM has it. */
    public static void drivenBy(SparkContext context) {
        driver = context;
        // a queue of its own: a full one drops events, and listeners of a program may be slow
        context.listenerBus()
                .addToQueue(
                        new SparkListener() {
                            @Override
                            public void onStageSubmitted(SparkListenerStageSubmitted submitted) {
                                if (submitted.stageInfo().attemptNumber() > 0) {
                                    REPEATED.incrementAndGet();
                                }
                            }

                            @Override
                            public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
                                LOST.incrementAndGet();
                            }
                        },
                        QUEUE);
    }

    /**
     * How often rows may have been computed again since this JVM began: executors that its driver
     * has lost, and stages that were repeated because their input was lost. {@link #UNKNOWN} when
     * the number cannot be told.
     */
    public static long recomputed() {
        long lost = count(EVENTS_MILLIS);
        return lost == UNKNOWN ? UNKNOWN : lost + REPEATED.get();
    }

    /**
     * The instant begins: its tasks run on executors that are not yet lost. A loss that the driver
     * learns of later counts as a loss during the instant.
     */
    void begins(String instant) {
        kept.remove(instant); // it is not completed any more
        atBegin.put(instant, lost.applyAsLong(0));
    }

    /**
     * Of these completed instants, returns those for which no lost executor can have written. The
     * records of the others are kept: their owner cannot leave, and they are swept once it and its
     * executors are proven dead.
     */
    List<String> untouched(List<String> completed) {
        if (completed.isEmpty()) {
            return completed;
        }
        return untouched(completed, lost.applyAsLong(EVENTS_MILLIS));
    }

    private List<String> untouched(List<String> completed, long now) {
        return completed.stream()
                .filter(t -> now != UNKNOWN && now == atBegin.getOrDefault(t, 0L))
                .collect(Collectors.toList());
    }

    /**
     * Of these completed instants, and of those of earlier releases for which it could not be told,
     * returns those whose records may be deleted with this release. A driver whose events are late
     * cannot tell; it is asked again with the next commit (F536).
     */
    List<String> forgettable(List<String> completed) {
        if (completed.isEmpty()) {
            return completed; // nobody waits for late events under the lock
        }
        List<String> asked = new ArrayList<>(completed);
        kept.stream().sorted().limit(ASKED_AGAIN).forEach(asked::add);
        long now = lost.applyAsLong(EVENTS_MILLIS);
        if (now == UNKNOWN) {
            kept.addAll(completed);
            return List.of();
        }
        asked.forEach(kept::remove);
        return untouched(asked, now);
    }

    /** The records of these instants are gone. */
    void forget(List<String> instants) {
        atBegin.keySet().removeAll(instants);
    }

    /**
     * Number of executors that this JVM's driver has lost since it began; 0 when there is no
     * driver, or when the driver runs tasks itself.
     */
    private static long count(long waitMillis) {
        SparkContext context = driver;
        if (context == null || context.isLocal()) {
            return 0;
        }
        try {
            if (waitMillis > 0) {
                context.listenerBus().waitUntilEmpty(waitMillis); // events count below
            }
        } catch (TimeoutException e) {
            return UNKNOWN;
        }
        return LOST.get();
    }
}
