package io.hudioperator.timeline;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Server;
import io.grpc.Status;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.etcd.EtcdException;
import io.hudioperator.etcd.EtcdSettings;
import io.hudioperator.etcd.GrpcEtcdClient;
import io.hudioperator.etcd.Txn;
import io.hudioperator.rpc.KVGrpc;
import io.hudioperator.rpc.TxnRequest;
import io.hudioperator.rpc.TxnResponse;
import io.hudioperator.session.Session;
import io.hudioperator.support.FaultyEtcd;
import io.hudioperator.support.TestTable;
import io.hudioperator.testing.GuardedLocalFileSystem;
import java.io.IOException;
import java.net.URI;
import java.util.Map;
import java.util.function.Predicate;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The gateway refuses a time that is ahead of all others: nothing is left half done (F382). */
class ClockAheadTest {
    private final TestTable table = new TestTable();
    private final Session session = table.session("ns.a");
    private final Predicate<Txn> promises = FaultyEtcd.puts(table.keys.clock());
    private final GuardedLocalFileSystem fs = new GuardedLocalFileSystem();

    @BeforeEach
    void begin() throws IOException {
        fs.initialize(URI.create("file:///"), new Configuration());
    }

    @AfterEach
    void close() {
        table.close();
    }

    private Path path(String name) {
        return new Path(table.timeline(name));
    }

    private void refuse() {
        table.faults(session).refuse(promises, EtcdException.Outcome.CLOCK_AHEAD);
    }

    private void assertRefused(Exception e) {
        assertCode(ErrorCode.CLOCK_AHEAD, e);
        assertTrue(e.getMessage().contains("the wall clock of host "), e.getMessage());
        assertFalse(e.getMessage().contains("host unknown"), e.getMessage());
    }

    @Test
    void anInstantIsNotBegun() throws Exception {
        String clock = TestTable.time(-1000);
        table.clock(clock);
        assertTrue(table.acquire(session));
        refuse();
        String instant = TestTable.time(0);
        Path requested = path(instant + ".commit.requested");
        assertRefused(assertThrows(TimelineRefusedException.class, () -> fs.create(requested, false)));
        assertFalse(fs.exists(requested));
        assertNull(table.instant(instant));
        assertEquals(clock, table.clock());
        assertTrue(session.pendingInstants().isEmpty());
        session.release();
        assertNull(table.lock());
        assertTrue(session.close(), "a clean exit");
    }

    @Test
    void anInstantIsNotCompletedAndMayBeGivenUp() throws Exception {
        assertTrue(table.acquire(session));
        String instant = TestTable.time(0);
        TestTable.write(fs, path(instant + ".commit.requested"), new byte[0]);
        session.conflictsChecked(instant);
        refuse();
        Path completed = path(instant + "_" + TestTable.time(10) + ".commit");
        assertRefused(assertThrows(
                TimelineRefusedException.class, () -> TestTable.write(fs, completed, TestTable.COMPLETED)));
        assertFalse(fs.exists(completed));
        assertEquals(instant, table.clock());
        long before = System.nanoTime();
        session.release(); // without a drain: nothing was sent
        assertTrue(System.nanoTime() - before < 1_000_000_000L, "no outcome is unknown");
        assertNull(table.lock());
        assertNotNull(table.instant(instant), "as any instant that was begun");
        assertTrue(session.abandon(instant));
    }

    @Test
    void aRequestWithoutAnAnswerBeforeLeavesARecordAndNoFile() throws Exception {
        assertTrue(table.acquire(session));
        String instant = TestTable.time(0);
        FaultyEtcd faults = table.faults(session);
        faults.loseAnswerOf(promises.and(txn -> {
            refuse(); // from the next request on
            return true;
        }));
        Path requested = path(instant + ".commit.requested");
        assertRefused(assertThrows(TimelineRefusedException.class, () -> fs.create(requested, false)));
        assertFalse(fs.exists(requested));
        assertNotNull(table.instant(instant), "the first request was executed");
        session.release();
        assertFalse(session.close(), "its record is the operator's to settle, or the owner's to give up");
        assertTrue(session.abandon(instant));
    }

    /** F416: whoever is ahead by little more than is allowed waits under the lock, not for ever. */
    @Test
    void aTimeThatIsRefusedForAMomentIsPromisedAfterwards() throws Exception {
        assertTrue(table.acquire(session));
        int[] asked = new int[1];
        table.faults(session).refuse(promises.and(txn -> ++asked[0] <= 2), EtcdException.Outcome.CLOCK_AHEAD);
        String instant = TestTable.time(0);
        fs.create(path(instant + ".commit.requested"), false).close();
        assertEquals(3, asked[0]);
        assertEquals(instant, table.clock());
        session.release();
        assertTrue(session.abandon(instant));
    }

    /** F414: no time of this process is good any more, at whichever table. */
    @Test
    void aFinalRefusalIsTold() throws Exception {
        assertTrue(table.acquire(session));
        refuse();
        Path requested = path(TestTable.time(0) + ".commit.requested");
        Exception e = assertThrows(TimelineRefusedException.class, () -> fs.create(requested, false));
        assertEquals(e.getMessage(), "[" + ErrorCode.CLOCK_AHEAD.code() + "] " + session.clockRefused());
        session.release();
    }

    @Test
    void theGatewaysRefusalIsDefinite() throws IOException {
        for (Map.Entry<String, EtcdException.Outcome> one : Map.of(
                        "clock of table t: … (rule clock): set the clock", EtcdException.Outcome.CLOCK_AHEAD,
                        "etcdserver: authentication is not enabled", EtcdException.Outcome.REFUSED)
                .entrySet()) {
            Server server = NettyServerBuilder.forPort(0)
                    .addService(new KVGrpc.KVImplBase() {
                        @Override
                        public void txn(TxnRequest request, StreamObserver<TxnResponse> answer) {
                            answer.onError(Status.FAILED_PRECONDITION
                                    .withDescription(one.getKey())
                                    .asRuntimeException());
                        }
                    })
                    .build()
                    .start();
            Map<String, String> settings = Map.of("endpoints", "http://127.0.0.1:" + server.getPort());
            try (GrpcEtcdClient client = new GrpcEtcdClient(EtcdSettings.of(settings, Map.of()))) {
                EtcdException e = assertThrows(EtcdException.class, () -> client.txn(Txn.when()));
                assertEquals(one.getValue(), e.outcome(), e.getMessage());
            } finally {
                server.shutdownNow();
            }
        }
        assertEquals(ErrorCode.CLOCK_AHEAD, new EtcdException(EtcdException.Outcome.CLOCK_AHEAD, "x", null).code());
    }
}
