package io.hudioperator.protocol;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.session.Session;
import io.hudioperator.support.FaultyEtcd;
import io.hudioperator.support.TestTable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Guards two lines of InstantProtocol.publish: {@code !isPendingOfMine(seen)} ({@link
 * #abandonedBefore}, {@link #ofSomebodyElse}) and {@code modRevision(keys.instant(time),
 * seen.modRevision())} ({@link #abandonedBetweenReadAndTransaction}). Each test was seen to fail
 * with its line removed (I7, F4).
 */
class MutationPendingCompareTest {
    private final TestTable table = new TestTable();
    private final Session session = table.session("ns.a");
    private String instant;

    @BeforeEach
    void begin() throws TimelineRefusedException {
        assertTrue(table.acquire(session));
        instant = TestTable.time(0);
        session.instants().beforeRequested(instant, "commit");
        session.conflictsChecked(instant);
    }

    @AfterEach
    void close() {
        table.close();
    }

    private void publishIsRefused() {
        assertCode(
                ErrorCode.NOT_PENDING,
                assertThrows(
                        TimelineRefusedException.class,
                        () -> session.instants().beforeCompleted(instant, TestTable.time(1), "commit", () -> -1)));
        assertEquals(instant, table.clock());
    }

    @Test
    void abandonedBefore() {
        assertTrue(session.abandon(instant));
        publishIsRefused();
    }

    @Test
    void abandonedBetweenReadAndTransaction() {
        table.faults(session).before(FaultyEtcd.puts(table.keys.clock()), () -> assertTrue(session.abandon(instant)));
        publishIsRefused();
        assertEquals("Abandoned", table.state(instant));
    }

    @Test
    void ofSomebodyElse() {
        table.etcd.put("instant/" + instant, "{\"inc\":\"somebody\",\"action\":\"commit\",\"state\":\"Pending\"}");
        publishIsRefused();
    }

    @Test
    void withoutRecord() {
        table.etcd.delete("instant/" + instant, 0);
        publishIsRefused();
    }
}
