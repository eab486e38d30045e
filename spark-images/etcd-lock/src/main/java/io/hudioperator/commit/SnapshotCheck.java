package io.hudioperator.commit;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.session.Session;
import io.hudioperator.session.TableReads;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieReplaceCommitMetadata;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.table.timeline.TimelineUtils;
import org.apache.hudi.exception.HoodieWriteConflictException;

/**
 * Compares a commit that was made from rows of its own table with everything that completed since
 * those rows were read. Hudi compares only with what completed since the write began; it would
 * silently overwrite what another writer committed between the read and that moment (lost update).
 * As in {@link CommitChecks}, the timeline was listed under the lock.
 */
public final class SnapshotCheck {
    /** Completion time up to which the rows that were read contain all commits. */
    static final String BASE = "hoodie.write.lock.etcd.snapshot_base";
    /**
     * Requested time. An instant that completes after the base was requested at this time or later.
     */
    static final String FLOOR = "hoodie.write.lock.etcd.snapshot_floor";
    /**
     * Name of the read that a write is based on, for programs that read in one thread and write in
     * another.
     */
    static final String READ = "hoodie.write.lock.etcd.snapshot_read";
    /** An {@link Isolation}. */
    static final String ISOLATION = "hoodie.write.lock.etcd.snapshot_isolation";

    /** Scope of the comparison of a commit. */
    enum Isolation {
        /**
         * The file groups that were written, and the partitions from which records were removed: a
         * record that was read may be gone, and writing it again would put it into another file
         * group. In the non-blocking mode, where these are not known under the lock, the whole
         * table.
         */
        SNAPSHOT,
        /** The whole table. */
        SERIALIZABLE
    }

    /** Advice for a program: a query of the write does not replace rows that were read before. */
    private static final String AGAIN =
            "; read the rows again and write what is made from them: with collect(), first() or"
                    + " another action outside of the write, or with read_table() and commit_metadata() for each write";

    private static final Set<WriteOperationType> SERVICES = Set.of(
            WriteOperationType.COMPACT,
            WriteOperationType.LOG_COMPACT,
            WriteOperationType.CLUSTER,
            WriteOperationType.INDEX);

    private SnapshotCheck() {}

    static Isolation isolation(TypedProperties props) {
        return Isolation.valueOf(
                props.getString(ISOLATION, Isolation.SNAPSHOT.name()).toUpperCase(Locale.ROOT));
    }

    /**
     * A completed write that this one does not know, and the partitions from which that write
     * removed records or whole file groups.
     */
    public static final class Moved {
        public final HoodieInstant instant;
        public final Set<String> removedIn;

        private Moved(HoodieInstant instant, Set<String> removedIn) {
            this.instant = instant;
            this.removedIn = removedIn;
        }
    }

    /**
     * Returns the writes that completed since the rows were read from which the instant was made,
     * without those that the instant's write already knows ({@link TableReads}). Empty when nothing
     * was read.
     *
     * @throws HoodieWriteConflictException when this can no longer be determined, or when the
     *     isolation is SERIALIZABLE and one of these writes changed rows
     */
    public static List<Moved> since(
            HoodieTableMetaClient metaClient, TypedProperties props, Session session, String instant) {
        return since(metaClient, props, session, session.reads().write(instant), false);
    }

    /**
     * Whether {@link #since} is going to name this write, as far as is known without reading it.
     */
    static boolean mayName(TypedProperties props, Session session, String instant, HoodieInstant completed) {
        TableReads.Write write = session.reads().write(instant);
        TableReads.Base base = base(props, session, write, false);
        return base != null && base.lacks(completed) && !session.reads().knows(write, completed.requestedTime());
    }

    private static List<Moved> since(
            HoodieTableMetaClient metaClient,
            TypedProperties props,
            Session session,
            TableReads.Write write,
            boolean nonBlocking) {
        write.madeFrom(props.getString(READ, ""));
        TableReads.Base base = base(props, session, write, nonBlocking);
        if (base == null) {
            return List.of();
        }
        requireNotArchived(metaClient, base);
        List<Moved> found = new ArrayList<>();
        for (HoodieInstant completed : completed(metaClient)) {
            if (base.lacks(completed) && !session.reads().knows(write, completed.requestedTime())) {
                HoodieCommitMetadata metadata = read(metaClient, completed);
                requireUnmoved(props, completed, metadata, base.completion);
                found.add(new Moved(completed, removedIn(metadata)));
            }
        }
        return found;
    }

    /**
     * The base from the write's options, and those of the rows themselves, which a program may have
     * made before the read that the options name (F369), and of what its thread has read besides
     * (F422); otherwise from what its thread has read. An agent's reads do not count: it reads for
     * other purposes. In the non-blocking mode neither do the versions that a delete has found: it
     * deletes the record that it names, and a later version has its own place in their order.
     */
    private static TableReads.Base base(
            TypedProperties props, Session session, TableReads.Write write, boolean nonBlocking) {
        String base = props.getString(BASE, "");
        TableReads.Base found = nonBlocking ? null : write.found;
        if (base.isEmpty()) {
            return session.isWriter() ? TableReads.Base.both(write.base, found) : null;
        }
        TableReads.Base own = TableReads.Base.both(write.own, found);
        return new TableReads.Base(base, props.getString(FLOOR, ""), Set.of()).and(own);
    }

    /**
     * The checks under the lock where Hudi does not check for conflicts.
     *
     * @param begun the instants that this cycle may complete: what its write client has begun.
     *     None in the cycle in which that client begins its write, whatever other clients of this
     *     process have left pending (F378)
     */
    public static void inNonBlockingMode(
            HoodieTableMetaClient metaClient, TypedProperties props, Session session, Set<String> begun) {
        TypedProperties all = TypedProperties.copy(props);
        all.setProperty(ISOLATION, Isolation.SERIALIZABLE.name());
        if (begun.isEmpty() && props.containsKey(BASE)) {
            since(metaClient, all, session, session.reads().write(""), true);
        }
        for (String instant : begun) {
            since(metaClient, all, session, session.reads().write(instant), true);
        }
    }

    private static Set<String> removedIn(HoodieCommitMetadata metadata) {
        Set<String> partitions = new HashSet<>();
        if (!SERVICES.contains(metadata.getOperationType())) {
            metadata.getWriteStats().stream()
                    .filter(s -> s.getNumDeletes() > 0)
                    .map(HoodieWriteStat::getPartitionPath)
                    .forEach(partitions::add);
            partitions.addAll(replaced(metadata));
        }
        return partitions;
    }

    private static Set<String> replaced(HoodieCommitMetadata metadata) {
        return metadata instanceof HoodieReplaceCommitMetadata
                ? ((HoodieReplaceCommitMetadata) metadata)
                        .getPartitionToReplaceFileIds()
                        .keySet()
                : Set.of();
    }

    private static List<HoodieInstant> completed(HoodieTableMetaClient metaClient) {
        return metaClient
                .getActiveTimeline()
                .getCommitsTimeline()
                .filterCompletedInstants()
                .getInstants();
    }

    /**
     * Ensures that no instant that completed since the read has left the active timeline: "unknown"
     * does not mean "unmoved" (I11).
     */
    private static void requireNotArchived(HoodieTableMetaClient metaClient, TableReads.Base base) {
        HoodieTimeline commits = metaClient.getActiveTimeline().getCommitsTimeline();
        String earliest = commits.getInstantsAsStream()
                .map(HoodieInstant::requestedTime)
                .min(String::compareTo)
                .orElse("");
        boolean archived = earliest.compareTo(base.floor) > 0
                && !metaClient.getArchivedTimeline().empty();
        if (archived) {
            throw conflict("commits were archived since the rows of the table were read, at " + base.completion);
        }
    }

    private static void requireUnmoved(
            TypedProperties props, HoodieInstant instant, HoodieCommitMetadata metadata, String base) {
        if (isolation(props) != Isolation.SERIALIZABLE || SERVICES.contains(metadata.getOperationType())) {
            return;
        }
        if (!metadata.getWriteStats().isEmpty() || !replaced(metadata).isEmpty()) {
            throw conflict("instant " + instant.requestedTime() + " (completed " + instant.getCompletionTime()
                    + ") was committed after the rows of the table were read, at " + base);
        }
    }

    private static HoodieWriteConflictException conflict(String detail) {
        return new HoodieWriteConflictException(ErrorCode.SNAPSHOT_MOVED.message(detail + AGAIN));
    }

    private static HoodieCommitMetadata read(HoodieTableMetaClient metaClient, HoodieInstant completed) {
        try {
            return TimelineUtils.getCommitMetadata(completed, metaClient.getActiveTimeline());
        } catch (IOException e) { // unknown is not "unmoved" (I11)
            throw ErrorCode.SNAPSHOT_MOVED.exception(
                    "cannot read the metadata of instant " + completed.requestedTime(), e);
        }
    }
}
