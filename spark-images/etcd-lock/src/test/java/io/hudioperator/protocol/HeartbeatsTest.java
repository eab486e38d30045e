package io.hudioperator.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.support.TestTable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** One thread for when they are due, and none of them waits for another one. */
class HeartbeatsTest {
    private static final int TABLES = 200;
    private static final int OFTEN = 5;

    /** A heartbeat that may have to wait for etcd. */
    private static final class Beats implements Heartbeats.Heart {
        private final AtomicInteger beats = new AtomicInteger();
        private final AtomicInteger missed = new AtomicInteger();
        private final CountDownLatch answered;
        private final AtomicBoolean ended = new AtomicBoolean();
        private final AtomicBoolean atRest = new AtomicBoolean();

        Beats(int unanswered) {
            answered = new CountDownLatch(unanswered);
        }

        @Override
        public long beat() {
            beats.incrementAndGet();
            try {
                answered.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            if (ended.get()) {
                return Heartbeats.NONE;
            }
            return atRest.get() ? ThreadLocalRandom.current().nextLong(1_000, 5_000) : 20;
        }

        @Override
        public long missed(Throwable why) {
            missed.incrementAndGet();
            return ended.get() ? Heartbeats.NONE : 20;
        }
    }

    private static long threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("hudi-operator-heartbeat"))
                .count();
    }

    @Test
    void noHeartbeatWaitsForTheAnswerToAnother() {
        List<Beats> silent = new ArrayList<>();
        for (int i = 0; i < OFTEN; i++) {
            silent.add(new Beats(1));
            Heartbeats.OF_PROCESS.begin(silent.get(i));
        }
        Beats heard = new Beats(0);
        Heartbeats.OF_PROCESS.begin(heard);
        TestTable.await(Duration.ofSeconds(5), "it beats on", () -> heard.beats.get() >= OFTEN);
        heard.ended.set(true);
        for (Beats one : silent) {
            assertEquals(1, one.beats.get(), "one beat of a table at a time");
            one.answered.countDown();
            TestTable.await(Duration.ofSeconds(5), "it beats again", () -> one.beats.get() > 1);
            one.ended.set(true);
        }
    }

    @Test
    void tablesAtRestHaveNoThreadsOfTheirOwn() {
        List<Beats> all = new ArrayList<>();
        for (int i = 0; i < TABLES; i++) {
            all.add(new Beats(0));
            Heartbeats.OF_PROCESS.begin(all.get(i));
        }
        TestTable.await(
                Duration.ofSeconds(20), "all beat", () -> all.stream().allMatch(one -> one.beats.get() >= OFTEN));
        // 10,000 beats a second may need as many threads as there are tables, where the machine is
        // busy. The pauses of running writers are seconds; threads that are idle then end.
        all.forEach(one -> one.atRest.set(true));
        TestTable.await(Duration.ofSeconds(60), "few threads for " + TABLES + " tables", () -> threads() < TABLES / 4);
        all.forEach(one -> one.ended.set(true));
    }

    @Test
    void anEndedHeartbeatIsNotDueAgain() throws InterruptedException {
        Beats ends = new Beats(0);
        ends.ended.set(true);
        Heartbeats.OF_PROCESS.begin(ends);
        TestTable.await(Duration.ofSeconds(5), "it beats", () -> ends.beats.get() == 1);
        Thread.sleep(200);
        assertEquals(1, ends.beats.get());
    }

    /** It is told, because it may have been silent for too long. */
    @Test
    void aBeatThatHasNoThreadIsMissed() {
        Heartbeats full = new Heartbeats(run -> {
            throw new OutOfMemoryError("unable to create native thread");
        });
        Beats heart = new Beats(0);
        full.begin(heart);
        TestTable.await(Duration.ofSeconds(5), "it is told again", () -> heart.missed.get() >= 2);
        heart.ended.set(true);
        assertEquals(0, heart.beats.get());
    }

    /** One in the thread of a beat ended it for good, and nothing was said. */
    @Test
    void aBeatThatFailsWithAnErrorIsMissed() {
        Beats heart = new Beats(0);
        Heartbeats.OF_PROCESS.begin(new Heartbeats.Heart() {
            @Override
            public long beat() {
                if (heart.beats.incrementAndGet() == 1) {
                    throw new OutOfMemoryError("direct memory");
                }
                return Heartbeats.NONE;
            }

            @Override
            public long missed(Throwable why) {
                return heart.missed(why);
            }
        });
        TestTable.await(Duration.ofSeconds(5), "it beats again", () -> heart.beats.get() == 2);
        assertEquals(1, heart.missed.get());
    }

    @Test
    void heartbeatsAreSpreadAndNeverLate() {
        for (int i = 0; i < 1000; i++) {
            long pause = Heartbeats.spread(3000);
            assertTrue(pause >= 2700 && pause <= 3000, "a pause of " + pause + " ms");
        }
    }
}
