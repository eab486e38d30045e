package io.hudioperator.commit;

import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.avro.generic.GenericRecord;
import org.apache.hudi.avro.model.HoodieCompactionOperation;
import org.apache.hudi.client.transaction.ConcurrentOperation;
import org.apache.hudi.common.config.RecordMergeMode;
import org.apache.hudi.common.fs.FSUtils;
import org.apache.hudi.common.model.DeleteRecord;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieDeltaWriteStat;
import org.apache.hudi.common.model.HoodieLogFile;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieRecord.HoodieRecordType;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.log.HoodieLogFormat;
import org.apache.hudi.common.table.log.block.HoodieDataBlock;
import org.apache.hudi.common.table.log.block.HoodieDeleteBlock;
import org.apache.hudi.common.table.log.block.HoodieLogBlock;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.util.CompactionUtils;
import org.apache.hudi.common.util.collection.ClosableIterator;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;

/**
 * Finds record keys that a delta commit has written into the log of a file group whose compaction
 * leaves them out (F324).
 *
 * <p>Hudi looks keys up in base files only. A key that a log file has deleted is therefore found,
 * and its new version goes into the log of the same file group. If the compaction that carries out
 * the deletion was planned before that, the new base file does not have the key. Until the next
 * compaction only the log has it: no look-up finds it, and the next upsert inserts a second record.
 *
 * <p>A completed compaction is compared exactly: keys of the commit's log files with those of the
 * new base file, where it has removed any. For a pending one, keys that the log files in its plan
 * delete (with a merger of the user's own, all keys in them) count as removed. A file that cannot
 * be read counts as a conflict (I11).
 */
public final class CompactedAway {
    private final HoodieTableMetaClient metaClient;
    private final HoodieStorage storage;
    private final boolean anyMerger;

    public CompactedAway(HoodieTableMetaClient metaClient) {
        this.metaClient = metaClient;
        this.storage = metaClient.getStorage();
        this.anyMerger = metaClient.getTableConfig().getRecordMergeMode() == RecordMergeMode.CUSTOM;
    }

    /** Pending compactions; whether they conflict with a delta commit is for this class to say. */
    public static List<HoodieInstant> pending(HoodieTableMetaClient metaClient) {
        return metaClient.getActiveTimeline().filterPendingCompactionTimeline().getInstants();
    }

    /**
     * Returns the file groups into whose log the commit has written keys that the compaction
     * removes; empty when there are none.
     */
    public Set<String> between(HoodieCommitMetadata mine, ConcurrentOperation compaction) {
        Map<String, HoodieDeltaWriteStat> logs = new HashMap<>();
        for (HoodieWriteStat stat : mine.getWriteStats()) {
            if (stat instanceof HoodieDeltaWriteStat
                    && stat.getNumWrites() > 0
                    && FSUtils.isLogFile(new StoragePath(stat.getPath()))
                    && !files((HoodieDeltaWriteStat) stat).stream()
                            .allMatch(file -> KnownApart.has(file, compaction.getInstantTimestamp()))) {
                logs.put(name(stat.getPartitionPath(), stat.getFileId()), (HoodieDeltaWriteStat) stat);
            }
        }
        if (logs.isEmpty()) {
            return Set.of();
        }
        Set<String> found = new TreeSet<>();
        try {
            if (HoodieInstant.State.COMPLETED.name().equals(compaction.getInstantActionState())) {
                completed(logs, compaction.getInstantTimestamp(), found);
            } else {
                planned(logs, compaction.getInstantTimestamp(), found);
            }
        } catch (IOException | RuntimeException e) { // for example, a file was cleaned in the meantime
            System.err.println("cannot compare the written keys with those that the compaction "
                    + compaction.getInstantTimestamp() + " removes; treating this as a conflict: " + e);
            found.addAll(logs.keySet());
        }
        return found;
    }

    private static String name(String partition, String group) {
        return partition == null || partition.isEmpty() ? group : partition + "/" + group;
    }

    private void completed(Map<String, HoodieDeltaWriteStat> logs, String instant, Set<String> found)
            throws IOException {
        for (HoodieWriteStat stat : InsertConflicts.read(metaClient, instant).getWriteStats()) {
            String group = name(stat.getPartitionPath(), stat.getFileId());
            if (stat.getNumDeletes() > 0 && logs.containsKey(group)) {
                Set<String> keys = writtenBy(logs.get(group));
                KeyColumn.forEach(storage, new StoragePath(metaClient.getBasePath(), stat.getPath()), keys::remove);
                if (!keys.isEmpty()) {
                    found.add(group);
                }
            }
        }
    }

    private void planned(Map<String, HoodieDeltaWriteStat> logs, String instant, Set<String> found) throws IOException {
        for (HoodieCompactionOperation operation :
                CompactionUtils.getCompactionPlan(metaClient, instant).getOperations()) {
            String group = name(operation.getPartitionPath(), operation.getFileId());
            if (logs.containsKey(group) && operation.getDeltaFilePaths() != null) {
                Set<String> keys = writtenBy(logs.get(group));
                for (String file : operation.getDeltaFilePaths()) {
                    forEachRemoved(inPartition(operation.getPartitionPath(), file), key -> {
                        if (keys.contains(key)) {
                            found.add(group);
                        }
                    });
                }
            }
        }
    }

    private StoragePath inPartition(String partition, String file) {
        return new StoragePath(
                FSUtils.constructAbsolutePath(metaClient.getBasePath(), partition == null ? "" : partition),
                new StoragePath(file).getName());
    }

    /**
     * Keys of the rows in the log files of one part of the commit. They are read again for each
     * compaction: no more than the keys of one file group are in memory.
     */
    private Set<String> writtenBy(HoodieDeltaWriteStat stat) throws IOException {
        Set<String> keys = new HashSet<>();
        for (StoragePath file : files(stat)) {
            forEachRow(file, keys::add);
        }
        return keys;
    }

    /** The log files of one part of a commit. */
    private Set<StoragePath> files(HoodieDeltaWriteStat stat) {
        return names(stat)
                .map(file -> inPartition(stat.getPartitionPath(), file))
                .collect(Collectors.toSet());
    }

    /** Names of the files of one part of a commit. */
    static Stream<String> names(HoodieWriteStat stat) {
        List<String> more = stat instanceof HoodieDeltaWriteStat ? ((HoodieDeltaWriteStat) stat).getLogFiles() : null;
        return Stream.concat(Stream.of(stat.getPath()), more == null ? Stream.empty() : more.stream())
                .map(file -> new StoragePath(file).getName())
                .distinct();
    }

    private void forEachRow(StoragePath file, Consumer<String> consumer) throws IOException {
        forEachBlock(file, block -> {
            if (block instanceof HoodieDataBlock) {
                rows((HoodieDataBlock) block, consumer);
            }
        });
    }

    private void forEachRemoved(StoragePath file, Consumer<String> consumer) throws IOException {
        forEachBlock(file, block -> {
            if (block instanceof HoodieDeleteBlock) {
                for (DeleteRecord deleted : ((HoodieDeleteBlock) block).getRecordsToDelete()) {
                    consumer.accept(deleted.getRecordKey());
                }
            } else if (anyMerger && block instanceof HoodieDataBlock) {
                rows((HoodieDataBlock) block, consumer);
            }
        });
    }

    private static void rows(HoodieDataBlock block, Consumer<String> consumer) {
        try (ClosableIterator<HoodieRecord<Object>> records = block.getRecordIterator(HoodieRecordType.AVRO)) {
            while (records.hasNext()) {
                GenericRecord row = (GenericRecord) records.next().getData();
                consumer.accept(row.get(HoodieRecord.RECORD_KEY_METADATA_FIELD).toString());
            }
        }
    }

    private void forEachBlock(StoragePath file, Consumer<HoodieLogBlock> consumer) throws IOException {
        try (HoodieLogFormat.Reader blocks = HoodieLogFormat.newReader(storage, new HoodieLogFile(file), null)) {
            while (blocks.hasNext()) {
                consumer.accept(blocks.next());
            }
        }
    }
}
