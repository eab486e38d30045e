package io.hudioperator.session;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.function.LongUnaryOperator;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend;
import scala.collection.JavaConverters;

/**
 * Tracks which instants were written while an executor was lost or a stage was repeated. A task of
 * a lost executor, or of the earlier try of a stage, may still run, and its file may arrive after
 * Hudi has compared the files with the commit's metadata. Such a file belongs to a completed
 * instant but no metadata names it, and readers that list files would show it (F36, F600).
 */
public final class LostExecutors {
    private static final long EVENTS_MILLIS = 2_000;
    /** The number is not known. */
    public static final long UNKNOWN = DriverEvents.UNKNOWN;

    /**
     * Limit on the instants of unknown end that one release asks about. The gateway reads each
     * record before it lets it go, and the lock is held meanwhile.
     */
    private static final int ASKED_AGAIN = 10;

    private static final LongUnaryOperator NONE = wait -> 0;

    private static volatile SparkContext driver;
    private static volatile LongUnaryOperator counted = NONE;

    private final Map<String, Long> atBegin = new ConcurrentHashMap<>();
    /** Completed instants whose records stand: the number was not known at their release. */
    private final Set<String> kept = ConcurrentHashMap.newKeySet();

    private final LongUnaryOperator recomputed;
    private final BooleanSupplier hasUnreached;

    LostExecutors() {
        this(LostExecutors::recomputed, () -> driver != null && hasUnreached(driver));
    }

    /**
     * @param recomputed how often rows may have been computed again, as in {@link #recomputed()};
     *     its argument is for how many milliseconds it may wait for events that are on their way
     * @param hasUnreached as {@link #hasUnreached(SparkContext)}, of this JVM's driver
     */
    LostExecutors(LongUnaryOperator recomputed, BooleanSupplier hasUnreached) {
        this.recomputed = recomputed;
        this.hasUnreached = hasUnreached;
    }

    /** This JVM is the driver of executors. The Spark plugin calls this; every such JVM has it. */
    public static void drivenBy(SparkContext context) {
        DriverEvents.OF_THIS_JVM.of(context);
        // what runs in the driver ends with it
        countedBy(context, context.isLocal() ? NONE : DriverEvents.OF_THIS_JVM::lost);
    }

    /** @param number as for the constructor */
    static void countedBy(SparkContext context, LongUnaryOperator number) {
        counted = number;
        driver = context;
    }

    /**
     * Whether this driver has lost an executor since it began, whose tasks may still write (F4), or
     * does not reach one. Also true when that is not known. The runtime has no other answer to this
     * question (F559).
     */
    public static boolean lost(SparkContext asked) {
        return lost(asked, LostExecutors::hasUnreached);
    }

    /** The same of this JVM's driver. */
    static boolean lost() {
        SparkContext asked = driver;
        return lost(asked, context -> context != null && hasUnreached(context));
    }

    static boolean lost(SparkContext asked, Predicate<SparkContext> hasUnreached) {
        // in this order: an executor that is given up in between is counted
        return hasUnreached.test(asked)
                || (asked == driver ? counted.applyAsLong(EVENTS_MILLIS) != 0 : !asked.isLocal());
    }

    /**
     * Whether this driver has an executor that it does not reach and has not given up yet. Its
     * connection has ended for an unknown reason: from then on the scheduler counts none of its
     * tasks, no event says that it was lost, and it may still run and write (F598).
     */
    public static boolean hasUnreached(SparkContext asked) {
        return asked.schedulerBackend() instanceof CoarseGrainedSchedulerBackend
                && hasUnreached((CoarseGrainedSchedulerBackend) asked.schedulerBackend());
    }

    private static boolean hasUnreached(CoarseGrainedSchedulerBackend executors) {
        return JavaConverters.seqAsJavaList(executors.getExecutorIds()).stream()
                .anyMatch(id -> !executors.isExecutorActive(id));
    }

    /**
     * Number of times that rows may have been computed again since this JVM began: executors that
     * its driver has lost, and stages that were repeated because their input was lost. {@link
     * #UNKNOWN} when the number is not known.
     */
    public static long recomputed() {
        return recomputed(EVENTS_MILLIS);
    }

    private static long recomputed(long waitMillis) {
        long lost = counted.applyAsLong(waitMillis);
        return lost == UNKNOWN ? UNKNOWN : lost + DriverEvents.OF_THIS_JVM.repeated();
    }

    /**
     * The instant begins: its tasks run on executors that are not yet lost. A loss that the driver
     * learns of later counts as a loss during the instant.
     */
    void begins(String instant) {
        kept.remove(instant); // it is not completed any more
        atBegin.put(instant, recomputed.applyAsLong(0));
    }

    /**
     * Of these completed instants, returns those for which no lost executor and no earlier try of a
     * stage can have written. The records of the others are kept: their owner cannot leave, and
     * they are swept once it and its executors are proven dead.
     */
    List<String> untouched(List<String> completed) {
        if (completed.isEmpty()) {
            return completed;
        }
        return untouched(completed, number());
    }

    /**
     * {@link #UNKNOWN} while an executor is not reached: its tasks are forgotten and may have run
     * elsewhere, and its loss is not counted yet (F600).
     */
    private long number() {
        // in this order: an executor that is given up in between is counted
        return hasUnreached.getAsBoolean() ? UNKNOWN : recomputed.applyAsLong(EVENTS_MILLIS);
    }

    private List<String> untouched(List<String> completed, long now) {
        return completed.stream()
                .filter(t -> now != UNKNOWN && now == atBegin.getOrDefault(t, 0L))
                .collect(Collectors.toList());
    }

    /**
     * Returns those whose records may be deleted with this release, among these completed instants
     * and those of earlier releases whose end was not known. A driver whose events are late, or
     * that does not reach an executor, cannot tell; it is asked again with the next commit (F536).
     */
    List<String> forgettable(List<String> completed) {
        if (completed.isEmpty()) {
            return completed; // nobody waits for late events under the lock
        }
        List<String> asked = new ArrayList<>(completed);
        kept.stream().sorted().limit(ASKED_AGAIN).forEach(asked::add);
        long now = numberAtRelease();
        if (now == UNKNOWN) {
            kept.addAll(completed);
            return List.of();
        }
        asked.forEach(kept::remove);
        return untouched(asked, now);
    }

    /** Nothing that fails here keeps the lock (F561). Spark's code throws undeclared exceptions. */
    private long numberAtRelease() {
        try {
            return number();
        } catch (Exception e) {
            System.err.println("whether an executor was lost is not known: " + e);
            if (e instanceof InterruptedException) {
                Thread.currentThread().interrupt();
            }
            return UNKNOWN;
        }
    }

    /** The records of these instants are gone. */
    void forget(List<String> instants) {
        atBegin.keySet().removeAll(instants);
    }
}
