package io.hudioperator.timeline;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.GuardedFileSystem;
import io.hudioperator.session.Session;
import io.hudioperator.support.SlowStore;
import io.hudioperator.support.TestTable;
import java.io.IOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * An interrupt while a file is being sent (F31): the store's client would report success with the
 * request still on the wire.
 */
class InterruptedCloseTest {
    private final TestTable table = new TestTable();
    private final AtomicBoolean flagKept = new AtomicBoolean();
    private final AtomicReference<Exception> error = new AtomicReference<>();
    private GuardedFileSystem fs;
    private Session session;
    private String instant;

    @BeforeEach
    void begin() throws IOException {
        fs = SlowStore.guarded();
        session = table.session("ns.a", Map.of("basePath", "slow:" + table.folder));
        instant = TestTable.time(0);
    }

    /**
     * Called by the thread that commits: one thread, in its lock cycle, begins and completes an
     * instant (F60).
     */
    private void beginInstant() throws IOException {
        assertTrue(table.acquire(session));
        fs.create(SlowStore.path(table, instant + ".commit.requested")).close();
        session.conflictsChecked(instant);
    }

    @AfterEach
    void close() {
        SlowStore.reset();
        table.close();
    }

    private interface Act {
        void run() throws IOException;
    }

    private Thread inThread(Act act) {
        Thread thread = new Thread(() -> {
            try {
                beginInstant();
                act.run();
            } catch (IOException | RuntimeException e) {
                error.set(e);
            }
            flagKept.set(Thread.currentThread().isInterrupted());
        });
        thread.start();
        return thread;
    }

    private static boolean onTheWire() {
        synchronized (SlowStore.ON_THE_WIRE) {
            return !SlowStore.ON_THE_WIRE.isEmpty();
        }
    }

    private void waitsForTheAnswer(Thread thread) throws Exception {
        thread.join(500);
        assertTrue(thread.isAlive(), "close() must not return while its request is on the wire");
        SlowStore.land();
        thread.join(10_000);
        assertFalse(thread.isAlive());
        assertNull(error.get());
        assertTrue(flagKept.get(), "the caller's interrupt is restored");
    }

    @Test
    void theCompletedFileIsThereWhenItsCloseReturns() throws Exception {
        String file = instant + "_" + TestTable.time(1) + ".commit";
        SlowStore.ANSWERS_INTERRUPTS.add(file);
        Thread committing = inThread(() -> TestTable.write(fs, SlowStore.path(table, file), TestTable.COMPLETED));
        TestTable.await(Duration.ofSeconds(5), "the request is on the wire", InterruptedCloseTest::onTheWire);
        committing.interrupt();
        Thread.sleep(200);
        assertNotNull(table.lock());
        assertEquals("Pending", table.state(instant));
        waitsForTheAnswer(committing);
        assertTrue(Files.exists(table.folder.resolve(".hoodie/timeline/" + file)));
        session.release();
        assertNull(table.instant(instant));
    }

    @Test
    void anInterruptFromBeforeDoesNotReachTheStore() throws Exception {
        String file = instant + "_" + TestTable.time(1) + ".commit";
        SlowStore.ANSWERS_INTERRUPTS.add(file);
        Thread committing = inThread(() -> {
            Thread.currentThread().interrupt();
            TestTable.write(fs, SlowStore.path(table, file), TestTable.COMPLETED);
        });
        TestTable.await(Duration.ofSeconds(5), "the request is on the wire", InterruptedCloseTest::onTheWire);
        waitsForTheAnswer(committing);
        session.release();
        assertNull(table.instant(instant));
    }

    @Test
    void aTaskThatIsCancelledEndsAfterItsDataFile() throws Exception {
        String file = "9b3df2c0-1f7a-4a73-9d52-6f0c4d5a1e00-0_0-12-34_" + instant + ".parquet";
        SlowStore.ANSWERS_INTERRUPTS.add(file);
        Thread task =
                inThread(() -> TestTable.write(fs, new Path("slow:" + table.folder + "/a/" + file), new byte[] {1}));
        Files.createDirectory(table.folder.resolve("a"));
        TestTable.await(Duration.ofSeconds(5), "the request is on the wire", InterruptedCloseTest::onTheWire);
        task.interrupt();
        waitsForTheAnswer(task);
        assertTrue(Files.exists(table.folder.resolve("a/" + file)));
    }
}
