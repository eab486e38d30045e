package io.hudioperator.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.Json;
import io.hudioperator.contract.ProtocolData;
import io.hudioperator.etcd.EtcdFacade;
import io.hudioperator.etcd.GrpcEtcdClient;
import io.hudioperator.etcd.KeyValue;
import io.hudioperator.etcd.Pause;
import io.hudioperator.protocol.Liveness;
import io.hudioperator.support.EtcdServer;
import io.hudioperator.support.TestTable;
import io.hudioperator.support.Writers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Ten writers at a table while etcd's three members lose their leader or their quorum: no living
 * writer looks dead, a writer that dies meanwhile is detected in time, no two writers commit at the
 * same time (I1), and all of them continue by themselves.
 */
class QuorumTest {
    private static final int WRITERS = 10;
    private static final int LEASE_SECONDS = 5; // of the gate that TestTable opens
    private static final Duration DETECTION = Duration.ofSeconds(2 * LEASE_SECONDS + 1);

    /**
     * Seconds without quorum. From about silenceSeconds (60) the JVMs halt, and others are started.
     */
    private static final int OUTAGE_SECONDS = Integer.parseInt(System.getenv().getOrDefault("OUTAGE_SECONDS", "6"));

    private static EtcdServer etcd;

    private TestTable table;
    private Writers writers;
    private Heartbeats heartbeats;

    @BeforeAll
    static void threeMembers() {
        etcd = EtcdServer.startedWithLinks(3);
    }

    @AfterAll
    static void stop() {
        etcd.close();
    }

    @BeforeEach
    void tenWriters() {
        table = answered(() -> new TestTable(etcd));
        writers = new Writers(table.folder, 20);
        addWriters("w");
        TestTable.await(Duration.ofSeconds(20), "everybody has committed", () -> writers.allCommittedSince(zeros()));
        heartbeats = new Heartbeats();
    }

    @AfterEach
    void close() {
        etcd.repair();
        heartbeats.close();
        writers.close();
        table.close();
    }

    private static List<Integer> zeros() {
        return java.util.Collections.nCopies(WRITERS, 0);
    }

    private void addWriters(String prefix) {
        for (int i = 0; i < WRITERS; i++) {
            writers.start(prefix + i, table.session("ns." + prefix + i));
        }
    }

    @Test
    @Tag("extra")
    void theLeaderIsKilled() {
        int leader = etcd.leader(0);
        withAVictim("killed", leader, () -> etcd.kill(leader));
        etcd.restart(leader);
        goesOn();
    }

    @Test
    @Tag("extra")
    void theLeaderIsFrozen() {
        int leader = etcd.leader(0);
        withAVictim("frozen", leader, () -> etcd.freeze(leader));
        etcd.repair();
        goesOn();
    }

    @Test
    void theLeaderIsCutOffFromItsPeersAndStillHasClients() {
        int leader = etcd.leader(0);
        withAVictim("cut off", leader, () -> etcd.cutOffFromPeers(leader));
        etcd.repair();
        goesOn();
    }

    /**
     * Requests are neither refused nor disconnected; they just get no answer, and are executed when
     * the network is repaired.
     */
    @Test
    @Tag("extra")
    void theConnectionsToAMemberAreHalfOpen() {
        List<Integer> before = writers.commitsOfEach();
        etcd.cutOffFromClients(0); // the member that all of them are connected to
        TestTable.await(
                Duration.ofSeconds(20),
                "everybody commits through another member",
                () -> writers.allCommittedSince(before));
        Pause.millis(2000);
        etcd.repair();
        goesOn();
        Pause.millis(1000);
        goesOn();
    }

    /** One of the writers dies at the moment at which the leader stops leading. */
    private void withAVictim(String what, int leader, Runnable fault) {
        Writers.Writer victim = writers.writers.get(WRITERS - 1);
        table.faults(victim.session).close(); // no request of it is sent any more
        long start = System.nanoTime();
        fault.run();
        int other = (leader + 1) % etcd.size();
        TestTable.await(
                Duration.ofSeconds(10),
                "another leader",
                () -> etcd.leader(other) >= 0 && etcd.leader(other) != leader);
        Duration election = Duration.ofNanos(System.nanoTime() - start);
        TestTable.await(
                DETECTION.plusSeconds(5), "the dead writer's lease is gone", () -> heartbeats.missing(victim.session));
        Duration found = Duration.ofNanos(System.nanoTime() - start);
        System.out.printf(
                "leader %s: another one after %d ms, a writer that died then is found after %d ms%n",
                what, election.toMillis(), found.toMillis());
        assertTrue(found.compareTo(DETECTION) <= 0, "found after " + found);
        writers.writers.remove(victim);
        KeyValue lock = answered(table::lock);
        if (ownedBy(victim, lock)) {
            Pause.millis(500);
            assertEquals(lock.createRevision(), answered(table::lock).createRevision(), "a lease frees no lock");
        }
        settle(victim);
        goesOn();
    }

    private void goesOn() {
        List<Integer> before = writers.commitsOfEach();
        TestTable.await(
                Duration.ofSeconds(20), "everybody has committed again", () -> writers.allCommittedSince(before));
        assertEquals(0, writers.together.get(), "two writers held the lock at once");
        assertEquals(List.of(), table.halts);
        heartbeats.nobodyLooksDead(writers);
    }

    @Test
    void withoutQuorumNothingIsDoneAndItGoesOnByItself() {
        int leader = etcd.leader(0);
        List<Integer> lost = List.of(leader, (leader + 1) % 3);
        lost.forEach(etcd::freeze);
        Pause.millis(1000); // files that were allowed before may still be written
        int commits = timeline().length;
        int acquired = writers.acquired();
        boolean halting = OUTAGE_SECONDS > 50;
        Pause.millis(TimeUnit.SECONDS.toMillis(OUTAGE_SECONDS));
        if (halting) {
            TestTable.await(Duration.ofSeconds(30), "they have halted", () -> table.halts.size() == WRITERS);
        }
        assertEquals(commits, timeline().length, "files on the timeline");
        assertEquals(acquired, writers.acquired(), "acquired");
        assertEquals(halting ? WRITERS : 0, table.halts.size(), "halted JVMs");
        etcd.repair();
        if (halting) {
            assertTrue(table.halts.stream().allMatch(code -> code == Liveness.EXIT_SILENT));
            replaceTheHalted();
        }
        goesOn();
    }

    private void replaceTheHalted() {
        List<Writers.Writer> halted = new ArrayList<>(writers.writers);
        halted.forEach(this::settle);
        writers.writers.removeAll(halted);
        table.halts.clear();
        addWriters("next");
    }

    /** Settles a writer as the operator does after proof of its death and a drain. */
    private void settle(Writers.Writer dead) {
        answered(() -> table.etcd.put(table.keys.fence(dead.session.inc()), "{}"));
        KeyValue lock = answered(table::lock);
        if (ownedBy(dead, lock)) {
            answered(() -> table.etcd.delete(table.keys.lock(), lock.modRevision()));
        }
    }

    /** An idempotent call, repeated because it may reach the member that does not answer. */
    private static <T> T answered(Supplier<T> call) {
        for (int i = 0; ; i++) {
            try {
                return call.get();
            } catch (HoodieException e) {
                if (i == 5) {
                    throw e;
                }
            }
        }
    }

    private static boolean ownedBy(Writers.Writer writer, KeyValue lock) {
        return lock != null && writer.session.inc().equals(Json.text(Json.parse(lock.value()), "inc"));
    }

    private String[] timeline() {
        return table.folder.resolve(".hoodie/timeline").toFile().list((folder, name) -> name.endsWith(".commit"));
    }

    /** Watches the heartbeats as the operator does: by reads that are linearizable or fail. */
    private final class Heartbeats implements AutoCloseable {
        private final GrpcEtcdClient client = etcd.client();
        private final EtcdFacade facade =
                new EtcdFacade(client, table.keys.prefix(), table.keys.tablePrefix(), table.keys.controlPrefix());
        private final Map<String, Long> missingSince = new HashMap<>();
        private final Map<String, Long> longest = new HashMap<>();
        private final Thread thread = new Thread(this::watch, "heartbeats");
        private volatile boolean closed;

        Heartbeats() {
            thread.setDaemon(true);
            thread.start();
        }

        private void watch() {
            while (!closed) {
                try {
                    look(facade.range("alive/"), System.nanoTime());
                } catch (RuntimeException e) {
                    // no quorum, no answer: nothing is decided on it (I11)
                }
                Pause.millis(100);
            }
        }

        private synchronized void look(List<KeyValue> alive, long now) {
            for (Writers.Writer writer : writers.writers) {
                String inc = writer.session.inc();
                if (alive.stream().anyMatch(kv -> kv.key().endsWith("/" + inc))) {
                    missingSince.remove(inc);
                } else {
                    long since = missingSince.computeIfAbsent(inc, k -> now);
                    longest.merge(inc, now - since, Math::max);
                }
            }
        }

        synchronized boolean missing(Session session) {
            return missingSince.containsKey(session.inc());
        }

        /** A writer without a heartbeat for suspectSeconds would be fenced. */
        synchronized void nobodyLooksDead(Writers those) {
            for (Writers.Writer writer : those.writers) {
                long nanos = longest.getOrDefault(writer.session.inc(), 0L);
                assertTrue(
                        nanos < TimeUnit.SECONDS.toNanos(ProtocolData.duration("suspectSeconds")),
                        writer.name + " looked dead for " + nanos + " ns");
            }
        }

        @Override
        public void close() {
            closed = true;
            client.close();
        }
    }
}
