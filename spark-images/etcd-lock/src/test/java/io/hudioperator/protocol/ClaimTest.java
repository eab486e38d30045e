package io.hudioperator.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.Json;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.session.Session;
import io.hudioperator.support.FaultyEtcd;
import io.hudioperator.support.TestTable;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * An instant of a table service has one executor (F3, I12), and the owner alone declares its
 * instants abandoned (F4).
 */
class ClaimTest {
    private static final String INSTANT = "20250101000000000";

    private final TestTable table = new TestTable();
    private final Session agent = table.session("ns.agent", Map.of("role", "agent"));

    @AfterEach
    void close() {
        table.close();
    }

    private void recordOf(String inc) {
        table.etcd.put(
                "instant/" + INSTANT, "{\"inc\":\"" + inc + "\",\"action\":\"compaction\",\"state\":\"Pending\"}");
    }

    @Test
    void takenOverFromASettledOwner() throws TimelineRefusedException {
        recordOf("old");
        table.etcd.put("settle/old", "{\"phase\":\"RollingBack\"}");
        assertTrue(agent.claim(INSTANT, "old"));
        assertEquals(agent.inc(), Json.text(Json.parse(table.instant(INSTANT).value()), "claimedBy"));
        assertEquals(List.of(INSTANT), agent.pendingInstants());
        assertTrue(agent.claim(INSTANT, "old"), "claiming again has the same result");
        assertTrue(table.acquire(agent));
        agent.instants()
                .beforeCompleted(INSTANT, TestTable.time(0), "commit", () -> 1)
                .completed();
        agent.release();
        assertEquals(null, table.instant(INSTANT));
    }

    @Test
    void notTakenFromALivingOwner() {
        recordOf("old");
        table.etcd.put("writer/old", "{}");
        assertFalse(agent.claim(INSTANT, "old"));
        table.etcd.put("settle/old", "{\"phase\":\"Draining\"}");
        assertFalse(agent.claim(INSTANT, "old"));
        assertFalse(agent.claim(INSTANT, "another"));
    }

    /**
     * F70: no incarnation leaves with a Pending instant (F38), so one without registration and
     * settle record may be alive.
     */
    @Test
    void notTakenFromAnOwnerOfWhomNothingIsKnown() {
        recordOf("old");
        assertFalse(agent.claim(INSTANT, "old"));
        table.etcd.put("settle/old", "{\"phase\":\"Swept\"}");
        assertTrue(agent.claim(INSTANT, "old"));
    }

    @Test
    void twoDoNotClaimTheSame() {
        recordOf("old");
        table.etcd.put("settle/old", "{\"phase\":\"RollingBack\"}");
        Session other = table.session("ns.agent-2", Map.of("role", "agent"));
        table.faults(agent)
                .before(FaultyEtcd.puts(table.keys.instant(INSTANT)), () -> assertTrue(other.claim(INSTANT, "old")));
        assertFalse(agent.claim(INSTANT, "old"));
        assertFalse(agent.claim(INSTANT, "old"));
    }

    @Test
    void fencedClaimsNothing() {
        recordOf("old");
        table.etcd.put("settle/old", "{\"phase\":\"RollingBack\"}");
        table.fence(agent.inc());
        assertFalse(agent.claim(INSTANT, "old"));
    }

    @Test
    void nothingToClaimOrAbandon() {
        assertFalse(agent.claim(INSTANT, "old"));
        assertFalse(agent.abandon(INSTANT));
        recordOf("old");
        assertFalse(agent.abandon(INSTANT));
    }
}
