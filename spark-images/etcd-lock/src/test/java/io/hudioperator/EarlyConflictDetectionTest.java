package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieEarlyConflictDetectionException;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Which marker stops a write: one in the same file group, of a pending write that began earlier and
 * is alive.
 */
class EarlyConflictDetectionTest {
    private static final String EARLIER = "20260101000000001";
    private static final String MINE = "20260101000000002";
    private static final String LATER = "20260101000000003";

    @TempDir
    Path folder;

    @BeforeEach
    void table() throws IOException {
        HoodieTableMetaClient.newTableBuilder()
                .setTableType(HoodieTableType.COPY_ON_WRITE)
                .setTableName("t")
                .initTable(
                        HadoopFSUtils.getStorageConf(new Configuration()),
                        folder.toUri().toString());
    }

    private void touch(String name) throws IOException {
        Path file = folder.resolve(".hoodie").resolve(name);
        Files.createDirectories(file.getParent());
        Files.createFile(file);
    }

    private void pending(String instant) throws IOException {
        touch("timeline/" + instant + ".commit.requested");
        touch("timeline/" + instant + ".inflight");
    }

    private void marker(String instant, String partition) throws IOException {
        touch(".temp/" + instant + "/" + partition + "/f-0_0-1-2_" + instant + ".parquet.marker.MERGE");
    }

    private void beats(String instant) throws IOException {
        touch(".heartbeat/" + instant);
    }

    private EarlyConflictDetection detection(String partition, String fileId) {
        HoodieTableMetaClient metaClient = HoodieTableMetaClient.builder()
                .setConf(HadoopFSUtils.getStorageConf(new Configuration()))
                .setBasePath(folder.toUri().toString())
                .build();
        HoodieWriteConfig config = HoodieWriteConfig.newBuilder()
                .withPath(folder.toUri().toString())
                .build();
        return new EarlyConflictDetection(
                metaClient.getStorage(), partition, fileId, MINE, metaClient.getActiveTimeline(), config);
    }

    private void goesOn(String partition, String fileId) {
        assertDoesNotThrow(() -> detection(partition, fileId).detectAndResolveConflictIfNecessary());
    }

    @Test
    void anEarlierPendingWriteOfTheSameFileGroupStopsIt() throws IOException {
        pending(EARLIER);
        beats(EARLIER);
        marker(EARLIER, "p");
        HoodieEarlyConflictDetectionException refused = assertThrows(
                HoodieEarlyConflictDetectionException.class,
                () -> detection("p", "f-0").detectAndResolveConflictIfNecessary());
        assertTrue(
                refused.getMessage()
                        .contains("instant " + MINE + " stops, because " + EARLIER + ", which began earlier"),
                refused.getMessage());
        assertTrue(refused.getMessage().endsWith("the same file group: p/f-0"), refused.getMessage());
        goesOn("p", "g-0");
        goesOn("q", "f-0");
    }

    @Test
    void aLaterWriteDoesNot() throws IOException {
        pending(LATER);
        beats(LATER);
        marker(LATER, "p");
        goesOn("p", "f-0");
    }

    @Test
    void whatHasCompletedDoesNot() throws IOException {
        pending(EARLIER);
        touch("timeline/" + EARLIER + "_" + MINE + ".commit");
        beats(EARLIER);
        marker(EARLIER, "p");
        goesOn("p", "f-0");
    }

    @Test
    void whatHasNoHeartbeatDoesNot() throws IOException {
        pending(EARLIER);
        marker(EARLIER, "p");
        goesOn("p", "f-0");
    }

    @Test
    void aStoreWithoutEmptyFoldersDoesNotFailIt() throws IOException {
        pending(EARLIER);
        beats(EARLIER);
        Files.deleteIfExists(folder.resolve(".hoodie/.temp"));
        goesOn("p", "f-0");
    }
}
