package io.hudioperator.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.etcd.Pause;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.StageInfo;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import scala.Option;
import scala.collection.JavaConverters;

/**
 * What is counted of a driver's events, on a bus with two queues: the own one, and that of a
 * program's listener.
 */
class DriverEventsTest {
    private final DriverEvents events = new DriverEvents();
    private final ExecutorService own = Executors.newSingleThreadExecutor();
    private final ExecutorService shared = Executors.newSingleThreadExecutor();
    private volatile long ownMillis;
    private volatile long sharedMillis;

    DriverEventsTest() {
        events.by(this::send);
    }

    @AfterEach
    void close() {
        own.shutdownNow();
        shared.shutdownNow();
    }

    private void send(SparkListenerEvent event) {
        long owns = ownMillis;
        long shares = sharedMillis;
        shared.execute(() -> Pause.millis(shares));
        own.execute(() -> {
            Pause.millis(owns);
            deliver(event);
        });
    }

    private void deliver(SparkListenerEvent event) {
        if (event instanceof SparkListenerExecutorAdded) {
            events.onExecutorAdded((SparkListenerExecutorAdded) event);
        } else if (event instanceof SparkListenerExecutorRemoved) {
            events.onExecutorRemoved((SparkListenerExecutorRemoved) event);
        } else if (event instanceof SparkListenerJobStart) {
            events.onJobStart((SparkListenerJobStart) event);
        } else if (event instanceof SparkListenerJobEnd) {
            events.onJobEnd((SparkListenerJobEnd) event);
        } else {
            events.onOtherEvent(event);
        }
    }

    private void loses(String executor) {
        send(new SparkListenerExecutorAdded(0, executor, null));
        removes(executor);
    }

    private void removes(String executor) {
        send(new SparkListenerExecutorRemoved(0, executor, "of the test"));
    }

    /** A stage begins for the first time, or again. */
    static SparkListenerStageSubmitted stage(int attempt) {
        StageInfo info = new StageInfo(
                7,
                attempt,
                "of the test",
                1,
                JavaConverters.asScalaBuffer(List.of()),
                JavaConverters.asScalaBuffer(List.of()),
                "",
                null,
                JavaConverters.asScalaBuffer(List.of()),
                Option.empty(),
                0,
                false,
                0);
        return new SparkListenerStageSubmitted(info, new Properties());
    }

    private void begins(int job) {
        send(new SparkListenerJobStart(job, 0, JavaConverters.asScalaBuffer(List.<StageInfo>of()), new Properties()));
    }

    @Test
    void whatWasSentBeforeIsCounted() {
        ownMillis = 50;
        loses("1");
        loses("2");
        assertEquals(2, events.lost(5_000));
        assertEquals(2, events.lost(0));
    }

    /** F601: Spark tells of their end, too, and of one that it has given up a second time. */
    @Test
    void whoNeverRegisteredWasNotLost() {
        removes("3");
        assertEquals(0, events.lost(5_000));
        loses("3");
        removes("3");
        assertEquals(1, events.lost(5_000));
    }

    /** F560. */
    @Test
    void aSlowListenerOfSomebodyElseIsNotWaitedFor() {
        sharedMillis = 3_000;
        loses("1");
        long start = System.nanoTime();
        assertEquals(1, events.lost(2_000));
        long millis = Duration.ofNanos(System.nanoTime() - start).toMillis();
        assertTrue(millis < 1_000, () -> millis + " ms");
    }

    @Test
    void whatIsLateIsNotKnown() {
        ownMillis = 1_000;
        loses("1");
        assertEquals(DriverEvents.UNKNOWN, events.lost(50));
        assertTrue(events.hasJobBefore(0, 50), "nor is it known which jobs run");
    }

    @Test
    void whoDoesNotWaitIsToldWhatIsCounted() {
        ownMillis = 1_000;
        loses("1");
        assertEquals(0, events.lost(0));
    }

    @Test
    void withoutADriverNothingIsKnown() {
        assertEquals(DriverEvents.UNKNOWN, new DriverEvents().lost(10));
    }

    /** F561. */
    @Test
    void anInterruptIsKeptUntilTheNumberIsKnown() {
        ownMillis = 100;
        loses("1");
        Thread.currentThread().interrupt();
        assertEquals(1, events.lost(5_000));
        assertTrue(Thread.interrupted());
    }

    /** F560: those of {@link LeftWrites}. */
    @Test
    void aJobRunsUntilItsEndWasHeard() {
        sharedMillis = 3_000;
        begins(4);
        assertTrue(events.hasJobBefore(5, 2_000));
        assertFalse(events.hasJobBefore(4, 2_000), "it began later");
        send(new SparkListenerJobEnd(4, 0, null));
        assertFalse(events.hasJobBefore(5, 2_000));
    }
}
