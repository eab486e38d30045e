package io.hudioperator.commit;

import io.hudioperator.protocol.InsertRule;
import io.hudioperator.session.Session;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.StoragePathInfo;

/**
 * Compares inserted keys before the lock is taken, so that under the lock only commits from the
 * meantime remain to be compared. An optimization only: the one fact that is kept is that a new
 * file and a completed write have no inserted key in common, and neither of them changes. {@link
 * InsertConflicts} compares everything else under the lock. The markers of a pending write tell
 * which files it has created.
 */
public final class InsertsAhead {
    private static final int ROUNDS = 3; // others may commit while keys are read
    private static final String NEW_FILE = ".parquet.marker.CREATE";
    private static final String MARKER = ".marker.";
    // assumed for a file with an unknown number of keys: too many to ask a Bloom filter for each
    private static final long MANY = 1_000_000;

    private InsertsAhead() {}

    /**
     * Called before each acquire. Does nothing unless this session has a pending write and other
     * writers have committed since it began. Never throws.
     */
    public static void look(Session session, TypedProperties props, StorageConfiguration<?> conf) {
        boolean compares = session.isWriter()
                && session.insertRule() == InsertRule.KEY
                && !"BUCKET".equals(props.getString("hoodie.index.type", ""));
        if (!compares || session.instants().pending().isEmpty()) {
            return;
        }
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
                    found |= compare(metaClient, mine, done);
                }
            }
        } catch (IOException | RuntimeException e) {
            System.err.println("inserted keys are compared under the lock only: " + e);
        }
    }

    private static boolean compare(HoodieTableMetaClient metaClient, String mine, Set<String> done) throws IOException {
        List<String> others = metaClient
                .getActiveTimeline()
                .getCommitsTimeline()
                .filterCompletedInstants()
                .getInstantsAsStream()
                .filter(i ->
                        i.getCompletionTime() != null && i.getCompletionTime().compareTo(mine) > 0)
                .map(HoodieInstant::requestedTime)
                .filter(other -> done.add(mine + "/" + other))
                .collect(Collectors.toList());
        HoodieCommitMetadata files = others.isEmpty() ? new HoodieCommitMetadata() : newFiles(metaClient, mine);
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

    /**
     * What the markers of a pending write tell, in the form of the metadata of its later commit.
     */
    private static HoodieCommitMetadata newFiles(HoodieTableMetaClient metaClient, String instant) throws IOException {
        HoodieCommitMetadata files = new HoodieCommitMetadata();
        files.setOperationType(WriteOperationType.UPSERT);
        StoragePath folder = new StoragePath(metaClient.getMarkerFolderPath(instant));
        try {
            for (StoragePathInfo marker : metaClient.getStorage().listFiles(folder)) {
                String path = marker.getPath().toString();
                if (path.endsWith(NEW_FILE)) {
                    files.addWriteStat(
                            "",
                            stat(path.substring(
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

    private static HoodieWriteStat stat(String path) {
        HoodieWriteStat stat = new HoodieWriteStat();
        stat.setPath(path);
        stat.setPartitionPath(path.contains("/") ? path.substring(0, path.lastIndexOf('/')) : "");
        stat.setFileId(path.substring(path.lastIndexOf('/') + 1));
        stat.setPrevCommit(HoodieWriteStat.NULL_COMMIT);
        stat.setNumWrites(MANY);
        return stat;
    }
}
