package io.hudioperator.session;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.GuardedFileSystem;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.etcd.Pause;
import io.hudioperator.support.SlowStore;
import io.hudioperator.support.TestTable;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The lock is not released while a publication is unknown (F1, I1), on a store that sends in
 * close().
 */
class ReleaseTest {
    private final TestTable table = new TestTable();
    private GuardedFileSystem fs;
    private Session session;
    private String instant;
    private String completion;
    private String file;

    @BeforeEach
    void begin() throws IOException {
        fs = SlowStore.guarded();
        session = table.session("ns.a", java.util.Map.of("basePath", "slow:" + table.folder));
        assertTrue(table.acquire(session));
        instant = TestTable.time(0);
        completion = TestTable.time(1);
        file = instant + "_" + completion + ".commit";
        fs.create(SlowStore.path(table, instant + ".commit.requested")).close();
        session.conflictsChecked(instant);
    }

    @AfterEach
    void close() {
        LostExecutors.countedBy(null, wait -> 0);
        SlowStore.reset();
        table.close();
    }

    private long timedRelease() {
        long start = System.nanoTime();
        session.release();
        return Duration.ofNanos(System.nanoTime() - start).toMillis();
    }

    @Test
    void anAnsweredPublicationIsReleasedAtOnceAndItsRecordIsGone() throws IOException {
        TestTable.write(fs, SlowStore.path(table, file), TestTable.COMPLETED);
        assertTrue(timedRelease() < 900);
        assertNull(table.lock());
        assertNull(table.instant(instant));
        assertEquals(completion, table.clock());
    }

    @Test
    void aRequestThatDiedKeepsTheLockForTheDrainAndTheRecord() {
        SlowStore.DIES.add(file);
        assertThrows(IOException.class, () -> TestTable.write(fs, SlowStore.path(table, file), TestTable.COMPLETED));
        assertTrue(timedRelease() >= 1000);
        assertNull(table.lock());
        assertEquals("Pending", table.state(instant));
    }

    @Test
    void anInstantOnTheWireIsNotAbandonedBeforeTheRelease() throws Exception {
        SlowStore.DIES.add(file);
        assertThrows(IOException.class, () -> TestTable.write(fs, SlowStore.path(table, file), TestTable.COMPLETED));
        // its file may still land, and the agent would roll it back on the owner's statement
        assertFalse(session.abandon(instant));
        assertEquals("Pending", table.state(instant));
        session.release();
        assertTrue(session.abandon(instant)); // the drain is over and a listing has not shown it
        assertEquals("Abandoned", table.state(instant));
    }

    @Test
    void aRequestThatLandsDuringTheDrainIsACompletedInstant() throws Exception {
        SlowStore.STAYS_ON_THE_WIRE.add(file);
        assertThrows(IOException.class, () -> TestTable.write(fs, SlowStore.path(table, file), TestTable.COMPLETED));
        AtomicLong released = new AtomicLong();
        Thread releasing = new Thread(() -> {
            session.release();
            released.set(System.nanoTime());
        });
        releasing.start();
        Pause.millis(300);
        assertNotNull(table.lock(), "still held while the request may land");
        SlowStore.land();
        releasing.join(10_000);
        assertNull(table.lock());
        assertNull(table.instant(instant), "completed: recorded as a success");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aListingThatFailsDecidesNothing(boolean declared) throws Exception {
        SlowStore.DIES.add(file);
        assertThrows(IOException.class, () -> TestTable.write(fs, SlowStore.path(table, file), TestTable.COMPLETED));
        SlowStore.listingFails = declared;
        SlowStore.listingBreaks = !declared;
        Thread releasing = new Thread(session::release);
        releasing.start();
        Pause.millis(1800);
        assertNotNull(table.lock());
        SlowStore.reset();
        releasing.join(10_000);
        assertNull(table.lock());
    }

    @Test
    void aStreamThatIsNeverClosedIsUnknown() throws IOException {
        fs.create(SlowStore.path(table, file)); // neither sent nor refused
        assertTrue(timedRelease() >= 1000);
        assertEquals("Pending", table.state(instant));
    }

    @Test
    void closingAfterTheLockWentAwaySendsNothing() throws IOException {
        var out = fs.create(SlowStore.path(table, file));
        out.write(TestTable.COMPLETED);
        table.etcd.delete("lock", 0); // as the operator would after a proof of death
        assertCode(ErrorCode.TOKEN, assertThrows(IOException.class, out::close));
        assertFalse(java.nio.file.Files.exists(table.folder.resolve(".hoodie/timeline/" + file)));
        session.release();
    }

    @Test
    void closingARequestedFileAfterTheLockWentAwaySendsNothing() throws IOException {
        String second = TestTable.time(5);
        var out = fs.create(SlowStore.path(table, second + ".commit.requested"));
        table.etcd.delete("lock", 0);
        assertCode(ErrorCode.TOKEN, assertThrows(IOException.class, out::close));
        assertFalse(
                java.nio.file.Files.exists(table.folder.resolve(".hoodie/timeline/" + second + ".commit.requested")));
        assertEquals("Pending", table.state(second), "a record without a file: gone, nothing to do");
        session.release();
    }

    @Test
    void nothingIsPublishedWhileReleasing() throws Exception {
        SlowStore.DIES.add(file);
        assertThrows(IOException.class, () -> TestTable.write(fs, SlowStore.path(table, file), TestTable.COMPLETED));
        Thread releasing = new Thread(session::release);
        releasing.start();
        Pause.millis(200);
        String later = instant + "_" + TestTable.time(50) + ".commit";
        assertCode(ErrorCode.TOKEN, assertThrows(IOException.class, () -> fs.create(SlowStore.path(table, later))));
        releasing.join(10_000);
    }

    /** F561: {@code query.stop()} interrupts the thread that commits. */
    @Test
    void anInterruptDoesNotKeepTheLock() throws IOException {
        TestTable.write(fs, SlowStore.path(table, file), TestTable.COMPLETED);
        LostExecutors.countedBy(null, new DriverEvents()::lost); // its events never come
        Thread.currentThread().interrupt();
        session.release();
        assertTrue(Thread.interrupted(), "the caller is told of the interrupt");
        assertNull(table.lock());
        assertFalse(session.holdsLock());
        assertEquals("Pending", table.state(instant), "an executor may have been lost");
        LostExecutors.countedBy(null, wait -> 0);
        commitsAnother();
        assertNull(table.instant(instant));
    }

    /** F602: Spark closes the session when it ends, whatever the runtime has decided. */
    @Test
    void whoGaveUpAnInstantAndLostAnExecutorDoesNotLeave() {
        session.release();
        assertFalse(session.close(), "its instant is pending");
        assertTrue(session.abandon(instant));
        LostExecutors.countedBy(null, wait -> 1);
        assertFalse(session.close());
        LostExecutors.countedBy(null, wait -> LostExecutors.UNKNOWN);
        assertFalse(session.close(), "whether one was lost is not known");
        assertNotNull(table.etcd.get("writer/" + session.inc()));
        LostExecutors.countedBy(null, wait -> 0);
        assertTrue(session.close());
    }

    private void commitsAnother() throws IOException {
        assertTrue(table.acquire(session));
        String second = TestTable.time(2);
        fs.create(SlowStore.path(table, second + ".commit.requested")).close();
        session.conflictsChecked(second);
        String completed = second + "_" + TestTable.time(3) + ".commit";
        TestTable.write(fs, SlowStore.path(table, completed), TestTable.COMPLETED);
        session.release();
        assertNull(table.instant(second));
    }

    /** F561: it would fail again and again, and the lock stay for as long. */
    @Test
    void anInterruptDoesNotReachTheListing() throws Exception {
        SlowStore.DIES.add(file);
        assertThrows(IOException.class, () -> TestTable.write(fs, SlowStore.path(table, file), TestTable.COMPLETED));
        Thread releasing = new Thread(session::release);
        releasing.setDaemon(true);
        releasing.start();
        releasing.interrupt();
        releasing.join(10_000);
        assertNull(table.lock());
        assertEquals("Pending", table.state(instant));
    }

    @Test
    void theReleaseOfAnUnlockedLockChangesNothing() {
        table.etcd.delete("lock", 0);
        table.etcd.put("lock", "{\"inc\":\"somebody\"}");
        session.release();
        assertEquals("{\"inc\":\"somebody\"}", table.lock().value());
    }
}
