package io.hudioperator.protocol;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InstantTime;
import io.hudioperator.session.Session;
import io.hudioperator.support.FaultyEtcd;
import io.hudioperator.support.TestTable;
import java.lang.reflect.Field;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * F415: Hudi has made a time that was refused, and the host's clock was set right since. Hudi keeps
 * the last time of the process, and makes a later one in a loop, with the lock.
 */
class ClockSetBackTest {
    private final TestTable table = new TestTable();
    private final Session session = table.session("ns.a");
    private final String before = HoodieInstantTimeGenerator.getLastInstantTime();

    @AfterEach
    void close() throws ReflectiveOperationException {
        last(before);
        table.close();
    }

    @SuppressWarnings("unchecked")
    private static void last(String time) throws ReflectiveOperationException {
        Field field = HoodieInstantTimeGenerator.class.getDeclaredField("LAST_INSTANT_TIME");
        field.setAccessible(true);
        ((AtomicReference<String>) field.get(null)).set(time);
    }

    private void assertRefused() {
        long begin = System.nanoTime();
        HoodieException e = assertThrows(HoodieException.class, () -> table.acquire(session));
        assertCode(ErrorCode.CLOCK_BEHIND, e);
        assertTrue(e.getMessage().contains("was set back"), e.getMessage());
        assertTrue(System.nanoTime() - begin < Duration.ofSeconds(5).toNanos(), "at once");
        assertEquals(e.getMessage(), "[" + ErrorCode.CLOCK_BEHIND.code() + "] " + session.clockRefused());
        assertNull(table.lock());
    }

    @Test
    @Timeout(30)
    void theLockIsNotTaken() throws Exception {
        last(TestTable.time(3_600_000));
        table.faults(session).refuse(FaultyEtcd.puts(table.keys.lock()));
        assertRefused();
    }

    /** While it waited in the queue. */
    @Test
    @Timeout(30)
    void theLockIsReleased() throws Exception {
        table.faults(session).before(FaultyEtcd.puts(table.keys.lock()), () -> {
            try {
                last(TestTable.time(3_600_000));
            } catch (ReflectiveOperationException e) {
                throw new AssertionError(e);
            }
        });
        assertRefused();
    }

    @Test
    void aLittleIsWaitedFor() throws Exception {
        String ahead = TestTable.time(800);
        last(ahead);
        assertTrue(table.acquire(session));
        assertTrue(InstantTime.isAfter(TestTable.time(0), ahead));
        session.release();
    }
}
