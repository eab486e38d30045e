package io.hudioperator.protocol;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InstantTime;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.ProtocolData;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.etcd.EtcdException;
import io.hudioperator.etcd.KeyValue;
import io.hudioperator.etcd.Pause;
import io.hudioperator.etcd.Txn;
import io.hudioperator.session.Session;
import io.hudioperator.support.DropProxy;
import io.hudioperator.support.EtcdServer;
import io.hudioperator.support.FaultyEtcd;
import io.hudioperator.support.TestTable;
import java.nio.file.Files;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Who gets the lock, and that every outcome is definite (I1, I2, F8, F16, F19). */
class AcquireTest {
    private final TestTable table = new TestTable();

    @AfterEach
    void close() {
        table.close();
    }

    @Test
    void theLockHasNoLeaseAndNamesItsOwner() {
        Session session = table.session("ns.a", Map.of("podUID", "uid-1"));
        assertTrue(table.acquire(session));
        assertTrue(session.holdsLock());
        JsonNode lock = Json.parse(table.lock().value());
        assertEquals(0, table.lock().lease());
        assertEquals(session.inc(), lock.get("inc").asText());
        assertEquals("uid-1", lock.get("podUID").asText());
        session.release();
        assertNull(table.lock());
        assertFalse(session.holdsLock());
    }

    @Test
    void onlyOneOwnsIt() {
        Session a = table.session("ns.a");
        Session b = table.session("ns.b");
        assertTrue(table.acquire(a));
        assertFalse(table.acquire(b, 300));
        assertTrue(table.etcd.range("queue/").isEmpty(), "a waiter that gave up leaves the queue");
        assertTrue(b.lastOwner().contains(a.inc()));
        a.release();
        assertTrue(table.acquire(b));
        b.release();
    }

    /** F626: while one of its threads has the lock, a session cannot leave. */
    @Test
    void whatAnEndedProgramHasLeftRunningTakesNoLock() throws Exception {
        Session session = table.session("ns.a");
        String instant = "20260101000000001";
        assertTrue(table.acquire(session));
        session.instants().beforeRequested(instant, "commit");
        session.release();
        session.programEnded();
        assertTrue(table.acquire(session), "what has begun may end");
        session.release();
        assertTrue(session.abandon(instant));
        assertCode(ErrorCode.NOT_OWNER, assertThrows(HoodieException.class, () -> table.acquire(session)));
        assertNull(table.lock());
        assertTrue(session.close());
    }

    /** F626: it waits since before the end of the program, and may wait for minutes. */
    @Test
    void whatAnEndedProgramHasLeftWaitingWaitsNoLonger() throws Exception {
        Session other = table.session("ns.b");
        assertTrue(table.acquire(other));
        Session session = table.session("ns.a");
        CompletableFuture<Boolean> left = CompletableFuture.supplyAsync(() -> table.acquire(session, 60_000));
        TestTable.await(
                Duration.ofSeconds(10),
                "it waits",
                () -> !table.etcd.range("queue/").isEmpty());
        session.programEnded();
        ExecutionException refused = assertThrows(ExecutionException.class, () -> left.get(10, TimeUnit.SECONDS));
        assertCode(ErrorCode.NOT_OWNER, (HoodieException) refused.getCause());
        assertTrue(session.awaitQuiet(0));
        assertTrue(session.close());
        assertTrue(table.etcd.range("queue/").isEmpty());
        other.release();
    }

    @Test
    void aLockThatIsTakenOnTheWayStaysWhereItIs() {
        Session session = table.session("ns.a");
        table.faults(session)
                .before(FaultyEtcd.puts(table.keys.lock()), () -> table.etcd.put("lock", "{\"inc\":\"somebody\"}"));
        assertFalse(table.acquire(session, 700));
        assertEquals("{\"inc\":\"somebody\"}", table.lock().value());
    }

    @Test
    void noGateNobody() {
        Session session = table.session("ns.a");
        table.etcd.delete(table.keys.gate(), 0);
        assertCode(ErrorCode.NO_GATE, assertThrows(HoodieException.class, () -> table.acquire(session)));
        assertNull(table.lock());
    }

    @Test
    void theGateDecidesWhoMay() {
        Session a = table.session("ns.a");
        Session agent = table.session("ns.agent", Map.of("role", "agent"));
        table.gate("closed", "PodTermination", "ns.other");
        assertCode(ErrorCode.NOT_ADMITTED, assertThrows(HoodieException.class, () -> table.acquire(a)));
        assertTrue(table.acquire(agent));
        agent.release();
        table.gate("closed", "PodTermination", "ns.a");
        assertTrue(table.acquire(a));
        a.release();
        table.gate("frozen", "PodTermination", "ns.a");
        assertCode(ErrorCode.NOT_ADMITTED, assertThrows(HoodieException.class, () -> table.acquire(a)));
        assertCode(ErrorCode.NOT_ADMITTED, assertThrows(HoodieException.class, () -> table.acquire(agent)));
    }

    /**
     * The gate of an operator that was upgraded before or while this process runs: neither writers
     * nor agents write by a protocol other than the gate's.
     */
    @Test
    void aGateOfAnotherProtocolRefusesWithItsReason() {
        Session writer = table.session("ns.a");
        Session agent = table.session("ns.agent", Map.of("role", "agent"));
        int mine = ProtocolData.protocolVersion();
        String gate = table.etcd.get(table.keys.gate()).value();
        for (int other : new int[] {mine + 1, mine - 1}) {
            table.etcd.put(
                    table.keys.gate(), gate.replace("\"protocolVersion\":" + mine, "\"protocolVersion\":" + other));
            for (Session session : new Session[] {writer, agent}) {
                HoodieException refused = assertThrows(HoodieException.class, () -> table.acquire(session));
                assertCode(ErrorCode.NOT_ADMITTED, refused);
                assertTrue(
                        refused.getMessage()
                                .contains("the gate requires protocol version " + other + ", this process has " + mine),
                        refused.getMessage());
            }
        }
        assertNull(table.lock());
        table.etcd.put(table.keys.gate(), gate);
        assertTrue(table.acquire(writer));
        writer.release();
    }

    @Test
    void aGateThatChangesOnTheWayIsReadAgain() {
        Session session = table.session("ns.a");
        table.faults(session).before(FaultyEtcd.puts(table.keys.lock()), () -> table.gate("frozen", "PodTermination"));
        assertCode(ErrorCode.NOT_ADMITTED, assertThrows(HoodieException.class, () -> table.acquire(session)));
        assertNull(table.lock());
    }

    @Test
    void fencedNeverAcquires() {
        Session a = table.session("ns.a");
        table.fence(a.inc());
        assertCode(ErrorCode.FENCED, assertThrows(HoodieException.class, () -> table.acquire(a)));
        assertNull(table.lock());
    }

    @Test
    void fencedOnTheWayNeverAcquires() {
        Session a = table.session("ns.a");
        table.faults(a).before(FaultyEtcd.puts(table.keys.lock()), () -> table.fence(a.inc()));
        assertCode(ErrorCode.FENCED, assertThrows(HoodieException.class, () -> table.acquire(a)));
        assertNull(table.lock());
    }

    @Test
    void aLostAnswerOfAcquireEndsWithTheLock() {
        Session session = table.session("ns.a");
        table.faults(session).loseAnswerOf(FaultyEtcd.puts(table.keys.lock()));
        assertTrue(table.acquire(session));
        assertEquals(session.inc(), Json.text(Json.parse(table.lock().value()), "inc"));
        session.release();
        assertNull(table.lock());
    }

    @Test
    void aLostAnswerOnTheNetworkEndsWithTheLock() throws Exception {
        try (DropProxy proxy = EtcdServer.shared().proxy()) {
            Session session = table.session("ns.a", Map.of("endpoints", proxy.endpoint()));
            table.faults(session).before(FaultyEtcd.puts(table.keys.lock()), () -> swallowForAMoment(proxy));
            assertTrue(table.acquire(session, 10_000));
            assertNotNull(table.lock());
            session.release();
            assertNull(table.lock());
        }
    }

    private static void swallowForAMoment(DropProxy proxy) {
        proxy.mode(DropProxy.Mode.SWALLOW_ANSWERS);
        Thread healer = new Thread(() -> {
            Pause.millis(500);
            proxy.cut();
            proxy.mode(DropProxy.Mode.PASS);
        });
        healer.setDaemon(true);
        healer.start();
    }

    @Test
    void aLostAnswerOfReleaseIsRepeated() {
        Session session = table.session("ns.a");
        assertTrue(table.acquire(session));
        table.faults(session).loseAnswerOf(FaultyEtcd.deletes(table.keys.lock()));
        session.release();
        assertNull(table.lock());
        assertTrue(table.acquire(session));
        session.release();
    }

    @Test
    void anAcquireThatCannotBeResolvedForbidsACleanExit() {
        Session session = table.session("ns.a");
        table.faults(session).loseAnswerOf(FaultyEtcd.puts(table.keys.lock()));
        table.faults(session).refuse(t -> t.compares.size() == 1 && t.compares.get(0).target == Txn.Target.VALUE);
        assertThrows(HoodieException.class, () -> table.acquire(session));
        assertTrue(session.unresolved());
        assertFalse(session.close());
        assertNotNull(table.lock(), "it was executed: the lock names an incarnation that is still registered");
    }

    @Test
    void aReleaseWithoutAnswerKeepsTheSessionUnresolved() {
        Session session = table.session("ns.a");
        assertTrue(table.acquire(session));
        table.faults(session).refuse(FaultyEtcd.deletes(table.keys.lock()));
        assertThrows(HoodieException.class, session::release);
        assertTrue(session.unresolved());
        assertFalse(session.close());
        assertFalse(table.acquire(session, 100));
    }

    /** F561: with its heartbeat the lock would stand until it has been held for too long. */
    @Test
    void whoCannotReleaseEnds() {
        for (String role : List.of("writer", "agent")) {
            Session session = table.session("ns." + role, Map.of("role", role));
            assertTrue(table.acquire(session));
            table.faults(session).refuse(FaultyEtcd.deletes(table.keys.lock()));
            assertThrows(HoodieException.class, session::release);
            assertEquals("FENCED", session.state());
            assertEquals(List.of(15), table.halts, "an agent's other tables are not its concern");
            table.etcd.delete("lock", 0); // as the operator does after a proof of death
        }
    }

    /** F587: the release may be the first to see it, before the heartbeat does. */
    @Test
    void whoseReleaseFindsEtcdSetBackEndsAsItsHeartbeatWould() {
        for (String role : List.of("writer", "agent")) {
            table.halts.clear();
            Session session = table.session("ns." + role, Map.of("role", role));
            assertTrue(table.acquire(session));
            table.faults(session).refuse(FaultyEtcd.deletes(table.keys.lock()), EtcdException.Outcome.SET_BACK);
            assertThrows(HoodieException.class, session::release);
            assertEquals(List.of(16), table.halts, role);
            table.etcd.delete("lock", 0); // as the operator does after a proof of death
        }
    }

    /** F561: nobody knows of a lock that is given back before it was used. */
    @Test
    void whoCannotGiveBackEnds() {
        Session session = table.session("ns.a");
        table.faults(session).before(FaultyEtcd.puts(table.keys.lock()), () -> table.etcd.put(table.keys.clock(), "x"));
        table.faults(session).refuse(FaultyEtcd.deletes(table.keys.lock()));
        assertThrows(HoodieException.class, () -> table.acquire(session));
        assertNotNull(table.lock());
        assertEquals("FENCED", session.state());
    }

    @Test
    void aLateReleaseDoesNotTouchTheNextOwner() throws EtcdException {
        Session a = table.session("ns.a");
        assertTrue(table.acquire(a));
        table.faults(a).hold(FaultyEtcd.deletes(table.keys.lock()));
        a.release();
        Session b = table.session("ns.b");
        assertTrue(table.acquire(b));
        long token = table.lock().createRevision();
        assertFalse(table.faults(a).deliver(table.client));
        assertEquals(token, table.lock().createRevision());
        b.release();
    }

    @Test
    void anAcquireThatArrivesAfterGivingUpNeverOwns() throws EtcdException {
        Session a = table.session("ns.a");
        Session b = table.session("ns.b");
        table.faults(a).hold(FaultyEtcd.puts(table.keys.lock()));
        assertTrue(table.acquire(a), "the next try succeeds");
        a.release();
        assertFalse(table.faults(a).deliver(table.client), "executed now, on a free lock, it must fail");
        assertNull(table.lock());
        assertTrue(table.acquire(b));
        b.release();
    }

    @Test
    void anAcquireThatArrivesAfterTheLeaseWasLostNeverOwns() throws EtcdException {
        Session a = table.session("ns.a");
        KeyValue alive = table.etcd.get("alive/" + a.inc());
        table.faults(a).hold(FaultyEtcd.puts(table.keys.lock()));
        table.faults(a)
                .before(
                        t -> !t.otherwise.isEmpty() && t.otherwise.get(0).key.equals(table.keys.alive(a.inc())),
                        () -> revoke(alive.lease()));
        assertTrue(table.acquire(a, 10_000));
        a.release();
        assertFalse(table.faults(a).deliver(table.client));
        assertNull(table.lock());
    }

    /**
     * The else branch of the resolve compares neither fence nor registration. It can restore a
     * heartbeat, which gives no rights (F38).
     */
    @Test
    void aHeartbeatThatComesBackAfterTheFenceOpensNothing() throws EtcdException {
        Session a = table.session("ns.a");
        table.faults(a).hold(FaultyEtcd.puts(table.keys.lock()));
        table.faults(a)
                .before(t -> !t.otherwise.isEmpty() && t.otherwise.get(0).key.equals(table.keys.alive(a.inc())), () -> {
                    table.fence(a.inc());
                    table.etcd.delete(
                            table.keys.alive(a.inc()),
                            table.etcd.get("alive/" + a.inc()).modRevision());
                    table.etcd.delete(
                            table.keys.writer(a.inc()),
                            table.etcd.get("writer/" + a.inc()).modRevision());
                });
        assertCode(ErrorCode.FENCED, assertThrows(HoodieException.class, () -> table.acquire(a)));
        assertNotNull(table.etcd.get("alive/" + a.inc()), "the branch was taken after the fence");
        assertNull(table.etcd.get("writer/" + a.inc()));
        assertFalse(
                table.faults(a).deliver(table.client), "the lost acquire compares another heartbeat, and the fence");
        assertNull(table.lock());
        Session b = table.session("ns.b");
        assertTrue(table.acquire(b));
        b.release();
    }

    private void revoke(long lease) {
        try {
            table.client.revoke(lease);
        } catch (EtcdException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void aLateTicketIsNoZombie() throws EtcdException {
        Session a = table.session("ns.a");
        Session b = table.session("ns.b");
        assertTrue(table.acquire(a));
        table.faults(b)
                .hold(t -> t.then.stream().anyMatch(op -> op.kind == Txn.Kind.PUT && op.key.contains("/queue/")));
        assertFalse(table.acquire(b, 500));
        assertFalse(table.faults(b).deliver(table.client));
        assertTrue(table.etcd.range("queue/").isEmpty());
        a.release();
    }

    @Test
    void theClockOfTheTableMustNotBeFarAhead() {
        Session session = table.session("ns.a");
        table.clock(TestTable.time(60_000));
        // checked before it queues: it must not hold the lock while it waits
        table.faults(session).refuse(FaultyEtcd.puts(table.keys.lock()));
        HoodieException e = assertThrows(HoodieException.class, () -> table.acquire(session));
        assertCode(ErrorCode.CLOCK_BEHIND, e);
        assertTrue(e.getMessage().contains("behind the table's clock"));
        assertNull(table.lock(), "refused before it queued");
    }

    @Test
    void aClockALittleAheadIsWaitedFor() {
        Session session = table.session("ns.a");
        String ahead = TestTable.time(700);
        table.clock(ahead);
        assertTrue(table.acquire(session));
        assertTrue(InstantTime.isAfter(InstantTime.now(), ahead));
        session.release();
    }

    /** F416: so far ahead the gateway lets a clock be. */
    @Test
    void aClockThatTheGatewayLetsThroughIsWaitedFor() {
        Session session = table.session("ns.a");
        String ahead = TestTable.time(2 * 1000 + 900); // maxClockSkewSeconds of the gate is 2
        table.clock(ahead);
        assertTrue(table.acquire(session));
        assertTrue(InstantTime.isAfter(InstantTime.now(), ahead));
        session.release();
    }

    @Test
    void aClockThatCannotBeReadIsNamed() {
        Session session = table.session("ns.a");
        for (String value :
                new String[] {"{\"value\":\"soon\"}", "{\"value\":\"20261301000000000\"}", "{}", "x".repeat(500)}) {
            table.etcd.put(table.keys.clock(), value);
            HoodieException e = assertThrows(HoodieException.class, () -> table.acquire(session));
            assertTrue(e.getMessage().contains(table.keys.clock()), e.getMessage());
            assertTrue(e.getMessage().contains("yyyyMMddHHmmssSSS"), e.getMessage());
            assertTrue(e.getMessage().length() < 400, e.getMessage());
            assertNull(e.getCause());
            assertNull(table.lock());
        }
    }

    @Test
    void aClockThatCannotBeReadAnyMoreIsNamedAndTheLockReleased() {
        Session session = table.session("ns.a");
        table.faults(session).before(FaultyEtcd.puts(table.keys.lock()), () -> table.etcd.put(table.keys.clock(), "x"));
        HoodieException e = assertThrows(HoodieException.class, () -> table.acquire(session));
        assertTrue(e.getMessage().contains(table.keys.clock()), e.getMessage());
        assertNull(table.lock());
    }

    @Test
    void aClockThatMovesOnTheWayIsWaitedFor() {
        Session session = table.session("ns.a");
        String[] ahead = new String[1];
        table.faults(session)
                .before(FaultyEtcd.puts(table.keys.lock()), () -> table.clock(ahead[0] = TestTable.time(900)));
        assertTrue(table.acquire(session));
        assertTrue(
                InstantTime.isAfter(InstantTime.now(), ahead[0]),
                "the lock is used only when this host's clock is past the table's");
        session.release();
    }

    @Test
    void withoutAClockTheTimelineIsRead() throws Exception {
        Session session = table.session("ns.a");
        String completion = TestTable.time(600);
        Files.createFile(table.folder.resolve(".hoodie/timeline/20250101000000000_" + completion + ".commit"));
        assertTrue(table.acquire(session));
        TimelineRefusedException e = assertThrows(
                TimelineRefusedException.class, () -> session.instants().beforeRequested(completion, "commit"));
        assertCode(ErrorCode.CLOCK_NOT_PAST, e);
        session.release();
    }

    @Test
    void aClockThatEtcdHasForgottenIsReadFromTheTimeline() throws Exception {
        table.clock(TestTable.time(-60_000));
        String completion = TestTable.time(600);
        Files.createFile(table.folder.resolve(".hoodie/timeline/20250101000000000_" + completion + ".commit"));
        Session session = table.session("ns.a");
        assertTrue(table.acquire(session));
        assertTrue(InstantTime.isAfter(InstantTime.now(), completion), "waited for");
        assertCode(
                ErrorCode.CLOCK_NOT_PAST,
                assertThrows(
                        TimelineRefusedException.class,
                        () -> session.instants().beforeRequested(completion, "commit")));
        session.release();
    }

    @Test
    void leaseOnlyLocksVanishWithTheirLease() throws EtcdException {
        table.gate("open", "LeaseOnly");
        Session session = table.session("ns.a");
        assertTrue(table.acquire(session));
        assertNotEquals(0, table.lock().lease());
        String time = TestTable.time(0);
        revoke(table.lock().lease());
        assertNull(table.lock());
        assertCode(
                ErrorCode.TOKEN,
                assertThrows(
                        TimelineRefusedException.class, () -> session.instants().beforeRequested(time, "commit")));
        session.release();
        TestTable.await(Duration.ofSeconds(6), "another lease", () -> table.etcd.get("alive/" + session.inc()) != null);
    }

    @Test
    void theMarkerNamesTheAuthority() throws Exception {
        Session session = table.session("ns.a");
        assertTrue(table.acquire(session));
        session.release();
        JsonNode marker = Json.parse(Files.readString(table.folder.resolve(".hoodie/hudi-operator/" + table.id)));
        assertEquals(TestTable.AUTHORITY, marker.get("authority").asText());
        assertEquals("/hudi", marker.get("prefix").asText());
        assertEquals(table.id, marker.get("tableId").asText());
        assertEquals(table.client.clusterId().isEmpty(), false);
        assertEquals(table.client.clusterId(), marker.get("clusterId").asText());
    }

    @Test
    void anotherAuthorityIsRefused() throws Exception {
        Files.createDirectories(table.folder.resolve(".hoodie/hudi-operator"));
        Files.writeString(
                table.folder.resolve(".hoodie/hudi-operator/" + table.id), "{\"authority\":\"somebody-else\"}");
        Session session = table.session("ns.a");
        assertCode(ErrorCode.OTHER_AUTHORITY, assertThrows(HoodieException.class, () -> table.acquire(session)));
        assertNull(table.lock());
    }

    @Test
    void anotherTableIdIsRefused() throws Exception {
        Files.createDirectories(table.folder.resolve(".hoodie/hudi-operator"));
        Files.writeString(table.folder.resolve(".hoodie/hudi-operator/0123456789abcdef0123456789abcdef"), "{}");
        Session session = table.session("ns.a");
        assertCode(ErrorCode.OTHER_AUTHORITY, assertThrows(HoodieException.class, () -> table.acquire(session)));
        assertNull(table.lock());
    }

    @Test
    void waitingInTheSameProcessTakesTurns() throws Exception {
        Session session = table.session("ns.a");
        assertTrue(table.acquire(session));
        assertFalse(table.acquire(session, 100));
        Thread other = new Thread(() -> assertTrue(table.acquire(session)));
        other.start();
        session.release();
        other.join(5000);
        assertTrue(session.holdsLock());
        session.release();
    }
}
