package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import io.hudioperator.etcd.Pause;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * At its commit, a table service waits until writes that have begun have declared what they change,
 * up to a time limit.
 */
class YieldingServiceTest {
    private static final String SERVICE = "20260101000000001";
    private static final String WRITE = "20260101000000002";

    @TempDir
    Path folder;

    private HoodieTableMetaClient metaClient;

    @BeforeEach
    void table() throws IOException {
        metaClient = HoodieTableMetaClient.newTableBuilder()
                .setTableType(HoodieTableType.MERGE_ON_READ)
                .setTableName("t")
                .initTable(
                        HadoopFSUtils.getStorageConf(new Configuration()),
                        folder.toUri().toString());
        touch(SERVICE + ".clustering.requested");
        touch(SERVICE + ".clustering.inflight");
        touch(WRITE + ".deltacommit.requested");
    }

    private void touch(String name) {
        try {
            Files.createFile(folder.resolve(".hoodie/timeline").resolve(name));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private HoodieInstant.State stateOfTheWrite() {
        return metaClient
                .getActiveTimeline()
                .getInstantsAsStream()
                .filter(i -> i.requestedTime().equals(WRITE))
                .findFirst()
                .get()
                .getState();
    }

    private void awaitWritePlans(long millis) {
        HoodieInstant service = metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "clustering", SERVICE);
        assertTimeoutPreemptively(
                Duration.ofSeconds(30),
                () -> FencedConflictResolutionStrategy.awaitWritePlans(metaClient, service, millis));
    }

    @Test
    void itHearsWhatAWriteSaysMeanwhile() {
        CompletableFuture<Void> says = CompletableFuture.runAsync(() -> {
            Pause.millis(500);
            touch(WRITE + ".deltacommit.inflight");
        });
        awaitWritePlans(60_000);
        assertEquals(HoodieInstant.State.INFLIGHT, stateOfTheWrite());
        says.join();
    }

    @Test
    void itDoesNotWaitForEver() {
        awaitWritePlans(300);
        assertEquals(HoodieInstant.State.REQUESTED, stateOfTheWrite());
    }
}
