package io.hudioperator.commit;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.support.TestTable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hudi.common.config.HoodieMetadataConfig;
import org.apache.hudi.common.engine.HoodieLocalEngineContext;
import org.apache.hudi.common.fs.FSUtils;
import org.apache.hudi.common.model.FileSlice;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieDeltaWriteStat;
import org.apache.hudi.common.model.HoodiePartitionMetadata;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.view.FileSystemViewManager;
import org.apache.hudi.common.table.view.HoodieTableFileSystemView;
import org.apache.hudi.common.util.CompactionUtils;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.hudi.storage.StoragePath;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whether a key may be in a base file although it was deleted (F325, F370). */
class DeletedInLogsTest {
    private static final String TOKEN = "0-0-0";

    @TempDir
    private Path folder;

    private HoodieTableMetaClient metaClient;

    @BeforeEach
    void create() throws IOException {
        metaClient = HoodieTableMetaClient.newTableBuilder()
                .setTableType(HoodieTableType.MERGE_ON_READ)
                .setTableName("t")
                .initTable(
                        HadoopFSUtils.getStorageConf(TestTable.conf(false)),
                        folder.toUri().toString());
        Files.createDirectories(folder.resolve("p"));
        StoragePath table = metaClient.getBasePath();
        new HoodiePartitionMetadata(
                        metaClient.getStorage(), TestTable.time(0), table, new StoragePath(table, "p"), Option.empty())
                .trySave();
    }

    private HoodieInstant begun(String action) {
        HoodieInstant requested = metaClient.createNewInstant(HoodieInstant.State.REQUESTED, action, TestTable.time(0));
        metaClient.getActiveTimeline().createNewInstant(requested);
        metaClient.getActiveTimeline().transitionRequestedToInflight(requested, Option.empty());
        return metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, action, requested.requestedTime());
    }

    /** A commit of one file of a file group. */
    private void commit(String group, boolean isLog, long deletes) throws IOException {
        HoodieInstant inflight = begun("deltacommit");
        String time = inflight.requestedTime();
        String name = isLog
                ? FSUtils.makeLogFileName(group, ".log", time, 1, TOKEN)
                : FSUtils.makeBaseFileName(time, TOKEN, group, ".parquet");
        Files.createFile(folder.resolve("p").resolve(name));
        HoodieDeltaWriteStat stat = new HoodieDeltaWriteStat();
        stat.setPartitionPath("p");
        stat.setFileId(group);
        stat.setPath("p/" + name);
        stat.setNumDeletes(deletes);
        HoodieCommitMetadata content = new HoodieCommitMetadata();
        content.setOperationType(WriteOperationType.UPSERT);
        content.addWriteStat("p", stat);
        metaClient.getActiveTimeline().saveAsComplete(inflight, Option.of(content));
        metaClient.reloadActiveTimeline();
    }

    /** A compaction of all file groups that have log files; it stays pending. */
    private void planCompaction() {
        HoodieLocalEngineContext context = new HoodieLocalEngineContext(metaClient.getStorageConf());
        try (HoodieTableFileSystemView view = FileSystemViewManager.createInMemoryFileSystemView(
                context,
                metaClient,
                HoodieMetadataConfig.newBuilder().enable(false).build())) {
            List<Pair<String, FileSlice>> slices = view.getLatestFileSlices("p")
                    .map(slice -> Pair.of("p", slice))
                    .collect(Collectors.toList());
            metaClient
                    .getActiveTimeline()
                    .saveToCompactionRequested(
                            metaClient.createNewInstant(HoodieInstant.State.REQUESTED, "compaction", TestTable.time(0)),
                            CompactionUtils.buildFromFileSlices(slices, Option.empty(), Option.empty()));
        }
        metaClient.reloadActiveTimeline();
    }

    @Test
    void aDeletionBesideABaseFile() throws IOException {
        commit("f", false, 0);
        commit("g", false, 0);
        commit("f", true, 0);
        assertFalse(DeletedInLogs.any(metaClient));
        commit("g", true, 1);
        assertTrue(DeletedInLogs.any(metaClient));
    }

    @Test
    void noneInAFileGroupWithoutABaseFile() throws IOException {
        commit("f", true, 0);
        commit("f", true, 1);
        assertFalse(DeletedInLogs.any(metaClient));
    }

    /** The later log is in a slice that has no base file until the compaction is complete. */
    @Test
    void aDeletionThatAPendingCompactionDoesNotTake() throws IOException {
        commit("f", false, 0);
        commit("f", true, 0);
        planCompaction();
        assertFalse(DeletedInLogs.any(metaClient));
        commit("f", true, 1);
        assertTrue(DeletedInLogs.any(metaClient));
    }

    @Test
    void aDeletionThatAPendingCompactionTakes() throws IOException {
        commit("f", false, 0);
        commit("f", true, 1);
        planCompaction();
        assertTrue(DeletedInLogs.any(metaClient));
        commit("f", true, 0);
        assertTrue(DeletedInLogs.any(metaClient));
    }
}
