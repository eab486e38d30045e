package io.hudioperator.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.etcd.Pause;
import io.hudioperator.protocol.Liveness;
import io.hudioperator.support.DropProxy;
import io.hudioperator.support.EtcdServer;
import io.hudioperator.support.TestTable;
import io.hudioperator.support.Writers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * What etcd can do to living writers: run out of space, lose data, compact while no watch is
 * connected, expire many leases at once.
 */
class EtcdFaultsTest {
    private static final int QUOTA = 8 << 20;
    private static final int STORM = 100;

    private static String base64(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private static int completed(TestTable table) {
        return table.folder
                .resolve(".hoodie/timeline")
                .toFile()
                .list((folder, name) -> name.endsWith(".commit"))
                .length;
    }

    @Test
    @Tag("extra")
    void aFullDatabaseRefusesAndNothingElseHappensUntilThereIsRoom() {
        try (EtcdServer etcd = EtcdServer.started(1, "--quota-backend-bytes", String.valueOf(QUOTA));
                TestTable table = new TestTable(etcd)) {
            Session holder = table.session("ns.holder");
            Session other = table.session("ns.other");
            assertTrue(table.acquire(holder));
            fill(etcd);
            holder.release(); // only deletes, which is always possible
            assertNull(table.lock());
            HoodieException refused = assertThrows(HoodieException.class, () -> table.acquire(other));
            assertTrue(refused.getMessage().contains("database space exceeded"), refused.getMessage());
            long alive = table.etcd.get("alive/" + other.inc()).modRevision();
            Pause.millis(6000); // longer than a lease: heartbeats go on
            assertEquals(alive, table.etcd.get("alive/" + other.inc()).modRevision());
            assertEquals(List.of(), table.halts);
            assertFalse(other.unresolved());
            makeRoom(etcd);
            assertTrue(table.acquire(other));
            other.release();
            assertTrue(holder.close());
            assertTrue(other.close());
        }
    }

    private static void fill(EtcdServer etcd) {
        String value = base64("x".repeat(700_000));
        for (int i = 0; i < 40; i++) {
            if (etcd.call(0, "kv/put", "{\"key\":\"" + base64("/filler/" + i) + "\",\"value\":\"" + value + "\"}")
                    .has("code")) {
                return;
            }
        }
        throw new AssertionError("no quota");
    }

    /** Frees space as an administrator does: delete, compact, defragment, disarm. */
    private static void makeRoom(EtcdServer etcd) {
        etcd.call(
                0,
                "kv/deleterange",
                "{\"key\":\"" + base64("/filler/") + "\",\"range_end\":\"" + base64("/filler0") + "\"}");
        compact(etcd);
        etcd.call(0, "maintenance/defragment", "{}");
        String member = etcd.call(0, "maintenance/alarm", "{\"action\":\"GET\"}")
                .path("alarms")
                .path(0)
                .path("memberID")
                .asText();
        etcd.call(
                0,
                "maintenance/alarm",
                "{\"action\":\"DEACTIVATE\",\"alarm\":\"NOSPACE\",\"memberID\":\"" + member + "\"}");
    }

    private static void compact(EtcdServer etcd) {
        String revision = etcd.call(0, "kv/range", "{\"key\":\"AA==\"}")
                .path("header")
                .path("revision")
                .asText();
        assertFalse(etcd.call(0, "kv/compaction", "{\"revision\":\"" + revision + "\",\"physical\":true}")
                .has("code"));
    }

    @Test
    void anEtcdThatForgotIsNotWrittenToAndItsWritersEnd() {
        try (EtcdServer etcd = EtcdServer.started(1);
                TestTable table = new TestTable(etcd);
                Writers writers = new Writers(table.folder, 20)) {
            writers.start("a", table.session("ns.a"));
            writers.start("b", table.session("ns.b"));
            TestTable.await(
                    Duration.ofSeconds(20), "both have committed", () -> writers.allCommittedSince(List.of(0, 0)));
            etcd.kill(0);
            Path backup = etcd.backup(0);
            etcd.restart(0);
            List<Integer> then = writers.commitsOfEach();
            TestTable.await(Duration.ofSeconds(20), "both have committed again", () -> writers.allCommittedSince(then));
            etcd.kill(0);
            Pause.millis(300); // files that were allowed before are written by now
            int commits = completed(table);
            etcd.restore(0, backup);
            etcd.restart(0);
            TestTable.await(Duration.ofSeconds(20), "both have ended", () -> table.halts.size() == 2);
            assertEquals(List.of(Liveness.EXIT_SILENT, Liveness.EXIT_SILENT), table.halts);
            assertEquals(commits, completed(table));
            for (Writers.Writer writer : writers.writers) {
                HoodieException refused = assertThrows(HoodieException.class, () -> writer.session.pendingInstants());
                TestTable.assertCode(ErrorCode.ETCD_SET_BACK, refused);
                assertTrue(refused.getMessage().contains("went back"), refused.getMessage());
            }
            writers.writers.clear();
        }
    }

    @Test
    @Tag("extra")
    void aWaiterWhoseWatchWasCutOverACompactionIsServed() throws Exception {
        try (EtcdServer etcd = EtcdServer.started(1);
                DropProxy proxy = etcd.proxy();
                TestTable table = new TestTable(etcd)) {
            Session holder = table.session("ns.holder");
            Session waiter = table.session("ns.waiter", Map.of("endpoints", proxy.endpoint()));
            assertTrue(table.acquire(holder));
            CompletableFuture<Boolean> waits = CompletableFuture.supplyAsync(() -> table.acquire(waiter, 20_000));
            TestTable.await(
                    Duration.ofSeconds(5),
                    "it waits",
                    () -> table.etcd.range("queue/").size() == 1);
            Pause.millis(300);
            proxy.stall(source -> true);
            holder.release();
            for (int i = 0; i < 50; i++) {
                table.etcd.put("report/filler", "{\"n\":" + i + "}");
            }
            compact(etcd);
            assertFalse(waits.isDone());
            proxy.cut(); // pending events of the watch are lost
            proxy.stall(source -> false);
            long start = System.nanoTime();
            assertTrue(waits.get());
            long millis = Duration.ofNanos(System.nanoTime() - start).toMillis();
            assertTrue(millis < 5000, "served after " + millis + " ms");
            waiter.release();
        }
    }

    @Test
    @Tag("extra")
    void aStormOfDeathsConcernsTheDeadOnly() {
        try (TestTable table = new TestTable()) {
            Session survivor = table.session("ns.survivor");
            List<Session> dead = new ArrayList<>();
            for (int i = 0; i < STORM; i++) {
                dead.add(table.session("ns.dead" + i, Map.of("silenceSeconds", "2"))); // their threads end
            }
            long alive = table.etcd.get("alive/" + survivor.inc()).modRevision();
            dead.forEach(session -> table.faults(session).close());
            long start = System.nanoTime();
            int cycles = 0;
            while (table.etcd.range("alive/").size() > 1) {
                assertTrue(table.acquire(survivor));
                survivor.release();
                cycles++;
                Pause.millis(20);
                assertTrue(
                        System.nanoTime() - start < Duration.ofSeconds(20).toNanos(),
                        "leases of the dead sessions still exist");
            }
            long millis = Duration.ofNanos(System.nanoTime() - start).toMillis();
            System.out.printf(
                    "storm: %d leases gone after %d ms, %d lock cycles of the survivor meanwhile%n",
                    STORM, millis, cycles);
            assertEquals(
                    alive,
                    table.etcd.get("alive/" + survivor.inc()).modRevision(),
                    "not put again: its lease was never lost");
            assertNotNull(table.etcd.get("writer/" + dead.get(0).inc()), "the operator settles what they left");
            assertTrue(cycles > 20, cycles + " cycles");
            assertTrue(survivor.close());
        }
    }
}
