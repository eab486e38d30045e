package io.hudioperator.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.etcd.Pause;
import io.hudioperator.session.Session;
import io.hudioperator.support.EtcdServer;
import io.hudioperator.support.TestTable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/** Many writers that want one lock all the time: each gets it in turn. */
class FairnessTest {
    private static final int WRITERS = 32;
    private static final int ROUNDS = 6;
    private static final int HOLD_MILLIS = 10;

    /**
     * How often another writer may be served while one waits: once before it, once for an older
     * ticket, once when it was slow.
     */
    private static final int TOLERANCE = 3;

    private static final int WATCHED_MILLIS = 6_000;

    /** One read every three seconds is a third of a message per second; the watch renews itself. */
    private static final double MESSAGES_A_SECOND = 1.0;

    private final List<String> served = Collections.synchronizedList(new ArrayList<>());
    private final List<Long> waits = Collections.synchronizedList(new ArrayList<>());
    private final int[] inside = new int[1];

    @Test
    void thirtyTwoWritersAreServedInTurn() throws InterruptedException {
        try (TestTable table = new TestTable()) {
            CountDownLatch start = new CountDownLatch(1);
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < WRITERS; i++) {
                String name = "w" + i;
                Session session = table.session("ns." + name);
                Thread thread = new Thread(() -> rounds(table, session, name, start));
                thread.start();
                threads.add(thread);
            }
            long begun = System.nanoTime();
            start.countDown();
            for (Thread thread : threads) {
                thread.join(120_000);
            }
            assertEquals(WRITERS * ROUNDS, served.size(), "nobody starved");
            report(Duration.ofNanos(System.nanoTime() - begun).toMillis());
            assertTrue(
                    mostServedWhileOneWaited() <= TOLERANCE,
                    "served " + mostServedWhileOneWaited() + " times while another one waited: " + served);
        }
    }

    /**
     * RFC-22: lock retries must not overload the service. A waiter sends at most one request per
     * second more than a session that does not wait.
     */
    @Test
    void waitersAskSeldom() throws InterruptedException {
        try (EtcdServer server = EtcdServer.started(1);
                TestTable table = new TestTable(server)) {
            Session holder = table.session("ns.holder");
            assertTrue(table.acquire(holder));
            List<Session> sessions = new ArrayList<>();
            for (int i = 0; i < WRITERS; i++) {
                sessions.add(table.session("ns.w" + i));
            }
            double beating = messagesEach(server);
            List<Thread> threads = new ArrayList<>();
            for (Session session : sessions) {
                Thread thread = new Thread(() -> {
                    assertTrue(table.acquire(session, 100_000));
                    served.add(session.inc());
                    session.release();
                });
                thread.start();
                threads.add(thread);
            }
            TestTable.await(
                    Duration.ofSeconds(30),
                    "all wait",
                    () -> table.etcd.range("queue/").size() == WRITERS);
            double waiting = messagesEach(server);
            System.out.printf(
                    "waiting: %d waiters, %.2f messages to etcd a second and session, %.2f of them heartbeats%n",
                    WRITERS, waiting, beating);
            assertTrue(beating > 0, "heartbeats are seen");
            assertTrue(
                    waiting - beating <= MESSAGES_A_SECOND,
                    waiting + " messages a second and session, " + beating + " without waiting");
            holder.release();
            for (Thread thread : threads) {
                thread.join(120_000);
            }
            assertEquals(WRITERS, served.size());
        }
    }

    /** Messages to etcd per second and session, after a short rest. */
    private static double messagesEach(EtcdServer server) {
        Pause.millis(1_000);
        long before = server.messages(0);
        long begun = System.nanoTime();
        Pause.millis(WATCHED_MILLIS);
        return (server.messages(0) - before) * 1e9 / (System.nanoTime() - begun) / (WRITERS + 1);
    }

    private void rounds(TestTable table, Session session, String name, CountDownLatch start) {
        try {
            start.await();
            for (int n = 0; n < ROUNDS; n++) {
                long asked = System.nanoTime();
                assertTrue(table.acquire(session, 100_000));
                waits.add(Duration.ofNanos(System.nanoTime() - asked).toMillis());
                synchronized (inside) {
                    assertEquals(1, ++inside[0], "two writers held the lock at once");
                }
                served.add(name);
                Thread.sleep(HOLD_MILLIS);
                synchronized (inside) {
                    inside[0]--;
                }
                session.release();
            }
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** The most turns that any other writer had between two turns of the same writer. */
    private int mostServedWhileOneWaited() {
        int most = 0;
        for (String one : count(served).keySet()) {
            int from = -1;
            for (int i = 0; i < served.size(); i++) {
                if (served.get(i).equals(one)) {
                    most = Math.max(
                            most,
                            count(served.subList(from + 1, i)).values().stream()
                                    .max(Integer::compare)
                                    .orElse(0));
                    from = i;
                }
            }
        }
        return most;
    }

    private static Map<String, Integer> count(List<String> names) {
        Map<String, Integer> counts = new HashMap<>();
        names.forEach(name -> counts.merge(name, 1, Integer::sum));
        return counts;
    }

    private void report(long millis) {
        List<Long> sorted = new ArrayList<>(waits);
        Collections.sort(sorted);
        long ideal = (WRITERS - 1) * HOLD_MILLIS;
        System.out.printf(
                "fairness: %d writers x %d rounds, held %d ms: wait p50 %d ms, p99 %d ms, max %d ms; in a perfect"
                        + " queue %d ms; %.1f hand-overs/s; overtaken %d times at most%n",
                WRITERS,
                ROUNDS,
                HOLD_MILLIS,
                at(sorted, 50),
                at(sorted, 99),
                sorted.get(sorted.size() - 1),
                ideal,
                1000.0 * served.size() / millis,
                mostServedWhileOneWaited());
    }

    private static long at(List<Long> sorted, int percent) {
        return sorted.get(Math.min(sorted.size() - 1, sorted.size() * percent / 100));
    }
}
