package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.catalog.Runs;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tries of a catalog that do not end in time. */
class CatalogRunsTest {
    private static final String HELD =
            "Timeout\nthe catalog or the storage still holds an earlier try, which is past its time limit";
    private final Runs runs = new Runs(2, error -> "SyncFailed\n" + error.getMessage());
    private final CountDownLatch released = new CountDownLatch(1);
    private final Callable<String> hangs = () -> {
        while (true) {
            try {
                released.await();
                return "late";
            } catch (InterruptedException ignored) { // as a client that goes on reading
                Thread.onSpinWait();
            }
        }
    };

    @AfterEach
    void release() {
        released.countDown();
    }

    @Test
    void whatItReturnsAndWhatItThrows() throws Exception {
        assertEquals("done", runs.run("a", () -> "done", 60_000));
        assertEquals(
                "SyncFailed\nwhy",
                runs.run(
                        "a",
                        () -> {
                            throw new IllegalStateException("why");
                        },
                        60_000));
        assertEquals("done", runs.run("a", () -> "done", 60_000));
    }

    @Test
    void anEarlierTryOfTheNameIsWaitedForUntilItsLimit() throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        CompletableFuture<String> first = CompletableFuture.supplyAsync(() -> {
            try {
                return runs.run(
                        "a",
                        () -> {
                            begun.countDown();
                            return hangs.call();
                        },
                        3_000);
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        });
        begun.await();
        assertEquals("busy\nan earlier try has not ended", runs.run("a", () -> "done", 60_000));
        assertEquals("done", runs.run("b", () -> "done", 60_000));
        assertEquals("Timeout\nnot done within 3 s", first.get());
        assertEquals(HELD, runs.run("a", () -> "done", 60_000));
    }

    @Test
    void notTooManyThreadsAreHeld() throws Exception {
        assertTrue(runs.run("a", hangs, 10).startsWith("Timeout\nnot done"));
        assertTrue(runs.run("b", hangs, 10).startsWith("Timeout\nnot done"));
        assertEquals("Timeout\n2 tries of this agent are held by their catalogs", runs.run("c", () -> "done", 60_000));
        assertEquals(HELD, runs.run("a", () -> "done", 60_000));
    }
}
