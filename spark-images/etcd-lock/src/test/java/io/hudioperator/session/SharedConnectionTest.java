package io.hudioperator.session;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.ProtocolData;
import io.hudioperator.etcd.EtcdException;
import io.hudioperator.protocol.Liveness;
import io.hudioperator.support.EtcdServer;
import io.hudioperator.support.LeaseRelay;
import io.hudioperator.support.TestTable;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The sessions of one process share a connection and a stream; each lives and ends by itself. */
class SharedConnectionTest {
    private final LeaseRelay relay = relay();
    private final List<TestTable> tables = new ArrayList<>();
    private final List<Session> sessions = new ArrayList<>();

    private static LeaseRelay relay() {
        try {
            return new LeaseRelay(EtcdServer.shared());
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    @AfterEach
    void close() {
        relay.withhold(lease -> false);
        for (int i = 0; i < sessions.size(); i++) {
            if (!sessions.get(i).close()) {
                tables.get(i).fence(sessions.get(i).inc());
                OpenSessions.closed(sessions.get(i));
            }
        }
        relay.close();
    }

    /** A session at a table of its own. */
    private Session session(Map<String, String> more) {
        TestTable table = new TestTable();
        table.admit("ns.one");
        Map<String, String> settings = table.settings("ns.one");
        settings.put("endpoints", relay.endpoint());
        settings.putAll(more);
        Session session = OpenSessions.open(settings, Map.of(), (code, why) -> table.halts.add(code));
        tables.add(table);
        sessions.add(session);
        return session;
    }

    private long lease(int table) {
        return tables.get(table).etcd.get("alive/" + sessions.get(table).inc()).lease();
    }

    private void awaitHeartbeats(int table, int more) {
        long lease = lease(table);
        int before = relay.asked(lease);
        TestTable.await(Duration.ofSeconds(10), "heartbeats go on", () -> relay.asked(lease) >= before + more);
    }

    @Test
    void allTablesShareOneConnectionAndOneStream() {
        for (int i = 0; i < 3; i++) {
            session(Map.of("rpcTimeoutSeconds", "3", "leaseSeconds", "10"));
        }
        for (int i = 0; i < 3; i++) {
            awaitHeartbeats(i, 3);
        }
        assertEquals(1, relay.connections());
        assertTrue(relay.streams() <= 2, relay.streams() + " streams"); // one more where this machine was paused
    }

    @Test
    void theEndOfOneSessionLeavesTheOthers() {
        Session ends = session(Map.of());
        Session stays = session(Map.of());
        assertTrue(ends.close());
        awaitHeartbeats(1, 2);
        assertEquals("LIVE", stays.state());
        assertNotNull(stays.etcd().get("writer/" + stays.inc()));
        assertCode(
                ErrorCode.ETCD_SILENT,
                assertThrows(HoodieException.class, () -> ends.etcd().get("writer/" + ends.inc())));
        assertEquals(1, relay.connections());
        assertTrue(stays.close());
        TestTable.await(Duration.ofSeconds(5), "the connection is closed", () -> relay.connections() == 0);
    }

    @Test
    void aSessionThatCannotBeginLeavesTheOthers() {
        session(Map.of());
        TestTable table = new TestTable();
        Map<String, String> settings = table.settings("ns.two");
        settings.put("endpoints", relay.endpoint());
        assertCode(
                ErrorCode.NOT_ADMITTED,
                assertThrows(HoodieException.class, () -> OpenSessions.open(settings, Map.of(), (code, why) -> {})));
        awaitHeartbeats(0, 2);
        assertEquals(1, relay.connections());
    }

    /** Of its own requests each has its time, whatever is answered to others. */
    @Test
    void whoHasNoAnswerEndsAtItsDeadlineAndNobodyElse() {
        Map<String, String> brief = Map.of("rpcTimeoutSeconds", "2", "leaseSeconds", "9", "silenceSeconds", "7");
        Session silent = session(brief);
        Session heard = session(brief);
        long lost = lease(0);
        long kept = lease(1);
        awaitHeartbeats(0, 1);
        relay.withhold(lease -> lease == lost);
        long begin = System.nanoTime();
        TestTable.await(
                Duration.ofSeconds(20), "it is lost", () -> silent.state().equals("LOST"));
        assertEquals("LIVE", heard.state());
        TestTable.await(
                Duration.ofSeconds(20), "it halts", () -> !tables.get(0).halts.isEmpty());
        long seconds = Duration.ofNanos(System.nanoTime() - begin).toSeconds();
        assertEquals(List.of(Liveness.EXIT_SILENT), tables.get(0).halts);
        assertTrue(seconds >= 5, "after " + seconds + " s: before its time");
        assertEquals("LIVE", heard.state());
        assertEquals(List.of(), tables.get(1).halts);
        assertEquals(kept, lease(1), "its lease was never lost");
    }

    @Test
    void aLeaseThatIsRevokedAndFencedEndsItsOwnSessionOnly() throws EtcdException {
        Session fenced = session(Map.of());
        Session other = session(Map.of());
        long kept = lease(1);
        tables.get(0).fence(fenced.inc());
        tables.get(0).client.revoke(lease(0));
        TestTable.await(
                Duration.ofSeconds(6),
                "it is fenced",
                () -> tables.get(0).halts.contains(ProtocolData.exitCode("Fenced")));
        assertFalse(fenced.close());
        awaitHeartbeats(1, 3);
        assertEquals("LIVE", other.state());
        assertEquals(kept, lease(1));
        assertEquals(List.of(), tables.get(1).halts);
        assertTrue(tables.get(1).acquire(other));
        other.release();
    }

    @Test
    void aStreamThatEndsCostsNobodyItsLease() {
        List<Long> leases = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            session(Map.of());
            leases.add(lease(i));
        }
        for (int round = 0; round < 3; round++) {
            relay.end(false);
            for (int i = 0; i < 3; i++) {
                awaitHeartbeats(i, 1);
            }
        }
        for (int i = 0; i < 3; i++) {
            assertEquals("LIVE", sessions.get(i).state());
            assertEquals(leases.get(i), lease(i));
            assertEquals(List.of(), tables.get(i).halts);
        }
    }
}
