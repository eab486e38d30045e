package io.hudioperator.commit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.session.Session;
import io.hudioperator.support.HudiFiles;
import io.hudioperator.support.TestTable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.hudi.client.transaction.ConcurrentOperation;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.model.HoodieAvroIndexedRecord;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieDeltaWriteStat;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.model.HoodieLogFile;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.log.HoodieLogFormat;
import org.apache.hudi.common.table.log.block.HoodieAvroDataBlock;
import org.apache.hudi.common.table.log.block.HoodieLogBlock.HeaderMetadataType;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.hudi.storage.StoragePath;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Log files are compared with compactions while the lock is not held (F324). The files are made by
 * Hudi's own writers.
 */
class LogsAheadTest {
    private static final String PARTITION = "p";
    private static final String GROUP = "f";
    private final TestTable table = new TestTable();
    private final List<String> compactions = new ArrayList<>();
    private Session session;
    private HoodieTableMetaClient metaClient;
    private StoragePath folder;

    @BeforeEach
    void begin() throws Exception {
        session = table.session("ns.a");
        metaClient = table.create(HoodieTableType.MERGE_ON_READ);
        folder = new StoragePath(table.basePath(), PARTITION);
    }

    @AfterEach
    void close() {
        table.close();
    }

    /** As on a store in which nobody sees a part of a file; patient. */
    private KeysAhead ahead() {
        return new KeysAhead(
                session,
                new TypedProperties(),
                HadoopFSUtils.getStorageConf(TestTable.conf(true)),
                TimeUnit.MINUTES.toNanos(1),
                Set.of("file"));
    }

    /** Writes a log file with these keys. */
    private HoodieDeltaWriteStat log(String... keys) throws Exception {
        List<HoodieRecord> rows = Arrays.stream(keys)
                .map(key -> new HoodieAvroIndexedRecord(new HoodieKey(key, PARTITION), HudiFiles.row(PARTITION, key)))
                .collect(Collectors.toList());
        Map<HeaderMetadataType, String> header = Map.of(
                HeaderMetadataType.INSTANT_TIME,
                TestTable.time(0),
                HeaderMetadataType.SCHEMA,
                HudiFiles.SCHEMA.toString());
        HoodieDeltaWriteStat stat = new HoodieDeltaWriteStat();
        try (HoodieLogFormat.Writer writer = HoodieLogFormat.newWriterBuilder()
                .onParentPath(folder)
                .withFileExtension(HoodieLogFile.DELTA_EXTENSION)
                .withLogVersion(1)
                .withLogWriteToken("0-0-0")
                .withInstantTime(TestTable.time(0))
                .withFileId(GROUP)
                .withStorage(metaClient.getStorage())
                .build()) {
            writer.appendBlock(new HoodieAvroDataBlock(rows, header, HoodieRecord.RECORD_KEY_METADATA_FIELD));
            fill(stat, writer.getLogFile().getFileName());
        }
        return stat;
    }

    /** Writes a base file with these keys. */
    private HoodieWriteStat base(String... keys) throws Exception {
        String name = GROUP + "_0-0-0_" + TestTable.time(compactions.size()) + ".parquet";
        HudiFiles.base(metaClient.getStorage(), new StoragePath(folder, name), true, PARTITION, keys);
        return fill(new HoodieWriteStat(), name);
    }

    private static HoodieWriteStat fill(HoodieWriteStat stat, String name) {
        stat.setPartitionPath(PARTITION);
        stat.setFileId(GROUP);
        stat.setPath(PARTITION + "/" + name);
        stat.setNumWrites(1);
        return stat;
    }

    private HoodieInstant begun(String action) {
        HoodieInstant requested = metaClient.createNewInstant(HoodieInstant.State.REQUESTED, action, TestTable.time(0));
        assertTrue(table.acquire(session));
        metaClient.getActiveTimeline().createNewInstant(requested);
        metaClient.getActiveTimeline().transitionRequestedToInflight(requested, Option.of(new HoodieCommitMetadata()));
        session.release();
        return metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, action, requested.requestedTime());
    }

    /** A pending delta commit that has written this log file. */
    private void pending(HoodieWriteStat log) throws IOException {
        String time = begun("deltacommit").requestedTime();
        Path marker = table.folder.resolve(".hoodie/.temp/" + time + "/" + log.getPath() + ".marker.APPEND");
        Files.createDirectories(marker.getParent());
        Files.createFile(marker);
    }

    /** A compaction that has removed keys and kept these is completed. */
    private void compacted(String... kept) throws Exception {
        HoodieWriteStat stat = base(kept);
        stat.setNumDeletes(1);
        HoodieCommitMetadata content = new HoodieCommitMetadata();
        content.setOperationType(WriteOperationType.COMPACT);
        content.addWriteStat(PARTITION, stat);
        HoodieInstant inflight = begun("commit");
        assertTrue(table.acquire(session));
        session.conflictsChecked(inflight.requestedTime());
        metaClient.getActiveTimeline().saveAsComplete(inflight, Option.of(content));
        session.release();
        metaClient.reloadActiveTimeline();
        compactions.add(inflight.requestedTime());
    }

    private boolean remain(KeysAhead keys) {
        assertTrue(table.acquire(session));
        try {
            return keys.remain();
        } finally {
            session.release();
        }
    }

    /**
     * What completes after the last look is not compared under the lock, because whole log files
     * would be read: the lock is to be given back, and they are read while others can commit.
     */
    @Test
    void theLockIsNotHeldWhileLogFilesAreRead() throws Exception {
        HoodieDeltaWriteStat log = log("k");
        pending(log);
        compacted("k");
        KeysAhead keys = ahead();
        keys.look();
        assertFalse(remain(keys), "nothing has completed since");
        compacted("k");
        assertTrue(remain(keys), "the lock is given back");
        keys.look();
        assertFalse(remain(keys));
        Files.delete(table.folder.resolve(log.getPath()));
        assertEquals(List.of(), conflicts(log), "the file is not read again");
        compacted("k");
        assertEquals(compactions.subList(2, 3), conflicts(log), "the file is read, and it is gone");
    }

    /** A removed key of the log file is a conflict, also when it was found without the lock. */
    @Test
    void aRemovedKeyThatIsFoundWithoutTheLockIsAConflict() throws Exception {
        HoodieDeltaWriteStat log = log("k", "removed");
        pending(log);
        compacted("k", "removed");
        compacted("k");
        KeysAhead keys = ahead();
        keys.look();
        assertFalse(remain(keys));
        assertEquals(compactions.subList(1, 2), conflicts(log));
    }

    /** The compactions that remove a key of the log file. */
    private List<String> conflicts(HoodieDeltaWriteStat log) throws IOException {
        HoodieCommitMetadata mine = new HoodieCommitMetadata();
        mine.addWriteStat(PARTITION, log);
        HoodieTableMetaClient now = HoodieTableMetaClient.reload(metaClient);
        List<HoodieInstant> completed = now.getActiveTimeline()
                .getCommitsTimeline()
                .filterCompletedInstants()
                .getInstants();
        List<String> found = new ArrayList<>();
        for (HoodieInstant other : completed) {
            if (!new CompactedAway(now)
                    .between(mine, new ConcurrentOperation(other, now))
                    .isEmpty()) {
                found.add(other.requestedTime());
            }
        }
        return found;
    }
}
