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
import io.hudioperator.contract.Json;
import io.hudioperator.contract.ProtocolData;
import io.hudioperator.contract.ProtocolLog;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.etcd.EtcdException;
import io.hudioperator.etcd.EtcdSettings;
import io.hudioperator.etcd.GrpcEtcdClient;
import io.hudioperator.etcd.KeyValue;
import io.hudioperator.etcd.Txn;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import io.hudioperator.support.DropProxy;
import io.hudioperator.support.EtcdServer;
import io.hudioperator.support.FaultyEtcd;
import io.hudioperator.support.TestTable;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Registration, heartbeat and clean exit (I2, F15, F19, F23). */
class RegistrationTest {
    private final TestTable table = new TestTable();

    @AfterEach
    void close() {
        table.close();
    }

    @Test
    void registersWithWhatTheOperatorNeeds() {
        Session session =
                table.session("ns.a", Map.of("podUID", "uid-1", "bootId", "boot-1", "priority", "7", "podName", "a"));
        session.setAppId("app-1");
        JsonNode writer = Json.parse(table.etcd.get("writer/" + session.inc()).value());
        assertEquals("ns.a", writer.get("attempt").asText());
        assertEquals("uid-1", writer.get("podUID").asText());
        assertEquals("boot-1", writer.get("bootId").asText());
        assertEquals("app-1", writer.get("appId").asText());
        assertEquals(7, writer.get("priority").asInt());
        assertEquals("writer", writer.get("role").asText());
        assertEquals(
                ProtocolData.protocolVersion(), writer.get("protocolVersion").asInt());
        assertTrue(
                Math.abs(System.currentTimeMillis() - writer.get("wallClockMs").asLong()) < 60_000);
        assertEquals(0, table.etcd.get("writer/" + session.inc()).lease());
        assertNotEquals(0, table.etcd.get("alive/" + session.inc()).lease());
        assertEquals("LIVE", session.state());
    }

    @Test
    void refusedWithoutAdmission() {
        Map<String, String> settings = table.settings("ns.unknown");
        EtcdSettings etcd = EtcdSettings.of(settings, Map.of());
        HoodieException e = assertThrows(
                HoodieException.class,
                () -> OpenSessions.open(settings, Map.of(), new GrpcEtcdClient(etcd), etcd, (c, w) -> {}));
        assertCode(ErrorCode.NOT_ADMITTED, e);
        assertTrue(table.etcd.range("writer/").isEmpty());
    }

    @Test
    void anotherReleaseOfHudiIsRefusedBeforeItRegisters() {
        table.pin("1.2.9");
        table.admit("ns.a");
        Map<String, String> settings = table.settings("ns.a");
        EtcdSettings etcd = EtcdSettings.of(settings, Map.of());
        HoodieException e = assertThrows(
                HoodieException.class,
                () -> OpenSessions.open(settings, Map.of(), new GrpcEtcdClient(etcd), etcd, (c, w) -> {}));
        assertCode(ErrorCode.HUDI_VERSION, e);
        assertTrue(
                e.getMessage().contains("pinned to Hudi 1.2.9 (spec.hudiVersion), this image has Hudi 1.2.0"),
                e.getMessage());
        assertTrue(table.etcd.range("writer/").isEmpty());
        table.pin(ProtocolData.data().get("hudiVersion").asText());
        assertEquals("LIVE", table.session("ns.a").state());
    }

    @Test
    void aSessionDoesNotOutliveThePinOfItsTable() throws Exception {
        Session session = table.session("ns.a");
        table.pin("1.2.9");
        assertCode(ErrorCode.HUDI_VERSION, assertThrows(HoodieException.class, () -> table.acquire(session)));
        assertNull(table.etcd.get("lock"));
    }

    @Test
    void refusedAfterTheFenceTookTheAdmissionAway() {
        Session session = table.session("ns.a");
        table.fence(session.inc());
        assertTrue(table.etcd.delete(table.keys.admit("ns.a"), 0));
        refusedAgain();
    }

    private void refusedAgain() {
        Map<String, String> settings = table.settings("ns.a");
        EtcdSettings etcd = EtcdSettings.of(settings, Map.of());
        HoodieException e = assertThrows(
                HoodieException.class,
                () -> OpenSessions.open(settings, Map.of(), new GrpcEtcdClient(etcd), etcd, (c, w) -> {}));
        assertCode(ErrorCode.NOT_ADMITTED, e);
    }

    @Test
    void aFencedIncarnationCannotRegister() throws EtcdException {
        table.admit("ns.a");
        Map<String, String> settings = table.settings("ns.a");
        Identity me = new Identity(settings, Map.of());
        ProtocolLog log = new ProtocolLog(table.id, me.inc, me.role);
        Registration registration = new Registration(
                table.client, table.keys, me, log, new DefiniteTxn(table.client, table.keys, log, () -> false));
        table.fence(me.inc);
        long lease = table.client.grantLease(5);
        assertCode(ErrorCode.FENCED, assertThrows(HoodieException.class, () -> registration.register("{}", lease)));
        assertNull(table.etcd.get("writer/" + me.inc));
    }

    @Test
    void aRegistrationThatArrivesLateIsRejectedWhole() throws EtcdException {
        table.admit("ns.late");
        Map<String, String> settings = table.settings("ns.late");
        EtcdSettings etcd = EtcdSettings.of(settings, Map.of());
        FaultyEtcd faulty = new FaultyEtcd(new GrpcEtcdClient(etcd));
        faulty.hold(t -> t.then.stream().anyMatch(op -> op.key.contains("/writer/")));
        Session session = OpenSessions.open(settings, Map.of(), faulty, etcd, (c, w) -> {});
        assertTrue(faulty.holdsSomething());
        assertTrue(session.close());
        assertFalse(faulty.deliver(table.client));
        assertNull(table.etcd.get("writer/" + session.inc()));
        assertNull(table.etcd.get("alive/" + session.inc()));
    }

    @Test
    void cleanExitRemovesTheRegistration() {
        Session session = table.session("ns.a");
        assertTrue(table.acquire(session));
        assertFalse(session.close(), "not while the lock is held");
        session.release();
        assertTrue(session.awaitQuiet(0));
        assertTrue(session.close());
        assertEquals("CLOSED", session.state());
        assertNull(table.etcd.get("writer/" + session.inc()));
        assertNull(table.etcd.get("alive/" + session.inc()));
        assertTrue(session.close());
    }

    @Test
    void aHeartbeatDuringTheCleanExitDoesNotMissTheRegistration() {
        Session session = table.session("ns.a");
        Predicate<Txn> removes = FaultyEtcd.deletes(table.keys.writer(session.inc()));
        AtomicInteger removals = new AtomicInteger();
        AtomicInteger beats = new AtomicInteger();
        table.faults(session).loseAnswerOf(removes); // so the clean exit is repeated with the registration already gone
        table.faults(session).refuse(t -> !removes.test(t) && beats.incrementAndGet() < 0);
        table.faults(session).before(t -> removes.test(t) && removals.incrementAndGet() == 2, () -> {
            int seen = beats.get();
            TestTable.await(
                    Duration.ofSeconds(6),
                    "a heartbeat without registration",
                    () -> beats.get() > seen + 1 || !table.halts.isEmpty());
        });
        assertTrue(session.close());
        assertEquals("CLOSED", session.state());
        assertTrue(table.halts.isEmpty(), "it left; it was not fenced");
    }

    @Test
    void aPendingInstantKeepsTheRegistration() throws TimelineRefusedException {
        Session session = table.session("ns.a");
        assertTrue(table.acquire(session));
        String time = TestTable.time(0);
        session.instants().beforeRequested(time, "commit");
        session.release();
        assertFalse(session.close());
        assertNotNull(table.etcd.get("writer/" + session.inc()));
        assertEquals(java.util.List.of(time), session.pendingInstants());
        assertTrue(session.abandon(time));
        assertEquals("Abandoned", table.state(time));
        assertTrue(session.close());
    }

    @Test
    void aLostLeaseIsReplacedAndTheSessionGoesOn() throws EtcdException {
        Session session = table.session("ns.a");
        KeyValue before = table.etcd.get("alive/" + session.inc());
        table.client.revoke(before.lease());
        TestTable.await(Duration.ofSeconds(6), "another lease", () -> {
            KeyValue alive = table.etcd.get("alive/" + session.inc());
            return alive != null && alive.lease() != before.lease();
        });
        assertTrue(table.acquire(session));
        session.release();
        assertEquals("LIVE", session.state());
        assertTrue(table.halts.isEmpty());
    }

    /** It may be tried each second, and a pod may have so many leases (F584). */
    @Test
    void aRegistrationThatIsRefusedLeavesNoLease() {
        table.admit("ns.a");
        Map<String, String> settings = table.settings("ns.a");
        EtcdSettings etcd = EtcdSettings.of(settings, Map.of());
        FaultyEtcd denies = new FaultyEtcd(new GrpcEtcdClient(etcd));
        denies.refuse(txn -> txn.then.stream().anyMatch(op -> op.key.contains("/writer/")));
        assertCode(
                ErrorCode.ETCD_SILENT,
                assertThrows(
                        HoodieException.class,
                        () -> OpenSessions.open(settings, Map.of(), denies, etcd, (code, why) -> {})));
        assertEquals(Set.of(), denies.leases());
    }

    @Test
    void theFenceHaltsTheProcess() {
        Session session = table.session("ns.a");
        table.fence(session.inc());
        TestTable.await(
                Duration.ofSeconds(6),
                "the session is fenced",
                () -> session.state().equals("FENCED"));
        TestTable.await(Duration.ofSeconds(1), "it halts", () -> table.halts.contains(Liveness.EXIT_FENCED));
        assertFalse(session.close());
        assertNotNull(table.etcd.get("writer/" + session.inc()));
    }

    @Test
    void theFenceOfOneTableLeavesTheOthersOfAnAgent() throws Exception {
        try (TestTable second = new TestTable()) {
            Session fenced = table.session("ns.agent", Map.of("role", "agent"));
            Session other = second.session("ns.agent", Map.of("role", "agent"));
            table.fence(fenced.inc());
            TestTable.await(
                    Duration.ofSeconds(6),
                    "the session is fenced",
                    () -> fenced.state().equals("FENCED"));
            assertCode(ErrorCode.FENCED, assertThrows(HoodieException.class, () -> table.acquire(fenced)));
            assertTrue(table.halts.isEmpty(), "one table must not end the process of all tables (F48)");
            assertTrue(second.acquire(other));
            other.release();
            assertTrue(other.close());
            assertFalse(fenced.close(), "the operator settles it");
            assertNotNull(table.etcd.get("writer/" + fenced.inc()));
        }
    }

    @Test
    void aLostLeaseIsNotReplacedAfterTheFence() throws EtcdException {
        Session session = table.session("ns.a");
        KeyValue before = table.etcd.get("alive/" + session.inc());
        table.faults(session)
                .before(FaultyEtcd.puts(table.keys.alive(session.inc())), () -> table.fence(session.inc()));
        table.client.revoke(before.lease());
        TestTable.await(Duration.ofSeconds(6), "it halts", () -> table.halts.contains(Liveness.EXIT_FENCED));
        assertNull(table.etcd.get("alive/" + session.inc()));
    }

    @Test
    void silenceHaltsTheProcess() throws Exception {
        try (DropProxy proxy = EtcdServer.shared().proxy()) {
            Session session = table.session(
                    "ns.a",
                    Map.of(
                            "endpoints",
                            proxy.endpoint(),
                            "rpcTimeoutSeconds",
                            "1",
                            "leaseSeconds",
                            "3",
                            "silenceSeconds",
                            "2"));
            proxy.mode(DropProxy.Mode.BLACK_HOLE);
            TestTable.await(
                    Duration.ofSeconds(4), "it is lost", () -> session.state().equals("LOST"));
            TestTable.await(Duration.ofSeconds(6), "it halts", () -> table.halts.contains(Liveness.EXIT_SILENT));
        }
    }

    @Test
    void durationsThatCannotWorkAreRefused() {
        assertCode(
                ErrorCode.OPTION,
                assertThrows(
                        HoodieException.class,
                        () -> Durations.of(Map.of("leaseSeconds", "5", "rpcTimeoutSeconds", "2"), Json.object())));
    }
}
