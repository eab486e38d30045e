package io.hudioperator.commit;

import io.hudioperator.protocol.HeldLock;
import io.hudioperator.protocol.InsertRule;
import io.hudioperator.session.Session;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.TimeUnit;
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
import org.apache.hudi.common.table.timeline.TimelineUtils;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.StoragePathInfo;

/**
 * Compares keys while the lock is not held, so that under the lock only commits from the meantime
 * remain to be compared, and of these only such as take no time. An optimization only: the one fact
 * that is kept is that a new file and a completed write have no inserted key in common, or that a
 * compaction removes no key of a new log file, and none of them changes. {@link InsertConflicts}
 * and {@link CompactedAway} compare everything else under the lock. The markers of a pending write
 * tell which files it has created.
 */
public final class KeysAhead implements AutoCloseable {
    /**
     * Number of times that a writer gives the lock back for one commit. After that it compares
     * under the lock, so that others cannot keep it from its commit.
     */
    public static final int RETURNS = 3;

    private static final int ROUNDS = 3; // others may commit while keys are read
    private static final long PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(50); // under the lock
    private static final Pattern BASE = Pattern.compile("\\.parquet\\.marker\\.(CREATE|MERGE)$");
    private static final Pattern LOG = Pattern.compile("\\.log\\.[^/]*\\.marker\\.(CREATE|APPEND)$");
    private static final String MARKER = ".marker.";
    private static final String MERGED = ".marker.MERGE";
    // Schemes of stores in which nobody sees a part of a file. A part of a log file can be read,
    // and lacks keys.
    private static final Set<String> WHOLE = Set.of("s3a", "gs");
    // assumed for a file with an unknown number of keys: too many to ask a Bloom filter for each
    private static final long MANY = 1_000_000;

    /**
     * A meta client for the next look of each session: the files besides the timeline that a new
     * one would read do not change while a writer is registered. Nobody else has it meanwhile, and
     * each look lists the timeline for itself.
     */
    private static final Map<Session, HoodieTableMetaClient> SPARE = Collections.synchronizedMap(new WeakHashMap<>());

    private final Session session;
    private final TypedProperties props;
    private final StorageConfiguration<?> conf;
    private final long patience;
    private final Set<String> whole;
    private final Set<String> done = new HashSet<>();
    private final Map<String, HoodieCommitMetadata> files = new HashMap<>();
    private HoodieTableMetaClient own; // of the last look, if there was one
    private HoodieTableMetaClient metaClient; // null: nothing is compared ahead
    private String clock;

    public KeysAhead(Session session, TypedProperties props, StorageConfiguration<?> conf) {
        this(session, props, conf, PATIENCE_NANOS);
    }

    /** @param patience how long {@link #remain} compares, in nanoseconds */
    KeysAhead(Session session, TypedProperties props, StorageConfiguration<?> conf, long patience) {
        this(session, props, conf, patience, WHOLE);
    }

    /** @param whole schemes of stores in which nobody sees a part of a file */
    KeysAhead(Session session, TypedProperties props, StorageConfiguration<?> conf, long patience, Set<String> whole) {
        this.session = session;
        this.props = props;
        this.conf = conf;
        this.patience = patience;
        this.whole = whole;
    }

    /**
     * Called while the lock is not held, before each acquire. Does nothing unless this session has
     * a pending write and other writers have committed since it began. Never throws.
     */
    public void look() {
        boolean looksUp = session.isWriter() && !"BUCKET".equals(props.getString("hoodie.index.type", ""));
        metaClient = null;
        files.clear();
        if (!looksUp || session.instants().pending().isEmpty()) {
            return;
        }
        try {
            boolean found = true;
            for (int round = 0; round < ROUNDS && found; round++) {
                clock = session.clockWhileFree(); // before the timeline is read
                HoodieTableMetaClient read = listed();
                metaClient = comparesKeys() || comparesLogs(read) ? read : null;
                found = metaClient != null && compareAll(Long.MAX_VALUE);
            }
        } catch (IOException | RuntimeException e) {
            metaClient = null;
            own = null; // its file system may have been closed by the program
            System.err.println("keys are compared under the lock only: " + e);
        }
    }

    /**
     * Called under the lock: whether writes have completed since the last {@link #look} that cannot
     * be compared quickly, and should be without the lock. Those that can be are compared. Never
     * throws an exception: whatever is not known is compared by the conflict strategy.
     */
    public boolean remain() {
        HeldLock lock = session.heldNow();
        if (metaClient == null || lock == null || lock.clock().equals(clock)) {
            return false;
        }
        try {
            metaClient.reloadActiveTimeline();
            compareAll(patience);
            return false;
        } catch (InsertConflicts.OutOfTime e) {
            return true;
        } catch (IOException | RuntimeException e) {
            own = null;
            System.err.println("keys are compared by the conflict strategy: " + e);
            return false;
        }
    }

    /** A client whose timeline was listed now. */
    private HoodieTableMetaClient listed() {
        own = own == null ? SPARE.remove(session) : own;
        if (own == null) {
            own = HoodieTableMetaClient.builder()
                    .setConf(conf.newInstance())
                    .setBasePath(session.basePath())
                    .build();
        }
        own.reloadActiveTimeline();
        return own;
    }

    /** Keeps what the next look can use. Nothing is compared from then on. */
    @Override
    public void close() {
        metaClient = null;
        if (own != null) {
            SPARE.put(session, own);
            own = null;
        }
    }

    private boolean comparesKeys() {
        return session.insertRule() == InsertRule.KEY;
    }

    private boolean comparesLogs(HoodieTableMetaClient metaClient) {
        return metaClient.getTableType() == HoodieTableType.MERGE_ON_READ
                && whole.contains(metaClient.getStorage().getScheme());
    }

    /** Returns whether there was anything that had not been compared. */
    private boolean compareAll(long nanos) throws IOException {
        boolean found = false;
        for (String mine : session.instants().pending()) {
            found |= comparesKeys() && compare(mine, nanos);
            found |= comparesLogs(metaClient) && compareLogs(mine, nanos);
        }
        return found;
    }

    private Stream<HoodieInstant> completedSince(String requested) {
        return metaClient
                .getActiveTimeline()
                .getCommitsTimeline()
                .filterCompletedInstants()
                .getInstantsAsStream()
                .filter(i -> i.getCompletionTime() != null)
                .filter(i -> i.getCompletionTime().compareTo(requested) > 0
                        || SnapshotCheck.mayName(props, session, requested, i));
    }

    private boolean compare(String mine, long nanos) throws IOException {
        List<String> others = completedSince(mine)
                .map(HoodieInstant::requestedTime)
                .filter(other -> !done.contains(mine + "/" + other))
                .collect(Collectors.toList());
        InsertConflicts inserts = new InsertConflicts(InsertRule.KEY, false, metaClient, nanos);
        HoodieCommitMetadata bases =
                others.isEmpty() ? new HoodieCommitMetadata() : created(mine, BASE, KeysAhead::stat);
        for (String other : others) {
            if (inserts.between(bases, other).isEmpty()) {
                bases.getWriteStats()
                        .forEach(s -> KnownApart.add(new StoragePath(metaClient.getBasePath(), s.getPath()), other));
            }
            done.add(mine + "/" + other);
        }
        return !others.isEmpty();
    }

    /** Log files of a pending write, and compactions, pending or completed since it began. */
    private boolean compareLogs(String mine, long nanos) throws IOException {
        List<HoodieInstant> others = Stream.concat(
                        CompactedAway.pending(metaClient).stream(),
                        completedSince(mine).filter(i -> HoodieTimeline.COMMIT_ACTION.equals(i.getAction())))
                .filter(other -> !done.contains(mine + "/logs/" + other.requestedTime()))
                .collect(Collectors.toList());
        HoodieCommitMetadata logs =
                others.isEmpty() ? new HoodieCommitMetadata() : created(mine, LOG, KeysAhead::logStat);
        if (nanos < Long.MAX_VALUE && !logs.getWriteStats().isEmpty()) {
            throw new InsertConflicts.OutOfTime(); // whole log files would be read
        }
        for (HoodieInstant other : others) {
            ConcurrentOperation compaction = new ConcurrentOperation(other, metaClient);
            boolean compared =
                    !logs.getWriteStats().isEmpty() && compaction.getOperationType() == WriteOperationType.COMPACT;
            if (!compared
                    || new CompactedAway(metaClient).between(logs, compaction).isEmpty()) {
                logs.getWriteStats()
                        .forEach(s -> KnownApart.add(
                                new StoragePath(metaClient.getBasePath(), s.getPath()), other.requestedTime()));
            }
            done.add(mine + "/logs/" + other.requestedTime());
        }
        return !others.isEmpty();
    }

    /**
     * Metadata of the later commit of a pending write, for its files of one kind, made from its
     * markers.
     */
    private HoodieCommitMetadata created(String instant, Pattern kind, Function<String, HoodieWriteStat> stat)
            throws IOException {
        HoodieCommitMetadata known = files.get(kind + instant);
        if (known == null) {
            known = read(instant, kind, stat);
            files.put(kind + instant, known);
        }
        return known;
    }

    private HoodieCommitMetadata read(String instant, Pattern kind, Function<String, HoodieWriteStat> stat)
            throws IOException {
        HoodieCommitMetadata found = new HoodieCommitMetadata();
        found.setOperationType(WriteOperationType.UPSERT);
        StoragePath folder = new StoragePath(metaClient.getMarkerFolderPath(instant));
        Set<String> packed = null;
        try {
            for (StoragePathInfo marker : metaClient.getStorage().listFiles(folder)) {
                String path = marker.getPath().toString();
                if (!kind.matcher(path).find()) {
                    continue;
                }
                if (path.endsWith(MERGED)) {
                    packed = packed == null ? packed(instant) : packed;
                    if (!packed.contains(FSUtils.getFileId(marker.getPath().getName()))) {
                        continue; // rows of a known file group were changed
                    }
                }
                found.addWriteStat(
                        "",
                        stat.apply(path.substring(
                                path.indexOf(folder.getName() + "/")
                                        + folder.getName().length()
                                        + 1,
                                path.lastIndexOf(MARKER))));
            }
        } catch (FileNotFoundException e) { // nothing has been written yet
            return new HoodieCommitMetadata();
        }
        return found;
    }

    /** File groups that the write has found, and into which it packs new keys, by its plan. */
    private Set<String> packed(String instant) throws IOException {
        HoodieTimeline timeline = metaClient.getActiveTimeline();
        HoodieInstant inflight = timeline.filterInflights()
                .getInstantsAsStream()
                .filter(i -> i.requestedTime().equals(instant))
                .findFirst()
                .orElse(null);
        return inflight == null
                ? Set.of()
                : TimelineUtils.getCommitMetadata(inflight, timeline).getWriteStats().stream()
                        .filter(s -> s.getNumInserts() > 0)
                        .map(HoodieWriteStat::getFileId)
                        .collect(Collectors.toSet());
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
