package io.hudioperator.protocol;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.session.Session;
import io.hudioperator.support.FaultyEtcd;
import io.hudioperator.support.TestTable;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Guards the two {@code isAfter(…, lock.clock())} in beforeRequested and beforeCompleted. Each test
 * was seen to fail with its line removed (I10, F6: the wall clock of a host may step back after it
 * acquired the lock).
 */
class MutationClockCompareTest {
    private final TestTable table = new TestTable();
    private final Session session = table.session("ns.a");

    @AfterEach
    void close() {
        table.close();
    }

    @Test
    void anInstantThatIsNotPastTheClock() {
        String clock = TestTable.time(-1000);
        table.clock(clock);
        assertTrue(table.acquire(session));
        for (String instant : new String[] {TestTable.time(-5000), clock}) {
            assertCode(
                    ErrorCode.CLOCK_NOT_PAST,
                    assertThrows(
                            TimelineRefusedException.class,
                            () -> session.instants().beforeRequested(instant, "commit")));
            assertNull(table.instant(instant));
        }
        assertEquals(clock, table.clock());
    }

    @Test
    void aCompletionTimeThatIsNotPastTheClock() throws TimelineRefusedException {
        assertTrue(table.acquire(session));
        String instant = TestTable.time(0);
        session.instants().beforeRequested(instant, "commit");
        session.conflictsChecked(instant);
        for (String completion : new String[] {TestTable.time(-5000), instant}) {
            assertCode(
                    ErrorCode.CLOCK_NOT_PAST,
                    assertThrows(
                            TimelineRefusedException.class,
                            () -> session.instants().beforeCompleted(instant, completion, "commit", () -> -1)));
        }
        assertEquals(instant, table.clock());
    }

    @Test
    void aClockThatMovesFarAheadOnTheWay() {
        table.faults(session).before(FaultyEtcd.puts(table.keys.lock()), () -> table.clock(TestTable.time(60_000)));
        assertCode(ErrorCode.CLOCK_BEHIND, assertThrows(HoodieException.class, () -> table.acquire(session)));
        assertNull(table.lock(), "the lock is released");
    }

    @Test
    void anInstantThatIsNotPastOnesOwnPromise() throws TimelineRefusedException {
        assertTrue(table.acquire(session));
        String earlier = TestTable.time(0);
        String instant = TestTable.time(10);
        session.instants().beforeRequested(instant, "commit");
        assertCode(
                ErrorCode.CLOCK_NOT_PAST,
                assertThrows(
                        TimelineRefusedException.class, () -> session.instants().beforeRequested(earlier, "commit")));
    }
}
