package io.hudioperator.session;

import io.hudioperator.etcd.Pause;
import io.hudioperator.protocol.Liveness;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.TaskScheduler;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.TaskSetManager;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;

/**
 * Gives up what a program's writes have left pending. The operator's runtime gives up an instant
 * when its write has failed. A program writes by Hudi alone: a refused write would stay pending for
 * as long as the program runs, and cleaning, archival and table services would wait for it (F477).
 *
 * <p>A write is over when the statement that began its instant has ended, or its thread. Its
 * instant is given up when it is over and none of its tasks runs any more (F4): no job that began
 * before the end of the write is active, no task of such a job runs, and no executor was lost since
 * the instant began. Otherwise the instant stays pending until the attempt ends.
 */
final class LeftWrites {
    private static final long LOOK_MILLIS = 500;
    private static final long EVENTS_MILLIS = 2_000;
    private static final int UNKNOWN = -1;

    private final Predicate<String> isPending;
    private final Predicate<String> giveUp;
    private final Liveness liveness;
    private final Map<String, Write> writes = new ConcurrentHashMap<>();
    private volatile SparkContext driver;

    /**
     * @param isPending whether this process has begun the instant, and neither completed nor given
     *     it up
     * @param giveUp gives an instant up, unless an executor was lost since it began; returns
     *     whether it is given up
     */
    LeftWrites(Predicate<String> isPending, Predicate<String> giveUp, Liveness liveness) {
        this.isPending = isPending;
        this.giveUp = giveUp;
        this.liveness = liveness;
    }

    /** One instant: where it was begun. */
    private static final class Write {
        private final Thread thread = Thread.currentThread();
        /** Spark's number of the statement; null when the instant was begun by none. */
        private final String execution;

        private volatile boolean ended;
        /** The first job that the driver began after the write was over. */
        private int nextJob = UNKNOWN;

        private Write(String execution) {
            this.execution = execution;
        }

        private boolean isOver() {
            return ended || !thread.isAlive();
        }
    }

    /** Call this once, in the driver of a program, before the program runs. */
    void watch(SparkContext context, String name) {
        DriverEvents.hears(context, new SparkListener() {
            @Override
            public void onOtherEvent(SparkListenerEvent event) {
                if (event instanceof SparkListenerSQLExecutionEnd) {
                    String ended = Long.toString(((SparkListenerSQLExecutionEnd) event).executionId());
                    writes.values().stream()
                            .filter(write -> ended.equals(write.execution))
                            .forEach(write -> write.ended = true);
                }
            }
        });
        driver = context;
        Thread looking = new Thread(this::look, name);
        looking.setDaemon(true);
        looking.start();
    }

    /** Whether this is the driver of a program. */
    boolean isWatching() {
        return driver != null;
    }

    /** This thread begins the instant. */
    void begun(String instant) {
        SparkContext context = driver;
        if (context != null) {
            writes.put(instant, new Write(context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY())));
        }
    }

    /** These instants are completed. */
    void forget(List<String> completed) {
        writes.keySet().removeAll(completed);
    }

    private void look() {
        String said = "";
        while (liveness.state() != Liveness.State.CLOSED && !driver.isStopped()) {
            Pause.millis(LOOK_MILLIS);
            try {
                giveUp();
            } catch (RuntimeException e) { // etcd is silent, or Spark stops: it is looked again
                String now = String.valueOf(e.getMessage());
                if (!now.equals(said)) {
                    System.err.println("what failed writes have left pending is not given up yet: " + now);
                }
                said = now;
            }
        }
    }

    private void giveUp() {
        if (liveness.state() != Liveness.State.LIVE) {
            return;
        }
        writes.keySet().removeIf(isPending.negate());
        for (Map.Entry<String, Write> entry : writes.entrySet()) {
            String instant = entry.getKey();
            Write write = entry.getValue();
            if (!write.isOver()) {
                continue;
            }
            if (write.nextJob == UNKNOWN) {
                write.nextJob = driver.dagScheduler().nextJobId().get();
            }
            if (!hasTasksBefore(write.nextJob) && giveUp.test(instant)) {
                writes.remove(instant);
                System.err.println("instant " + instant + " was left pending by a write that has ended without a "
                        + "commit: the table's agent rolls it back");
            }
        }
    }

    /** Whether a job with a smaller number is active, or a task of one still runs. */
    private boolean hasTasksBefore(int job) {
        if (DriverEvents.OF_THIS_JVM.hasJobBefore(job, EVENTS_MILLIS)) {
            return true;
        }
        TaskScheduler scheduler = driver.taskScheduler();
        if (!(scheduler instanceof TaskSchedulerImpl)) {
            return true;
        }
        for (TaskSetManager running :
                ((TaskSchedulerImpl) scheduler).taskIdToTaskSetManager().values()) {
            if (running.priority() < job) { // the number of its job
                return true;
            }
        }
        return false;
    }
}
