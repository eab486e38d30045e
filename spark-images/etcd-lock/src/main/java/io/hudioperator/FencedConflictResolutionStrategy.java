package io.hudioperator;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.hudioperator.commit.ColumnsOfPrograms;
import io.hudioperator.commit.CommitChecks;
import io.hudioperator.commit.CompactedAway;
import io.hudioperator.commit.InsertConflicts;
import io.hudioperator.commit.SnapshotCheck;
import io.hudioperator.commit.WriteOptions;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.Json;
import io.hudioperator.etcd.Pause;
import io.hudioperator.protocol.HeldLock;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import java.util.ConcurrentModificationException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hudi.client.transaction.ConcurrentOperation;
import org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieReplaceCommitMetadata;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieWriteConflictException;
import org.apache.hudi.index.HoodieIndex;
import org.apache.hudi.table.HoodieTable;

/**
 * Hudi calls this under the lock, on every commit, with the instant and the write configuration. It
 * refuses a commit whose storage wrapper, lock or options are not ours, or whose progress, table
 * schema or source rows have moved. Hudi's PreferWriter rules decide about conflicts. Ingestion
 * takes precedence over table services: an agent's replacement must not make a write fail that has
 * already begun.
 */
public final class FencedConflictResolutionStrategy extends PreferWriterConflictResolutionStrategy {
    private static final int MAX_FILE_GROUPS = 5;
    private static final int BUCKET_DIGITS = 8;
    // below the smallest maxHoldSeconds, after which the lock's owner is fenced
    private static final long PATIENCE_MILLIS = 5_000;
    private static final long LOOK_MILLIS = 100;
    private static final String DELTA_COMMIT = "deltacommit";

    private static final Set<String> WRITES = Set.of(
            HoodieTimeline.COMMIT_ACTION, HoodieTimeline.DELTA_COMMIT_ACTION, HoodieTimeline.REPLACE_COMMIT_ACTION);

    /** Operations that remove everything that they find in a partition, or in the table. */
    private static final Set<WriteOperationType> REPLACING = Set.of(
            WriteOperationType.DELETE_PARTITION,
            WriteOperationType.INSERT_OVERWRITE,
            WriteOperationType.INSERT_OVERWRITE_TABLE);

    private Session session;
    private boolean yields;
    private Set<String> ahead = Set.of();
    private boolean buckets;
    private Map<String, Set<String>> removedSinceRead = Map.of();
    private InsertConflicts inserts;
    private final Map<String, Set<String>> sameKeys = new HashMap<>();
    private CompactedAway compactedAway;
    private final Map<String, Set<String>> removedKeys = new HashMap<>();

    @Override
    public Stream<HoodieInstant> getCandidateInstants(
            HoodieTableMetaClient metaClient,
            HoodieInstant current,
            Option<HoodieInstant> lastSuccessful,
            Option<HoodieWriteConfig> writeConfig) {
        String base = metaClient.getBasePath().toString();
        CommitChecks.requireGuard(metaClient, base, GuardedFileSystem.class);
        session = OpenSessions.byPath(base);
        HeldLock lock = session == null ? null : session.heldNow();
        if (lock == null || !lock.isHere()) {
            throw ErrorCode.NOT_OWNER.exception(
                    "the lock of " + base + " is not held at the commit of " + current.requestedTime());
        }
        metaClient.reloadActiveTimeline(); // Hudi may have listed it before the lock; see CommitChecks
        if (writeConfig.isPresent()) {
            buckets = countsBuckets(writeConfig.get());
            boolean looksUp = session.isWriter() && writeConfig.get().getIndexType() != HoodieIndex.IndexType.BUCKET;
            compactedAway = looksUp ? new CompactedAway(metaClient) : null;
            CommitChecks.requireOptions(writeConfig.get(), EtcdLockProvider.class);
            TypedProperties props = writeConfig.get().getProps();
            WriteOptions.requireMetadataTable(metaClient, props);
            WriteOptions.require(session, props, metaClient::getTableConfig);
            CommitChecks.requireComputedOnce(props);
            CommitChecks.requireProgress(metaClient, props, session.inc(), "instant " + current.requestedTime());
            String begun = lastSuccessful.isPresent() ? lastSuccessful.get().getCompletionTime() : "";
            String schema = writeConfig.get().getWriteSchema();
            CommitChecks.requireSchema(metaClient, props, schema, begun);
            if (session.isWriter()) {
                ColumnsOfPrograms.require(metaClient, props, schema, current.requestedTime(), begun);
            }
        }
        List<SnapshotCheck.Moved> moved = writeConfig.isPresent()
                ? SnapshotCheck.since(metaClient, writeConfig.get().getProps(), session, current.requestedTime())
                : List.of();
        removedSinceRead = moved.stream().collect(Collectors.toMap(m -> m.instant.requestedTime(), m -> m.removedIn));
        inserts = new InsertConflicts(session.conflictsChecked(current.requestedTime()), buckets, metaClient);
        yields = !session.isWriter() && !HoodieTimeline.COMPACTION_ACTION.equals(current.getAction());
        if (yields) {
            awaitWritePlans(metaClient, current, PATIENCE_MILLIS);
        }
        Stream<HoodieInstant> candidates = Stream.concat(
                        moved.stream().map(m -> m.instant),
                        super.getCandidateInstants(metaClient, current, lastSuccessful, writeConfig))
                .distinct();
        if (yields) {
            return Stream.concat(candidates, pendingWrites(metaClient, current)).distinct();
        }
        if (compactedAway != null && DELTA_COMMIT.equals(current.getAction())) {
            candidates = Stream.concat(candidates, CompactedAway.pending(metaClient).stream());
        }
        ahead = session.pendingAhead();
        return ahead.isEmpty()
                ? candidates
                : Stream.concat(candidates, saidWhatTheyChange(metaClient)).distinct();
    }

    /**
     * Pending writes of higher priority that have already declared which file groups they change.
     */
    private Stream<HoodieInstant> saidWhatTheyChange(HoodieTableMetaClient metaClient) {
        return metaClient
                .getActiveTimeline()
                .getTimelineOfActions(WRITES)
                .filterInflights()
                .getInstantsAsStream()
                .filter(i -> ahead.contains(i.requestedTime()));
    }

    /**
     * Waits until every write that has begun has declared which file groups it changes, at most
     * {@code millis}. Writes begin under the lock, which this process holds, so the number of
     * undeclared writes only falls. Without the wait a table service would lose to writers that do
     * not touch the files that it replaces: writers wait for its plan and all begin as soon as it
     * is made.
     */
    static void awaitWritePlans(HoodieTableMetaClient metaClient, HoodieInstant current, long millis) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        metaClient.reloadActiveTimeline();
        while (pendingWrites(metaClient, current).anyMatch(HoodieInstant::isRequested) && System.nanoTime() < end) {
            Pause.millis(LOOK_MILLIS);
            metaClient.reloadActiveTimeline();
        }
    }

    /**
     * Pending writes of others, whether or not they have declared which file groups they change.
     */
    private static Stream<HoodieInstant> pendingWrites(HoodieTableMetaClient metaClient, HoodieInstant current) {
        return metaClient
                .getActiveTimeline()
                .getTimelineOfActions(WRITES)
                .filterInflightsAndRequested()
                .getInstantsAsStream()
                .filter(i -> !i.requestedTime().equals(current.requestedTime()));
    }

    /**
     * A compaction that completed while a delta commit was written is no conflict: the log files of
     * the commit belong to the file slice that is valid at its completion time, whether the
     * compaction ends before or after it (Hudi itself accepts the second case). Keys that the
     * compaction removes are the exception ({@link CompactedAway}). If the commit also wrote a base
     * file into that file group, it conflicts with the delta commit whose log files made the
     * compaction worthwhile.
     *
     * <p>With a bucket index, two commits that each create the first file of a bucket also conflict
     * (see {@link #countsBuckets}). With other indexes, two commits that insert the same key
     * conflict.
     */
    @Override
    public boolean hasConflict(ConcurrentOperation mine, ConcurrentOperation other) {
        return wroteTheSame(mine, other)
                || !sameKeys(mine, other).isEmpty()
                || !removedKeys(mine, other).isEmpty();
    }

    /** File groups into whose log the commit has written keys that a compaction removes (F324). */
    private Set<String> removedKeys(ConcurrentOperation mine, ConcurrentOperation other) {
        HoodieCommitMetadata metadata = mine.getCommitMetadataOption().orElse(null);
        boolean compared = compactedAway != null && metadata != null && isCompaction(mine, other);
        return compared
                ? removedKeys.computeIfAbsent(
                        other.getInstantTimestamp(), time -> compactedAway.between(metadata, other))
                : Set.of();
    }

    /** Whether the other operation is a compaction and this one a delta commit. */
    private static boolean isCompaction(ConcurrentOperation mine, ConcurrentOperation other) {
        return other.getOperationType() == WriteOperationType.COMPACT
                && DELTA_COMMIT.equals(mine.getInstantActionType());
    }

    private boolean wroteTheSame(ConcurrentOperation mine, ConcurrentOperation other) {
        if (yields && HoodieInstant.State.REQUESTED.name().equals(other.getInstantActionState())) {
            return true; // the write may change file groups that the table service replaces, and would then fail
        }
        if (removedWhatWasRead(mine, other)) {
            return true;
        }
        return !isCompaction(mine, other)
                && (super.hasConflict(mine, other)
                        || (buckets && !sharedBuckets(mine, other).isEmpty())
                        || !writtenAndReplaced(mine, other).isEmpty()
                        || !aboutToBeReplaced(mine, other).isEmpty());
    }

    /**
     * Partitions that this operation has written to and a pending overwriting insert replaces.
     * Before it begins to write, such an insert names the partitions of its rows, without file
     * groups (F491). The operation of an instant that is only requested is not known.
     */
    private static Set<String> aboutToBeReplaced(ConcurrentOperation mine, ConcurrentOperation other) {
        boolean completed = HoodieInstant.State.COMPLETED.name().equals(other.getInstantActionState());
        return completed || other.getOperationType() == null ? Set.of() : writtenAndReplaced(other, mine);
    }

    /**
     * File groups into which both commits have inserted the same key (I13). With most indexes, two
     * writers that insert the same new key each put it into a separate file group.
     */
    private Set<String> sameKeys(ConcurrentOperation mine, ConcurrentOperation other) {
        HoodieCommitMetadata metadata = mine.getCommitMetadataOption().orElse(null);
        boolean completed = HoodieInstant.State.COMPLETED.name().equals(other.getInstantActionState());
        boolean compared = inserts != null && metadata != null && completed;
        return compared
                ? sameKeys.computeIfAbsent(other.getInstantTimestamp(), time -> inserts.between(metadata, time))
                : Set.of();
    }

    /**
     * Partitions that this operation replaces and the other has written to. Hudi compares only file
     * groups: those that were written, and those that an overwriting insert found when it began.
     * Without this check a deletion would remove what was committed to the partition meanwhile
     * (lost update), and an overwritten partition would have the rows of both.
     */
    private static Set<String> writtenAndReplaced(ConcurrentOperation mine, ConcurrentOperation other) {
        boolean service = other.getOperationType() == WriteOperationType.COMPACT;
        if (service || !REPLACING.contains(mine.getOperationType())) {
            return Set.of();
        }
        Set<String> written = partitions(other);
        if (mine.getOperationType() != WriteOperationType.INSERT_OVERWRITE_TABLE) {
            Set<String> replaced = partitions(mine);
            HoodieCommitMetadata metadata = mine.getCommitMetadataOption().orElse(null);
            if (metadata instanceof HoodieReplaceCommitMetadata) {
                replaced.addAll(((HoodieReplaceCommitMetadata) metadata)
                        .getPartitionToReplaceFileIds()
                        .keySet());
            }
            written.retainAll(replaced);
        }
        return written;
    }

    private static Set<String> partitions(ConcurrentOperation operation) {
        return operation.getMutatedPartitionAndFileIds().stream()
                .map(Pair::getLeft)
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private boolean removedWhatWasRead(ConcurrentOperation mine, ConcurrentOperation other) {
        Set<String> partitions = removedSinceRead.getOrDefault(other.getInstantTimestamp(), Set.of());
        return mine.getMutatedPartitionAndFileIds().stream().anyMatch(group -> partitions.contains(group.getLeft()));
    }

    @Override
    public Option<HoodieCommitMetadata> resolveConflict(
            HoodieTable table, ConcurrentOperation mine, ConcurrentOperation other) {
        Set<String> removed = removedKeys(mine, other);
        if (!removed.isEmpty()) { // Hudi itself lets every compaction pass
            if (session != null) {
                session.conflict(
                        json(mine, other, removed).put("yielded", false).toString());
            }
            throw new HoodieWriteConflictException(
                    "Write conflict: instant " + mine.getInstantTimestamp() + " wrote record keys that the compaction "
                            + other.getInstantTimestamp() + " (" + other.getInstantActionState() + ") removes from "
                            + String.join(", ", removed) + ": they are inserted when it is completed",
                    new ConcurrentModificationException("a compaction removes what was written"));
        }
        try {
            return super.resolveConflict(table, mine, other);
        } catch (HoodieWriteConflictException e) {
            boolean inserted = !sameKeys.getOrDefault(other.getInstantTimestamp(), Set.of())
                    .isEmpty();
            Set<String> shared = inserted ? sameKeys.get(other.getInstantTimestamp()) : sharedFileGroups(mine, other);
            if (session != null) {
                session.conflict(
                        json(mine, other, shared).put("yielded", yielded(other)).toString());
            }
            throw new HoodieWriteConflictException(
                    "Write conflict: instant " + mine.getInstantTimestamp() + " and " + other.getInstantTimestamp()
                            + " (" + other.getInstantActionType() + ", " + other.getInstantActionState()
                            + (yielded(other) ? ", of higher priority" : "") + ") "
                            + (inserted ? "inserted the same record keys: " : "changed the same file groups: ")
                            + (shared.isEmpty() ? "unknown" : String.join(", ", shared)),
                    e);
        }
    }

    /**
     * Whether file groups of one partition are the same bucket when their names begin with the same
     * eight digits. Hudi names the file group of a bucket by the bucket's number followed by random
     * characters. Two writers that each create the first file of a bucket therefore create two file
     * groups with different names, and the next writer that looks up the bucket finds both and
     * fails. Hudi's own strategy for this index therefore compares bucket numbers (HUDI-5682); ours
     * extends a different strategy. With every other index, including consistent hashing of
     * buckets, the first characters mean nothing, and Hudi compares file groups by their full name.
     */
    private static boolean countsBuckets(HoodieWriteConfig config) {
        return config.getIndexType() == HoodieIndex.IndexType.BUCKET
                && config.getBucketIndexEngineType() == HoodieIndex.BucketIndexEngineType.SIMPLE;
    }

    /** Pairs of partition and bucket number. */
    private static Set<Pair<String, String>> buckets(ConcurrentOperation operation) {
        return operation.getMutatedPartitionAndFileIds().stream()
                // a commit that only replaces has entries without a file group id
                .filter(p -> p.getRight().length() > BUCKET_DIGITS)
                .map(p -> Pair.of(p.getLeft(), p.getRight().substring(0, BUCKET_DIGITS)))
                .collect(Collectors.toSet());
    }

    private static Set<Pair<String, String>> sharedBuckets(ConcurrentOperation mine, ConcurrentOperation other) {
        Set<Pair<String, String>> both = buckets(mine);
        both.retainAll(buckets(other));
        return both;
    }

    private Set<String> sharedFileGroups(ConcurrentOperation mine, ConcurrentOperation other) {
        Set<Pair<String, String>> both = new HashSet<>(mine.getMutatedPartitionAndFileIds());
        both.retainAll(other.getMutatedPartitionAndFileIds());
        if (both.isEmpty() && buckets) {
            both = sharedBuckets(mine, other);
        }
        Set<String> names = new TreeSet<>();
        both.forEach(p -> names.add(p.getLeft().isEmpty() ? p.getRight() : p.getLeft() + "/" + p.getRight()));
        if (names.isEmpty()) {
            Stream.of(writtenAndReplaced(mine, other), aboutToBeReplaced(mine, other))
                    .flatMap(Set::stream)
                    .forEach(p -> names.add(p.isEmpty() ? "*" : p + "/*"));
        }
        Set<String> first = new TreeSet<>();
        names.stream().limit(MAX_FILE_GROUPS).forEach(first::add);
        return first;
    }

    /** The other write is not completed: this commit yields only because of its priority. */
    private boolean yielded(ConcurrentOperation other) {
        return ahead.contains(other.getInstantTimestamp())
                && HoodieInstant.State.INFLIGHT.name().equals(other.getInstantActionState());
    }

    private static ObjectNode json(ConcurrentOperation mine, ConcurrentOperation other, Set<String> shared) {
        ObjectNode json =
                Json.object().put("instant", mine.getInstantTimestamp()).put("with", other.getInstantTimestamp());
        ArrayNode groups = json.putArray("fileGroups");
        shared.forEach(groups::add);
        return json.put("atMs", System.currentTimeMillis());
    }
}
