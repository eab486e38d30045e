package io.hudioperator.timeline;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.GuardedFileSystem;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.session.Session;
import io.hudioperator.support.SlowStore;
import io.hudioperator.support.TestTable;
import java.io.IOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Files under the lock that complete no instant of the table and had no answer (F37): the next
 * owner begins only after they have landed or died.
 */
class UnansweredTest {
    private static final String METADATA = "metadata/.hoodie/timeline/";
    private final TestTable table = new TestTable();
    private GuardedFileSystem fs;
    private Session session;
    private Session other;

    @BeforeEach
    void begin() throws IOException {
        fs = SlowStore.guarded();
        session = table.session("ns.a", Map.of("basePath", "slow:" + table.folder));
        other = table.session("ns.b");
        assertTrue(table.acquire(session));
    }

    @AfterEach
    void close() {
        SlowStore.reset();
        table.close();
    }

    private Path path(String name) {
        return new Path("slow:" + table.folder + "/.hoodie/" + name);
    }

    private void send(String name) throws IOException {
        TestTable.write(fs, path(name), name.contains("_2025") ? TestTable.COMPLETED : new byte[] {1});
    }

    private long timedRelease() {
        long start = System.nanoTime();
        session.release();
        return Duration.ofNanos(System.nanoTime() - start).toMillis();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "timeline/history/_version_",
                "timeline/history/manifest_2",
                "hoodie.properties",
                "hoodie.properties.backup",
                METADATA + "20250101000000000.deltacommit.requested",
                METADATA + "20250101000000000_20250101000001000.deltacommit",
                METADATA + "history/_version_"
            })
    void theNextOwnerBeginsWhenItHasLanded(String name) throws Exception {
        SlowStore.STAYS_ON_THE_WIRE.add(path(name).getName());
        assertThrows(IOException.class, () -> send(name));
        Thread releasing = new Thread(session::release); // Hudi unlocks on any exception
        releasing.start();
        assertFalse(table.acquire(other, 500), "the request may still land");
        Files.createDirectories(table.folder.resolve(".hoodie/" + name).getParent());
        SlowStore.land();
        releasing.join(10_000);
        assertTrue(table.acquire(other));
        other.release();
    }

    @Test
    void aSecondTryThatIsAnsweredSaysNothingAboutTheFirst() throws IOException {
        SlowStore.DIES.add("_version_");
        assertThrows(IOException.class, () -> send("timeline/history/_version_"));
        send("timeline/history/_version_");
        assertTrue(timedRelease() >= 1000);
        assertNull(table.lock());
    }

    @Test
    void whatIsAnsweredIsReleasedAtOnce() throws IOException {
        send("timeline/history/_version_");
        send("hoodie.properties");
        send(METADATA + "20250101000000000_20250101000001000.deltacommit");
        assertTrue(timedRelease() < 900);
    }

    @Test
    void whatWasOpenedUnderALockIsNotSentWhenItIsGone() throws IOException {
        var out = fs.create(path("timeline/history/_version_"), true);
        session.release();
        assertTrue(table.acquire(session));
        assertCode(ErrorCode.TOKEN, assertThrows(IOException.class, out::close));
        assertFalse(Files.exists(table.folder.resolve(".hoodie/timeline/history/_version_")));
        assertEquals(0, SlowStore.ON_THE_WIRE.size());
        session.release();
    }
}
