package io.hudioperator.session;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Which records of completed instants are deleted while executors are lost (F36). */
class LostExecutorsTest {
    private static final String FIRST = "20260101000000001";
    private static final String SECOND = "20260101000000002";
    private long lost;
    private final LostExecutors executors = new LostExecutors(wait -> lost);

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
        assertEquals(101, release(FIRST).size());
        executors.begins(FIRST);
        assertEquals(101, release(FIRST).size());
    }

    @Test
    void theNumberAtTheBeginWasNotKnown() {
        lost = LostExecutors.UNKNOWN;
        executors.begins(FIRST);
        lost = 0;
        assertEquals(List.of(), release(FIRST));
    }
}
