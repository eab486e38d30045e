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
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
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

    private static Map<String, String> agent(int silenceSeconds) {
        return Map.of(
                "role", "agent", "rpcTimeoutSeconds", "1", "leaseSeconds", "3", "silenceSeconds", "" + silenceSeconds);
    }

    private List<Integer> halts() {
        return tables.stream().flatMap(table -> table.halts.stream()).collect(Collectors.toList());
    }

    private void pause(int seconds) throws InterruptedException {
        Thread.sleep(Duration.ofSeconds(seconds).toMillis()); // what must not happen within this time
    }

    /** A halt ends the work at all tables of an agent (F583). */
    @Test
    void anAgentOutlivesTheShortestSilenceOfItsTables() throws InterruptedException {
        Session brief = session(agent(3));
        Session patient = session(agent(60));
        awaitHeartbeats(0, 1);
        awaitHeartbeats(1, 1);
        relay.withhold(lease -> true);
        pause(6);
        assertEquals(List.of("LOST", "LOST"), List.of(brief.state(), patient.state()));
        relay.withhold(lease -> false);
        for (Session each : List.of(brief, patient)) {
            TestTable.await(
                    Duration.ofSeconds(10), "it goes on", () -> each.state().equals("LIVE"));
        }
        assertEquals(List.of(), halts());
    }

    @Test
    void anAgentHaltsWhenEachOfItsTablesHasBeenSilentForItsTime() {
        session(agent(3));
        session(agent(6));
        relay.withhold(lease -> true);
        long begin = System.nanoTime();
        TestTable.await(Duration.ofSeconds(30), "it halts", () -> halts().contains(Liveness.EXIT_SILENT));
        long seconds = Duration.ofNanos(System.nanoTime() - begin).toSeconds();
        assertTrue(seconds >= 4, "after " + seconds + " s: before the longer silence");
    }

    /** Another table of the agent has answers: it ends alone, and the agent hands over (F48). */
    @Test
    void aTableOfAnAgentThatAloneHasNoAnswerEndsAlone() {
        Session silent = session(agent(3));
        Session heard = session(agent(3));
        awaitHeartbeats(1, 1);
        long lost = lease(0);
        relay.withhold(lease -> lease == lost);
        TestTable.await(Duration.ofSeconds(20), "it ends", () -> silent.state().equals("FENCED"));
        awaitHeartbeats(1, 2);
        assertEquals("LIVE", heard.state());
        assertEquals(List.of(), halts());
    }

    /** Opened at once, in the threads of an agent (F586). */
    @Test
    void aTableThatCannotBeOpenedKeepsNoOtherOneWaiting() throws Exception {
        relay.grantNothing();
        CompletableFuture<Session> first = CompletableFuture.supplyAsync(() -> session(agent(60)));
        TestTable.await(Duration.ofSeconds(10), "it asks", () -> relay.connections() > 0);
        TestTable second = new TestTable();
        second.admit("ns.two");
        CompletableFuture<Session> other = CompletableFuture.supplyAsync(
                () -> OpenSessions.open(second.settings("ns.two"), Map.of(), (code, why) -> second.halts.add(code)));
        Session opened = other.get(20, TimeUnit.SECONDS);
        assertFalse(first.isDone());
        assertTrue(opened.close());
        relay.grantAgain();
        assertTrue(first.get(30, TimeUnit.SECONDS).state().equals("LIVE"));
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
