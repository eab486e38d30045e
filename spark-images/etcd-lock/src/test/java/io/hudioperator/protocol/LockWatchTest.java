package io.hudioperator.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.etcd.EtcdException;
import io.hudioperator.etcd.Txn;
import io.hudioperator.support.TestTable;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** When a waiter has a reason to read again, with events of a real etcd. */
class LockWatchTest {
    private static final long LONG = TimeUnit.SECONDS.toNanos(20);

    private final TestTable table = new TestTable();
    private LockWatch watch;

    @AfterEach
    void close() {
        watch.close();
        table.close();
    }

    private LockWatch watching(String... older) throws InterruptedException {
        watch = new LockWatch(table.client, table.keys.lock(), Set.of(older), 0);
        assertTrue(watch.awaitCreated());
        return watch;
    }

    private void lock(String inc) {
        table.etcd.delete("lock", 0);
        table.etcd.put("lock", "{\"inc\":\"" + inc + "\",\"nonce\":\"n\"}");
    }

    private static Duration timed(InterruptibleRunnable wait) throws InterruptedException {
        long begin = System.nanoTime();
        wait.run();
        return Duration.ofNanos(System.nanoTime() - begin);
    }

    private interface InterruptibleRunnable {
        void run() throws InterruptedException;
    }

    @Test
    void theFirstInTheQueueLooksWhenTheLockIsGivenBack() throws Exception {
        lock("owner");
        watching();
        assertFalse(watch.follow(null), "the first in the queue follows nobody, as before");
        assertTrue(
                timed(() -> watch.await(TimeUnit.MILLISECONDS.toNanos(300))).toMillis() >= 280, "nothing has happened");
        table.etcd.delete("lock", 0);
        assertTrue(timed(() -> watch.await(LONG)).toSeconds() < 10);
    }

    @Test
    void theOthersLookWhenTheirPredecessorHasGone() throws Exception {
        lock("owner");
        table.etcd.put("queue/before", "{}");
        watching();
        assertTrue(watch.follow(table.keys.tablePrefix() + "queue/before"), "one more look is due");
        assertFalse(watch.follow(table.keys.tablePrefix() + "queue/before"), "the same ticket");
        assertTrue(watch.awaitCreated());
        table.etcd.delete("queue/before", 0);
        assertTrue(timed(() -> watch.await(LONG)).toSeconds() < 10);
    }

    @Test
    void aLockThatNobodyTakesIsForAnybody() throws Exception {
        lock("owner");
        table.etcd.put("queue/paused", "{}");
        watching();
        watch.follow(table.keys.tablePrefix() + "queue/paused");
        assertTrue(watch.awaitCreated());
        assertFalse(watch.freeForAnybody());
        table.etcd.delete("lock", 0);
        TestTable.await(Duration.ofSeconds(10), "the watch has seen it", () -> watch.freeForAnybody());
        lock("quick");
        TestTable.await(Duration.ofSeconds(10), "the watch has seen it", () -> !watch.freeForAnybody());
    }

    @Test
    void whoIsYoungerAndHasTheLockHasOvertaken() throws Exception {
        lock("owner");
        watching("old-n");
        assertEquals(0, watch.takeOvertakes(), "locks acquired before the watch began are not counted");
        lock("old");
        lock("young");
        lock("younger");
        table.etcd.delete("lock", 0);
        TestTable.await(Duration.ofSeconds(10), "the watch has seen all of it", () -> watch.freeForAnybody());
        assertEquals(2, watch.takeOvertakes(), "an older ticket does not count");
        assertEquals(0, watch.takeOvertakes(), "each overtake is reported once");
    }

    @Test
    void aReadThatIsOlderThanAnEventIsNotBelieved() throws Exception {
        lock("owner");
        LockProtocol.View before = view();
        watching();
        table.etcd.delete("lock", 0);
        TestTable.await(Duration.ofSeconds(10), "the watch has seen it", () -> watch.freeForAnybody());
        watch.read(before);
        assertTrue(watch.freeForAnybody());
        lock("next");
        watch.read(view());
        assertFalse(watch.freeForAnybody());
    }

    private LockProtocol.View view() throws EtcdException {
        String none = table.keys.tablePrefix() + "none";
        Txn read = Txn.when()
                .then(Txn.Op.get(none))
                .then(Txn.Op.get(none))
                .then(Txn.Op.get(none))
                .then(Txn.Op.get(table.keys.lock()))
                .then(Txn.Op.get(none))
                .then(Txn.Op.range(table.keys.tablePrefix() + "queue/"));
        return new LockProtocol.View(table.client.txn(read));
    }
}
