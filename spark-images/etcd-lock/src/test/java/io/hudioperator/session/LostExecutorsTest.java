package io.hudioperator.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Which records of completed instants are deleted while executors are lost (F36). */
class LostExecutorsTest {
    private static final String FIRST = "20260101000000001";
    private static final String SECOND = "20260101000000002";
    private long lost;
    private boolean unreached;
    private final LostExecutors executors = new LostExecutors(wait -> lost, () -> unreached);

    @AfterEach
    void nothingIsCounted() {
        LostExecutors.countedBy(null, wait -> 0);
    }

    private List<String> release(String... completed) {
        List<String> forgotten = executors.forgettable(List.of(completed));
        executors.forget(forgotten);
        return forgotten;
    }

    @Test
    void nothingWasLost() {
        lost = 3; // before
        executors.begins(FIRST);
        assertEquals(List.of(FIRST), release(FIRST));
        assertEquals(List.of(), release());
    }

    @Test
    void anExecutorWasLostMeanwhile() {
        executors.begins(FIRST);
        lost = 1;
        executors.begins(SECOND);
        assertEquals(List.of(SECOND), release(FIRST, SECOND));
        assertEquals(List.of(), release(), "it may still write");
    }

    /** F536: nobody asked again, and the record stood as long as the agent lived. */
    @Test
    void whatCouldNotBeToldIsAskedAgain() {
        executors.begins(FIRST);
        lost = LostExecutors.UNKNOWN; // its events are late
        assertEquals(List.of(), release(FIRST));
        lost = 0;
        assertEquals(List.of(), release(), "it is not waited for under a lock that nothing was committed under");
        executors.begins(SECOND);
        assertEquals(List.of(SECOND, FIRST), release(SECOND));
        executors.begins(SECOND);
        assertEquals(List.of(SECOND), release(SECOND));
    }

    @Test
    void whatCouldNotBeToldAndWasTouchedStays() {
        executors.begins(FIRST);
        lost = LostExecutors.UNKNOWN;
        assertEquals(List.of(), release(FIRST));
        lost = 1;
        executors.begins(SECOND);
        assertEquals(List.of(SECOND), release(SECOND));
        lost = 0; // whatever is counted later
        executors.begins(SECOND);
        assertEquals(List.of(SECOND), release(SECOND));
    }

    /** One that is touched is settled with its owner, whatever number is told later. */
    @Test
    void whatWasTouchedIsNotAskedAgain() {
        executors.begins(FIRST);
        lost = 1;
        assertEquals(List.of(), release(FIRST));
        lost = 0;
        executors.begins(SECOND);
        assertEquals(List.of(SECOND), release(SECOND));
    }

    @Test
    void anInstantThatIsRecordedAnewIsNotCompleted() {
        executors.begins(FIRST);
        lost = LostExecutors.UNKNOWN;
        assertEquals(List.of(), release(FIRST));
        lost = 0;
        executors.begins(FIRST); // a savepoint has the time of its commit
        executors.begins(SECOND);
        assertEquals(List.of(SECOND), release(SECOND));
    }

    @Test
    void aReleaseDeletesSoManyRecords() {
        lost = LostExecutors.UNKNOWN;
        for (int n = 0; n < 300; n++) {
            lost = 0;
            executors.begins("2026010100000" + (1000 + n));
            lost = LostExecutors.UNKNOWN;
            release("2026010100000" + (1000 + n));
        }
        lost = 0;
        executors.begins(FIRST);
        assertEquals(11, release(FIRST).size(), "the gateway reads each of them under the lock");
        executors.begins(FIRST);
        assertEquals(11, release(FIRST).size());
    }

    /** F559: the one answer for Java and Python. */
    @Test
    void whatCannotBeToldCountsAsLost() {
        for (long number : new long[] {0, 1, LostExecutors.UNKNOWN}) {
            LostExecutors.countedBy(null, wait -> number);
            assertEquals(number != 0, LostExecutors.lost(null, c -> false), () -> number + " lost");
        }
    }

    /** F598: nobody is told of it, and it may still write. */
    @Test
    void whoIsNotReachedCountsAsLost() {
        assertTrue(LostExecutors.lost(null, c -> true));
    }

    /** F600: its tasks were computed elsewhere, and the job has ended before Spark gives it up. */
    @Test
    void anExecutorIsNotReachedAtTheRelease() {
        executors.begins(FIRST);
        unreached = true;
        assertEquals(List.of(), executors.untouched(List.of(FIRST)));
        assertEquals(List.of(), release(FIRST));
        unreached = false; // it has answered again
        executors.begins(SECOND);
        assertEquals(List.of(SECOND, FIRST), release(SECOND));
        executors.begins(FIRST);
        unreached = true;
        assertEquals(List.of(), release(FIRST));
        unreached = false;
        lost = 1; // it is given up
        executors.begins(SECOND);
        assertEquals(List.of(SECOND), release(SECOND));
    }

    /** F600: tasks of a stage's first try end at some time, whether an executor is lost or not. */
    @Test
    void aStageWasRepeatedMeanwhile() {
        LostExecutors ofThisJvm = new LostExecutors();
        ofThisJvm.begins(FIRST);
        assertEquals(List.of(FIRST), ofThisJvm.untouched(List.of(FIRST)));
        DriverEvents.OF_THIS_JVM.onStageSubmitted(DriverEventsTest.stage(0));
        assertEquals(List.of(FIRST), ofThisJvm.untouched(List.of(FIRST)));
        DriverEvents.OF_THIS_JVM.onStageSubmitted(DriverEventsTest.stage(1));
        assertEquals(List.of(), ofThisJvm.untouched(List.of(FIRST)));
        ofThisJvm.begins(SECOND);
        assertEquals(List.of(SECOND), ofThisJvm.untouched(List.of(SECOND)));
    }

    /** F561: Spark throws exceptions that it does not declare. */
    @Test
    void whateverFailsIsNotKnown() {
        LostExecutors failing =
                new LostExecutors(wait -> wait == 0 ? 0 : LostExecutorsTest.<RuntimeException>thrown(), () -> false);
        failing.begins(FIRST);
        assertEquals(List.of(), failing.forgettable(List.of(FIRST)));
        assertTrue(Thread.interrupted(), "the caller is told of the interrupt");
    }

    @SuppressWarnings("unchecked")
    private static <E extends Exception> long thrown() throws E {
        throw (E) new InterruptedException("sleep interrupted");
    }

    @Test
    void theNumberAtTheBeginWasNotKnown() {
        lost = LostExecutors.UNKNOWN;
        executors.begins(FIRST);
        lost = 0;
        assertEquals(List.of(), release(FIRST));
    }
}
