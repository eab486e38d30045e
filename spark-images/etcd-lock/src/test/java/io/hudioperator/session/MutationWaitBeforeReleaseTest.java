package io.hudioperator.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.GuardedFileSystem;
import io.hudioperator.support.SlowStore;
import io.hudioperator.support.TestTable;
import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Guards the line {@code Pause.millis(liveness.durations().drain * 1000L)} of Session.release: F1's
 * interleaving step by step. Seen to fail with the line removed: the other writer then commits
 * before the request lands (I1, I3).
 */
class MutationWaitBeforeReleaseTest {
    private final TestTable table = new TestTable();

    @AfterEach
    void close() {
        SlowStore.reset();
        table.close();
    }

    @Test
    void nobodyGetsTheLockBeforeARequestOnTheWireHasLanded() throws Exception {
        GuardedFileSystem fs = SlowStore.guarded();
        Session writer = table.session("ns.a", Map.of("basePath", "slow:" + table.folder));
        Session other = table.session("ns.b");
        assertTrue(table.acquire(writer));
        String instant = TestTable.time(0);
        String file = instant + "_" + TestTable.time(1) + ".commit";
        fs.create(SlowStore.path(table, instant + ".commit.requested")).close();
        writer.conflictsChecked(instant);
        SlowStore.STAYS_ON_THE_WIRE.add(file);
        assertThrows(IOException.class, () -> TestTable.write(fs, SlowStore.path(table, file), TestTable.COMPLETED));
        Thread releasing = new Thread(writer::release); // Hudi unlocks on any exception
        releasing.start();
        assertFalse(table.acquire(other, 500), "the request may still land");
        SlowStore.land();
        releasing.join(10_000);
        assertTrue(table.acquire(other));
        assertEquals(null, table.instant(instant), "the owner saw it land");
        other.release();
    }
}
