package io.hudioperator.protocol;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.session.Session;
import io.hudioperator.support.TestTable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Guards the three lines {@code createRevision(keys.lock(), token)}: in recordInstant and publish
 * of InstantProtocol, and in release of LockProtocol. Each test was seen to fail with its line
 * removed (I1, I3).
 */
class MutationTokenCompareTest {
    private final TestTable table = new TestTable();
    private final Session session = table.session("ns.a");

    @AfterEach
    void close() {
        table.close();
    }

    /** The lock was taken from us and given to another owner: same key, another create revision. */
    private void giveTheLockToSomebodyElse() {
        table.etcd.delete("lock", 0);
        table.etcd.put("lock", "{\"inc\":\"somebody\"}");
    }

    @Test
    void recordInstant() {
        assertTrue(table.acquire(session));
        giveTheLockToSomebodyElse();
        String instant = TestTable.time(0);
        assertCode(
                ErrorCode.TOKEN,
                assertThrows(
                        TimelineRefusedException.class, () -> session.instants().beforeRequested(instant, "commit")));
        assertNull(table.instant(instant));
    }

    @Test
    void publish() throws TimelineRefusedException {
        assertTrue(table.acquire(session));
        String instant = TestTable.time(0);
        session.instants().beforeRequested(instant, "commit");
        session.conflictsChecked(instant);
        giveTheLockToSomebodyElse();
        assertCode(
                ErrorCode.TOKEN,
                assertThrows(
                        TimelineRefusedException.class,
                        () -> session.instants().beforeCompleted(instant, TestTable.time(1), "commit", () -> -1)));
        assertEquals(instant, table.clock());
    }

    @Test
    void release() {
        assertTrue(table.acquire(session));
        giveTheLockToSomebodyElse();
        session.release();
        assertEquals("{\"inc\":\"somebody\"}", table.lock().value());
    }
}
