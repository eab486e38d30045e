package io.hudioperator.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.Json;
import io.hudioperator.etcd.EtcdException;
import io.hudioperator.etcd.KeyValue;
import io.hudioperator.etcd.Pause;
import io.hudioperator.etcd.Txn;
import io.hudioperator.session.Session;
import io.hudioperator.support.TestTable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The order of waiters (F24). */
class QueueTest {
    private final TestTable table = new TestTable();
    private final List<String> served = Collections.synchronizedList(new ArrayList<>());
    private final List<Thread> waiters = new ArrayList<>();

    @AfterEach
    void close() {
        table.close();
    }

    private static KeyValue ticket(String name, int priority, int overtaken, long createRevision) {
        return new KeyValue(
                "/q/" + name,
                "{\"priority\":" + priority + ",\"overtaken\":" + overtaken + "}",
                createRevision,
                createRevision,
                1);
    }

    @Test
    void priorityThenAgeAndNobodyIsOvertakenMoreThanEightTimes() {
        Queue queue = new Queue(
                List.of(
                        ticket("old", 0, 0, 10),
                        ticket("young", 0, 0, 20),
                        ticket("important", 5, 0, 30),
                        ticket("patient", -5, 8, 40)),
                "/q/");
        assertTrue(queue.isFirst("patient"));
        assertEquals("patient", queue.predecessor("important"));
        assertEquals("important", queue.predecessor("old"));
        assertEquals("old", queue.predecessor("young"));
        assertNull(queue.predecessor("patient"));
        assertEquals(Set.of("old", "young"), queue.olderThan("important"));
        assertFalse(queue.contains("nobody"));
    }

    private void waitFor(String name, int priority) {
        waitFor(name, priority, false);
    }

    private void waitFor(String name, int priority, boolean again) {
        Session session = table.session("ns." + name, Map.of("priority", String.valueOf(priority)));
        int before = table.etcd.range("queue/").size();
        Thread thread = new Thread(() -> {
            assertTrue(table.acquire(session, 20_000, again));
            served.add(name);
            Pause.millis(30);
            session.release();
        });
        thread.setDaemon(true);
        thread.start();
        waiters.add(thread);
        TestTable.await(
                Duration.ofSeconds(5),
                name + " queues",
                () -> table.etcd.range("queue/").size() == before + 1);
    }

    private void join() throws InterruptedException {
        for (Thread thread : waiters) {
            thread.join(20_000);
        }
    }

    @Test
    void firstComeFirstServed() throws InterruptedException {
        Session holder = table.session("ns.holder");
        assertTrue(table.acquire(holder));
        for (String name : List.of("a", "b", "c", "d")) {
            waitFor(name, 0);
        }
        holder.release();
        join();
        assertEquals(List.of("a", "b", "c", "d"), served);
        assertTrue(table.etcd.range("queue/").isEmpty());
    }

    @Test
    void theImportantGoFirst() throws InterruptedException {
        Session holder = table.session("ns.holder");
        assertTrue(table.acquire(holder));
        waitFor("modest", -10);
        waitFor("normal", 0);
        waitFor("important", 10);
        holder.release();
        join();
        assertEquals(List.of("important", "normal", "modest"), served);
    }

    @Test
    void whoWasOvertakenEightTimesIsNext() throws InterruptedException {
        Session[] rivals = {
            table.session("ns.r0", Map.of("priority", "10")), table.session("ns.r1", Map.of("priority", "10"))
        };
        assertTrue(table.acquire(rivals[0]));
        waitFor("modest", -10);
        String modest = table.etcd.range("queue/").get(0).key();
        for (int i = 1; i <= Queue.MAX_OVERTAKES; i++) {
            Session next = rivals[i % 2];
            Thread thread = queueBehind(modest, next);
            rivals[(i + 1) % 2].release();
            thread.join(10_000);
            assertTrue(next.holdsLock(), "overtake " + i);
            int expected = i;
            TestTable.await(
                    Duration.ofSeconds(5),
                    "it is counted",
                    () -> Json.parse(table.etcd.get(modest).value())
                                    .get("overtaken")
                                    .asInt()
                            == expected);
        }
        Thread ninth = queueBehind(modest, rivals[1]);
        rivals[0].release();
        join();
        ninth.join(10_000);
        assertEquals(List.of("modest"), served);
        assertTrue(rivals[1].holdsLock());
    }

    /** It has had its turn already. */
    @Test
    void whoGaveTheLockBackIsNext() throws InterruptedException {
        Session holder = table.session("ns.holder");
        assertTrue(table.acquire(holder));
        waitFor("normal", 0);
        waitFor("important", 10);
        waitFor("again", -10, true);
        holder.release();
        join();
        assertEquals(List.of("again", "important", "normal"), served);
    }

    private Thread queueBehind(String modest, Session rival) {
        Thread thread = new Thread(() -> table.acquire(rival, 20_000));
        thread.setDaemon(true);
        thread.start();
        TestTable.await(
                Duration.ofSeconds(5),
                "the rival queues behind " + modest,
                () -> table.etcd.range("queue/").size() == 2);
        return thread;
    }

    @Test
    void aPausedFirstInTheQueueDelaysOnlyHalfASecond() throws EtcdException {
        long lease = table.client.grantLease(30);
        table.client.txn(Txn.when()
                .then(Txn.Op.put(
                        table.keys.queue("paused-1"), "{\"inc\":\"paused\",\"priority\":0,\"overtaken\":0}", lease)));
        Session session = table.session("ns.a");
        long start = System.nanoTime();
        assertTrue(table.acquire(session));
        long millis = Duration.ofNanos(System.nanoTime() - start).toMillis();
        assertTrue(millis >= 450 && millis < 3000, "took " + millis + " ms");
        session.release();
    }

    @Test
    void theHeartbeatRemovesTicketsThatNobodyWaitsOn() {
        Session session = table.session("ns.a");
        table.etcd.put("queue/" + session.inc() + "-zombie", "{}");
        TestTable.await(
                Duration.ofSeconds(5),
                "the zombie is gone",
                () -> table.etcd.range("queue/").isEmpty());
    }

    @Test
    void manyContendersExcludeEachOther() throws InterruptedException {
        int[] inside = new int[1];
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            Session session = table.session("ns.c" + i);
            Thread thread = new Thread(() -> {
                for (int n = 0; n < 5; n++) {
                    assertTrue(table.acquire(session, 20_000));
                    synchronized (inside) {
                        served.add(++inside[0] == 1 ? "alone" : "together");
                    }
                    Pause.millis(3);
                    synchronized (inside) {
                        inside[0]--;
                    }
                    session.release();
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join(30_000);
        }
        assertEquals(Collections.nCopies(30, "alone"), served);
    }
}
