package io.hudioperator.commit;

import io.hudioperator.protocol.InsertRule;
import io.hudioperator.session.Session;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hudi.client.transaction.ConcurrentOperation;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.fs.FSUtils;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieDeltaWriteStat;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.StoragePathInfo;

/**
 * Compares keys before the lock is taken, so that under the lock only commits from the meantime
 * remain to be compared. An optimization only: the one fact that is kept is that a new file and a
 * completed write have no inserted key in common, or that a compaction removes no key of a new log
 * file, and none of them changes. {@link InsertConflicts} and {@link CompactedAway} compare
 * everything else under the lock. The markers of a pending write tell which files it has created.
 */
public final class KeysAhead {
    private static final int ROUNDS = 3; // others may commit while keys are read
    private static final Pattern BASE = Pattern.compile("\\.parquet\\.marker\\.CREATE$");
    private static final Pattern LOG = Pattern.compile("\\.log\\.[^/]*\\.marker\\.(CREATE|APPEND)$");
    private static final String MARKER = ".marker.";
    // Schemes of stores in which nobody sees a part of a file. A part of a log file can be read,
    // and lacks keys.
    private static final Set<String> WHOLE = Set.of("s3a", "gs");
    // assumed for a file with an unknown number of keys: too many to ask a Bloom filter for each
    private static final long MANY = 1_000_000;

    private KeysAhead() {}

    /**
     * Called before each acquire. Does nothing unless this session has a pending write and other
     * writers have committed since it began. Never throws.
     */
    public static void look(Session session, TypedProperties props, StorageConfiguration<?> conf) {
        boolean looksUp = session.isWriter() && !"BUCKET".equals(props.getString("hoodie.index.type", ""));
        if (!looksUp || session.instants().pending().isEmpty()) {
            return;
        }
        boolean compares = session.insertRule() == InsertRule.KEY;
        try {
            Set<String> done = new HashSet<>();
            boolean found = true;
            for (int round = 0; round < ROUNDS && found; round++) {
                HoodieTableMetaClient metaClient = HoodieTableMetaClient.builder()
                        .setConf(conf.newInstance())
                        .setBasePath(session.basePath())
                        .build();
                found = false;
                for (String mine : session.instants().pending()) {
                    found |= compares && compare(metaClient, mine, done);
                    found |= compareLogs(metaClient, mine, done);
                }
            }
        } catch (IOException | RuntimeException e) {
            System.err.println("keys are compared under the lock only: " + e);
        }
    }

    private static Stream<HoodieInstant> completedSince(HoodieTableMetaClient metaClient, String requested) {
        return metaClient
                .getActiveTimeline()
                .getCommitsTimeline()
                .filterCompletedInstants()
                .getInstantsAsStream()
                .filter(i ->
                        i.getCompletionTime() != null && i.getCompletionTime().compareTo(requested) > 0);
    }

    private static boolean compare(HoodieTableMetaClient metaClient, String mine, Set<String> done) throws IOException {
        List<String> others = completedSince(metaClient, mine)
                .map(HoodieInstant::requestedTime)
                .filter(other -> done.add(mine + "/" + other))
                .collect(Collectors.toList());
        HoodieCommitMetadata files =
                others.isEmpty() ? new HoodieCommitMetadata() : created(metaClient, mine, BASE, KeysAhead::stat);
        for (String other : files.getWriteStats().isEmpty() ? List.<String>of() : others) {
            if (new InsertConflicts(InsertRule.KEY, false, metaClient)
                    .between(files, other)
                    .isEmpty()) {
                files.getWriteStats()
                        .forEach(s -> KnownApart.add(new StoragePath(metaClient.getBasePath(), s.getPath()), other));
            }
        }
        return !others.isEmpty();
    }

    /** Log files of a pending write, and compactions, pending or completed since it began. */
    private static boolean compareLogs(HoodieTableMetaClient metaClient, String mine, Set<String> done)
            throws IOException {
        if (metaClient.getTableType() != HoodieTableType.MERGE_ON_READ
                || !WHOLE.contains(metaClient.getStorage().getScheme())) {
            return false;
        }
        List<HoodieInstant> others = Stream.concat(
                        CompactedAway.pending(metaClient).stream(),
                        completedSince(metaClient, mine)
                                .filter(i -> HoodieTimeline.COMMIT_ACTION.equals(i.getAction())))
                .filter(other -> done.add(mine + "/logs/" + other.requestedTime()))
                .collect(Collectors.toList());
        HoodieCommitMetadata files =
                others.isEmpty() ? new HoodieCommitMetadata() : created(metaClient, mine, LOG, KeysAhead::logStat);
        for (HoodieInstant other : files.getWriteStats().isEmpty() ? List.<HoodieInstant>of() : others) {
            ConcurrentOperation compaction = new ConcurrentOperation(other, metaClient);
            Set<String> found = compaction.getOperationType() == WriteOperationType.COMPACT
                    ? new CompactedAway(metaClient).between(files, compaction)
                    : Set.of();
            if (found.isEmpty()) {
                files.getWriteStats()
                        .forEach(s -> KnownApart.add(
                                new StoragePath(metaClient.getBasePath(), s.getPath()), other.requestedTime()));
            }
        }
        return !others.isEmpty();
    }

    /**
     * What the markers of a pending write tell of its files of one kind, as metadata of its later
     * commit.
     */
    private static HoodieCommitMetadata created(
            HoodieTableMetaClient metaClient, String instant, Pattern kind, Function<String, HoodieWriteStat> stat)
            throws IOException {
        HoodieCommitMetadata files = new HoodieCommitMetadata();
        files.setOperationType(WriteOperationType.UPSERT);
        StoragePath folder = new StoragePath(metaClient.getMarkerFolderPath(instant));
        try {
            for (StoragePathInfo marker : metaClient.getStorage().listFiles(folder)) {
                String path = marker.getPath().toString();
                if (kind.matcher(path).find()) {
                    files.addWriteStat(
                            "",
                            stat.apply(path.substring(
                                    path.indexOf(folder.getName() + "/")
                                            + folder.getName().length()
                                            + 1,
                                    path.lastIndexOf(MARKER))));
                }
            }
        } catch (FileNotFoundException e) { // nothing has been written yet
            return new HoodieCommitMetadata();
        }
        return files;
    }

    private static HoodieWriteStat logStat(String path) {
        HoodieDeltaWriteStat stat = new HoodieDeltaWriteStat();
        fill(stat, path);
        stat.setFileId(FSUtils.getFileIdFromLogPath(new StoragePath(path)));
        return stat;
    }

    private static HoodieWriteStat stat(String path) {
        HoodieWriteStat stat = new HoodieWriteStat();
        fill(stat, path);
        stat.setFileId(path.substring(path.lastIndexOf('/') + 1));
        stat.setPrevCommit(HoodieWriteStat.NULL_COMMIT);
        return stat;
    }

    private static void fill(HoodieWriteStat stat, String path) {
        stat.setPath(path);
        stat.setPartitionPath(path.contains("/") ? path.substring(0, path.lastIndexOf('/')) : "");
        stat.setNumWrites(MANY);
    }
}
