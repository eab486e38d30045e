package io.hudioperator.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.support.EtcdServer;
import io.hudioperator.support.LeaseRelay;
import io.hudioperator.support.TestTable;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Leases of several clients on the one stream of their process: each is judged by itself. */
class KeepAlivesTest {
    private static final int TTL = 60;
    private static final int MANY = 10;

    private final LeaseRelay relay = relay();
    private final List<GrpcEtcdClient> clients = new ArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();

    private static LeaseRelay relay() {
        try {
            return new LeaseRelay(EtcdServer.shared());
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    @AfterEach
    void close() {
        clients.forEach(GrpcEtcdClient::close);
        threads.shutdownNow();
        relay.close();
    }

    private GrpcEtcdClient client() {
        GrpcEtcdClient made = GrpcEtcdClient.shared(
                EtcdSettings.of(Map.of("endpoints", relay.endpoint(), "rpcTimeoutSeconds", "3"), Map.of()));
        clients.add(made);
        return made;
    }

    private CompletableFuture<Long> asks(GrpcEtcdClient client, long lease) {
        CompletableFuture<Long> answer = new CompletableFuture<>();
        threads.execute(() -> {
            try {
                answer.complete(client.keepAlive(lease));
            } catch (EtcdException e) {
                answer.completeExceptionally(e);
            }
        });
        return answer;
    }

    private void awaitWithheld(int requests) {
        TestTable.await(Duration.ofSeconds(2), "it is on the wire", () -> relay.withheld() >= requests);
    }

    private static void assertUnknown(CompletableFuture<Long> answer) {
        ExecutionException e = assertThrows(ExecutionException.class, answer::get);
        EtcdException why = assertInstanceOf(EtcdException.class, e.getCause());
        assertEquals(EtcdException.Outcome.UNKNOWN, why.outcome());
    }

    @Test
    void allLeasesOfAProcessGoOnOneStream() throws EtcdException {
        for (int i = 0; i < MANY; i++) {
            GrpcEtcdClient client = client();
            long lease = client.grantLease(TTL);
            assertEquals(TTL, client.keepAlive(lease));
            assertEquals(TTL, client.keepAlive(lease));
        }
        assertEquals(1, relay.streams());
        assertEquals(1, relay.connections());
    }

    @Test
    void aLeaseThatIsGoneIsGoneAlone() throws EtcdException {
        GrpcEtcdClient one = client();
        GrpcEtcdClient other = client();
        long gone = one.grantLease(TTL);
        long kept = other.grantLease(TTL);
        one.keepAlive(gone);
        one.revoke(gone);
        assertTrue(one.keepAlive(gone) <= 0);
        assertEquals(TTL, other.keepAlive(kept));
        assertEquals(1, relay.streams());
    }

    @Test
    void anAnswerIsOneForTheLeaseThatItNames() throws Exception {
        GrpcEtcdClient one = client();
        GrpcEtcdClient other = client();
        long silent = one.grantLease(TTL);
        long heard = other.grantLease(TTL);
        assertEquals(TTL, one.keepAlive(silent));
        AtomicBoolean over = new AtomicBoolean();
        CompletableFuture<Void> beats = CompletableFuture.runAsync(
                () -> {
                    while (!over.get()) {
                        assertTrue(answered(other, heard));
                    }
                },
                threads);
        TestTable.await(Duration.ofSeconds(5), "answers come all the time", () -> relay.asked(heard) > MANY);
        relay.withhold(lease -> lease == silent);
        int before = relay.asked(heard);
        assertUnknown(asks(one, silent));
        over.set(true);
        beats.get();
        assertTrue(relay.asked(heard) > before + MANY, "while others had theirs");
    }

    @Test
    void nobodyWaitsBehindALeaseThatEtcdIsSlowWith() throws Exception {
        GrpcEtcdClient one = client();
        GrpcEtcdClient other = client();
        long slow = one.grantLease(TTL);
        long quick = other.grantLease(TTL);
        relay.block(lease -> lease == slow);
        CompletableFuture<Long> waits = asks(one, slow);
        awaitWithheld(1);
        assertEquals(TTL, other.keepAlive(quick), "although it came behind the slow one");
        assertUnknown(waits);
        int streams = relay.streams();
        CompletableFuture<Long> again = asks(one, slow);
        awaitWithheld(3);
        assertEquals(TTL, other.keepAlive(quick));
        assertTrue(relay.streams() <= streams + 2, "the slow one is alone, and the other one waits for nothing");
        relay.withhold(lease -> false);
        assertUnknown(again);
        assertEquals(TTL, one.keepAlive(slow));
    }

    /** A lease may have ended since the request that is answered late. */
    @Test
    void aLateAnswerIsNoneToALaterRequest() throws Exception {
        GrpcEtcdClient client = client();
        long lease = client.grantLease(TTL);
        AtomicBoolean first = new AtomicBoolean(true);
        relay.withhold(which -> which == lease && first.getAndSet(false));
        assertEquals(TTL, client.keepAlive(lease), "asked for alone");
        relay.withhold(which -> which == lease);
        CompletableFuture<Long> later = asks(client, lease);
        awaitWithheld(2);
        relay.answerLate(lease, TTL);
        assertUnknown(later);
    }

    @Test
    void aStreamThatEndsIsOpenedAgainForAllAndNotAllTheTime() throws Exception {
        List<GrpcEtcdClient> all = new ArrayList<>();
        List<Long> leases = new ArrayList<>();
        for (int i = 0; i < MANY; i++) {
            all.add(client());
            leases.add(all.get(i).grantLease(TTL));
            all.get(i).keepAlive(leases.get(i));
        }
        relay.end(true);
        int before = relay.streams();
        AtomicBoolean over = new AtomicBoolean();
        AtomicInteger tries = new AtomicInteger();
        List<CompletableFuture<Void>> loops = new ArrayList<>();
        for (int i = 0; i < MANY; i++) {
            GrpcEtcdClient client = all.get(i);
            long lease = leases.get(i);
            loops.add(CompletableFuture.runAsync(
                    () -> {
                        while (!over.get()) {
                            EtcdException e = assertThrows(EtcdException.class, () -> client.keepAlive(lease));
                            assertEquals(EtcdException.Outcome.UNKNOWN, e.outcome());
                            tries.incrementAndGet();
                            Pause.millis(20);
                        }
                    },
                    threads));
        }
        Pause.millis(2000);
        over.set(true);
        for (CompletableFuture<Void> loop : loops) {
            loop.get();
        }
        int opened = relay.streams() - before;
        assertTrue(opened >= 3 && opened <= 20, opened + " streams for " + tries + " tries in 2 s");
        relay.end(false);
        for (int i = 0; i < MANY; i++) {
            GrpcEtcdClient client = all.get(i);
            long lease = leases.get(i);
            TestTable.await(Duration.ofSeconds(3), "it is opened again", () -> answered(client, lease));
        }
        assertEquals(before + opened + 1, relay.streams());
    }

    private static boolean answered(GrpcEtcdClient client, long lease) {
        try {
            return client.keepAlive(lease) == TTL;
        } catch (EtcdException e) {
            return false;
        }
    }

    @Test
    void theConnectionIsClosedWithItsLastUser() throws EtcdException {
        GrpcEtcdClient one = client();
        GrpcEtcdClient other = client();
        long lease = other.grantLease(TTL);
        one.txn(Txn.when().then(Txn.Op.get("/hudi/tables/probe")));
        one.close();
        one.close();
        assertEquals(TTL, other.keepAlive(lease));
        assertEquals(1, relay.connections());
        assertThrows(EtcdException.class, () -> one.txn(Txn.when().then(Txn.Op.get("/hudi/tables/probe"))));
        assertThrows(EtcdException.class, () -> one.keepAlive(lease));
        other.close();
        TestTable.await(Duration.ofSeconds(5), "it is closed", () -> relay.connections() == 0);
        GrpcEtcdClient next = client();
        assertTrue(next.grantLease(TTL) != 0, "the next one opens another");
    }

    @Test
    void aClientOfItsOwnSharesWithNobody() throws EtcdException {
        GrpcEtcdClient shares = client();
        try (GrpcEtcdClient own = new GrpcEtcdClient(
                EtcdSettings.of(Map.of("endpoints", relay.endpoint(), "rpcTimeoutSeconds", "3"), Map.of()))) {
            shares.grantLease(TTL);
            own.grantLease(TTL);
            assertEquals(2, relay.connections());
        }
    }
}
