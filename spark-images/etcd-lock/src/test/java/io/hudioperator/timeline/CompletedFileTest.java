package io.hudioperator.timeline;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.GuardedFileSystem;
import io.hudioperator.etcd.Pause;
import io.hudioperator.session.Session;
import io.hudioperator.support.SlowStore;
import io.hudioperator.support.TestTable;
import io.hudioperator.testing.GuardedLocalFileSystem;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.hudi.storage.HoodieInstantWriter;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.HoodieStorageUtils;
import org.apache.hudi.storage.StoragePath;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A completed file is sent whole or not at all, and an incomplete file does not count as completed
 * (F34).
 */
class CompletedFileTest {
    private final TestTable table = new TestTable();
    private String instant;
    private String file;

    @AfterEach
    void close() {
        SlowStore.reset();
        table.close();
    }

    private Session begin(String scheme) throws IOException {
        Session session = table.session("ns.a", Map.of("basePath", scheme + table.folder));
        assertTrue(table.acquire(session));
        instant = TestTable.time(0);
        file = instant + "_" + TestTable.time(1) + ".commit";
        return session;
    }

    private boolean isThere() {
        return Files.exists(table.folder.resolve(".hoodie/timeline/" + file));
    }

    private static byte[] content(String what) {
        byte[] whole = TestTable.COMPLETED;
        switch (what) {
            case "empty":
                return new byte[0];
            case "no record":
                return TestTable.avro(0);
            case "two records":
                return TestTable.avro(2);
            case "cut off":
                return Arrays.copyOf(whole, whole.length - 20); // inside the only block
            case "cut off in its end":
                return Arrays.copyOf(whole, whole.length - 1);
            default:
                return "{\"operationType\":\"UPSERT\"}".getBytes(java.nio.charset.StandardCharsets.UTF_8);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"empty", "no record", "two records", "cut off", "cut off in its end", "json"})
    void whatIsNotWholeIsNotSent(String what) throws IOException {
        GuardedFileSystem fs = SlowStore.guarded();
        Session session = begin("slow:");
        fs.create(SlowStore.path(table, instant + ".commit.requested")).close();
        session.conflictsChecked(instant);
        IOException e =
                assertThrows(IOException.class, () -> TestTable.write(fs, SlowStore.path(table, file), content(what)));
        assertTrue(e.getMessage().contains(file) && e.getMessage().contains("one record"), e.getMessage());
        assertFalse(isThere());
        session.release();
        assertEquals("Pending", table.state(instant));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void hudiClosesWhatItCouldNotWrite(boolean temporary) throws IOException {
        Session session = begin("file:");
        HoodieStorage storage =
                HoodieStorageUtils.getStorage(table.basePath(), HadoopFSUtils.getStorageConf(TestTable.conf(true)));
        StoragePath timeline = new StoragePath(table.basePath(), ".hoodie/timeline");
        storage.createImmutableFileInPath(new StoragePath(timeline, instant + ".commit.requested"), Option.empty());
        session.conflictsChecked(instant);
        HoodieInstantWriter fails = out -> {
            out.write(TestTable.COMPLETED, 0, TestTable.COMPLETED.length / 2);
            throw new UncheckedIOException(new IOException("the metadata cannot be written"));
        };
        assertThrows(
                RuntimeException.class,
                () -> storage.createImmutableFileInPath(new StoragePath(timeline, file), Option.of(fails), temporary));
        assertFalse(isThere());
        session.release();
        assertEquals("Pending", table.state(instant));
    }

    @Test
    void nothingIsVisibleBeforeTheContentIsWhole() throws IOException {
        GuardedLocalFileSystem fs = new GuardedLocalFileSystem(); // here create() immediately creates an empty file
        fs.initialize(URI.create("file:///"), new Configuration());
        Session session = begin("file:");
        Path path = new Path(table.timeline(file));
        fs.create(new Path(table.timeline(instant + ".commit.requested"))).close();
        session.conflictsChecked(instant);
        var out = fs.create(path, false);
        out.write(TestTable.COMPLETED);
        out.flush();
        assertFalse(isThere());
        out.close();
        assertArrayEquals(TestTable.COMPLETED, Files.readAllBytes(table.folder.resolve(".hoodie/timeline/" + file)));
        session.release();
        assertNull(table.instant(instant));
    }

    @Test
    void anEmptyFileThatTheDrainFindsDecidesNothing() throws Exception {
        GuardedFileSystem fs = SlowStore.guarded();
        Session session = begin("slow:");
        fs.create(SlowStore.path(table, instant + ".commit.requested")).close();
        session.conflictsChecked(instant);
        SlowStore.STAYS_ON_THE_WIRE.add(file);
        assertThrows(IOException.class, () -> TestTable.write(fs, SlowStore.path(table, file), TestTable.COMPLETED));
        Files.createFile(table.folder.resolve(".hoodie/timeline/" + file));
        Thread releasing = new Thread(session::release);
        releasing.start();
        Pause.millis(2500);
        assertNotNull(table.lock(), "neither completed nor absent");
        SlowStore.land();
        releasing.join(10_000);
        assertNull(table.lock());
        assertNull(table.instant(instant));
    }
}
