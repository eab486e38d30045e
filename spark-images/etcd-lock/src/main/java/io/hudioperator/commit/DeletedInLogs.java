package io.hudioperator.commit;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hudi.common.config.DFSPropertiesConfiguration;
import org.apache.hudi.common.config.HoodieMetadataConfig;
import org.apache.hudi.common.engine.HoodieLocalEngineContext;
import org.apache.hudi.common.fs.FSUtils;
import org.apache.hudi.common.model.FileSlice;
import org.apache.hudi.common.model.HoodieFileGroup;
import org.apache.hudi.common.model.HoodieLogFile;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.table.timeline.TimelineUtils;
import org.apache.hudi.common.table.view.FileSystemViewManager;
import org.apache.hudi.common.table.view.HoodieTableFileSystemView;
import org.apache.hudi.storage.StoragePath;

/**
 * Whether a table has keys in base files that log files have deleted (F325).
 *
 * <p>Hudi looks keys up in base files. While such a key is in one, an insert without look-up gives
 * it a second base file, and the next upsert finds both.
 */
public final class DeletedInLogs {
    private static final int KEPT = 100_000; // log files
    /** By name: a log file of a completed commit does not change. */
    private static final Map<String, Boolean> DELETES = new ConcurrentHashMap<>();

    private DeletedInLogs() {}

    /**
     * Whether a log file that has not been compacted deletes a record. A file whose commit is not
     * in the active timeline counts as one that does. False with a bucket index, which looks no key
     * up.
     *
     * @throws IOException when the timeline cannot be read
     */
    public static boolean any(HoodieTableMetaClient metaClient) throws IOException {
        if ("BUCKET".equals(DFSPropertiesConfiguration.getGlobalProps().getString("hoodie.index.type", ""))) {
            return false;
        }
        HoodieLocalEngineContext context = new HoodieLocalEngineContext(metaClient.getStorageConf());
        HoodieMetadataConfig metadata = HoodieMetadataConfig.newBuilder()
                .enable(metaClient.getTableConfig().isMetadataTableAvailable())
                .build();
        HoodieTimeline completed =
                metaClient.getActiveTimeline().getCommitsTimeline().filterCompletedInstants();
        Set<String> logs;
        try (HoodieTableFileSystemView view =
                FileSystemViewManager.createInMemoryFileSystemView(context, metaClient, metadata)) {
            logs = FSUtils.getAllPartitionPaths(context, metaClient, metadata).stream()
                    .flatMap(view::getAllFileGroups)
                    .flatMap(group -> sinceBaseFile(group, completed))
                    .flatMap(FileSlice::getLogFiles)
                    .map(HoodieLogFile::getPath)
                    .map(StoragePath::getName)
                    .collect(Collectors.toSet());
        }
        if (DELETES.size() > KEPT) {
            DELETES.clear();
        }
        if (!DELETES.keySet().containsAll(logs)) {
            DELETES.putAll(deletes(metaClient, logs));
        }
        return logs.stream().anyMatch(log -> DELETES.getOrDefault(log, true));
    }

    /**
     * The slices of a file group from its newest base file on, or none without one. While a
     * compaction is pending there are two: the logs that it takes are in the older one, later ones
     * in one that has no base file yet, or one that may not be read (F370).
     */
    private static Stream<FileSlice> sinceBaseFile(HoodieFileGroup group, HoodieTimeline completed) {
        List<FileSlice> found = new ArrayList<>();
        for (FileSlice slice : group.getAllRawFileSlices().collect(Collectors.toList())) { // the newest first
            found.add(slice);
            if (slice.getBaseFile().isPresent()
                    && completed.containsOrBeforeTimelineStarts(slice.getBaseInstantTime())) {
                return found.stream();
            }
        }
        return Stream.empty();
    }

    /** Of these log files, those whose commit is in the active timeline. */
    private static Map<String, Boolean> deletes(HoodieTableMetaClient metaClient, Set<String> logs) throws IOException {
        Set<String> instants = logs.stream()
                .filter(log -> !DELETES.containsKey(log))
                .map(log -> FSUtils.getDeltaCommitTimeFromLogPath(new StoragePath(log)))
                .collect(Collectors.toSet());
        Map<String, Boolean> found = new HashMap<>();
        for (HoodieInstant instant : metaClient
                .getActiveTimeline()
                .getCommitsTimeline()
                .filterCompletedInstants()
                .getInstants()) {
            if (instants.contains(instant.requestedTime())) {
                for (HoodieWriteStat stat : TimelineUtils.getCommitMetadata(instant, metaClient.getActiveTimeline())
                        .getWriteStats()) {
                    CompactedAway.names(stat).forEach(file -> found.put(file, stat.getNumDeletes() > 0));
                }
            }
        }
        return found;
    }
}
