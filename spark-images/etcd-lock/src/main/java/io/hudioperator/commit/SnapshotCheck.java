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
 * A commit that was made from rows of its own table is compared with everything that completed since those rows were read. Hudi compares
 * with what completed since the write began: what another writer committed between the read and that moment would be overwritten without a
 * word (lost update).
 */
public final class SnapshotCheck {
  /** Completion time up to which commits were in the rows that were read. */
  static final String BASE = "hoodie.write.lock.etcd.snapshot_base";
  /** Requested time; what completes after the base was requested then or later. */
  static final String FLOOR = "hoodie.write.lock.etcd.snapshot_floor";
  /** Name of the read that a write is made from, for programs that read in one thread and write in others. */
  static final String READ = "hoodie.write.lock.etcd.snapshot_read";
  /** {@link Isolation}. */
  static final String ISOLATION = "hoodie.write.lock.etcd.snapshot_isolation";

  /** With what a commit is compared. */
  enum Isolation {
    /** As SNAPSHOT, but nothing in the non-blocking mode: a frame that somebody made from rows of the table, for whatever reason. */
    FRAME,
    /**
     * File groups, and partitions from which records were removed: one that was read may be gone, and would get another file group. In the
     * non-blocking mode, where they are not known under the lock, the whole table.
     */
    SNAPSHOT,
    /** The whole table. */
    SERIALIZABLE
  }

  private static final Set<WriteOperationType> SERVICES =
      Set.of(WriteOperationType.COMPACT, WriteOperationType.LOG_COMPACT, WriteOperationType.CLUSTER, WriteOperationType.INDEX);

  private SnapshotCheck() {}

  static Isolation isolation(TypedProperties props) {
    return Isolation.valueOf(props.getString(ISOLATION, Isolation.SNAPSHOT.name()).toUpperCase(Locale.ROOT));
  }

  /** A completed write that this one does not know, and the partitions from which it has removed records or whole file groups. */
  public static final class Moved {
    public final HoodieInstant instant;
    public final Set<String> removedIn;

    private Moved(HoodieInstant instant, Set<String> removedIn) {
      this.instant = instant;
      this.removedIn = removedIn;
    }
  }

  /**
   * Completed writes since the rows were read that the instant was made from, but for those that it knows ({@link TableReads}); none when nothing
   * was read.
   *
   * @throws HoodieWriteConflictException when that cannot be known any more, or when it is serializable and there is one that carries rows
   */
  public static List<Moved> since(HoodieTableMetaClient metaClient, TypedProperties props, Session session, String instant) {
    return since(metaClient, props, session, session.reads().write(instant));
  }

  private static List<Moved> since(HoodieTableMetaClient metaClient, TypedProperties props, Session session, TableReads.Write write) {
    write.madeFrom(props.getString(READ, ""));
    TableReads.Base base = base(props, session, write);
    if (base == null) {
      return List.of();
    }
    requireNotArchived(metaClient, base.floor);
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

  /** As the write's options say, else as its thread has read. An agent reads for other purposes. */
  private static TableReads.Base base(TypedProperties props, Session session, TableReads.Write write) {
    String base = props.getString(BASE, "");
    if (base.isEmpty()) {
      return session.isWriter() ? write.base : null;
    }
    return new TableReads.Base(base, props.getString(FLOOR, ""), Set.of());
  }

  /** What is asked under the lock where Hudi asks nobody for conflicts. The lock that a write begins with is not yet that of its commit. */
  public static void inNonBlockingMode(HoodieTableMetaClient metaClient, TypedProperties props, Session session) {
    TableReads.Write write = session.reads().newest();
    boolean begins = !session.instants().ownsPending(write.instant);
    if (isolation(props) != Isolation.FRAME && (!begins || props.containsKey(BASE))) {
      TypedProperties all = TypedProperties.copy(props);
      all.setProperty(ISOLATION, Isolation.SERIALIZABLE.name());
      since(metaClient, all, session, begins ? session.reads().write("") : write);
    }
  }

  private static Set<String> removedIn(HoodieCommitMetadata metadata) {
    Set<String> partitions = new HashSet<>();
    if (!SERVICES.contains(metadata.getOperationType())) {
      metadata.getWriteStats().stream().filter(s -> s.getNumDeletes() > 0).map(HoodieWriteStat::getPartitionPath).forEach(partitions::add);
      partitions.addAll(replaced(metadata));
    }
    return partitions;
  }

  private static Set<String> replaced(HoodieCommitMetadata metadata) {
    return metadata instanceof HoodieReplaceCommitMetadata ? ((HoodieReplaceCommitMetadata) metadata).getPartitionToReplaceFileIds().keySet() : Set.of();
  }

  private static List<HoodieInstant> completed(HoodieTableMetaClient metaClient) {
    return metaClient.reloadActiveTimeline().getCommitsTimeline().filterCompletedInstants().getInstants();
  }

  /** Nothing that completed since the read has left the active timeline: unknown is not "unmoved" (I11). */
  private static void requireNotArchived(HoodieTableMetaClient metaClient, String floor) {
    HoodieTimeline commits = metaClient.reloadActiveTimeline().getCommitsTimeline();
    String earliest = commits.getInstantsAsStream().map(HoodieInstant::requestedTime).min(String::compareTo).orElse("");
    boolean archived = earliest.compareTo(floor) > 0 && !metaClient.getArchivedTimeline().empty();
    if (archived) {
      throw conflict("commits were archived since the rows of the table were read");
    }
  }

  private static void requireUnmoved(TypedProperties props, HoodieInstant instant, HoodieCommitMetadata metadata, String base) {
    if (isolation(props) != Isolation.SERIALIZABLE || SERVICES.contains(metadata.getOperationType())) {
      return;
    }
    if (!metadata.getWriteStats().isEmpty() || !replaced(metadata).isEmpty()) {
      throw conflict(
          "instant " + instant.requestedTime() + " (completed " + instant.getCompletionTime() + ") was committed after the rows of the table were read, at "
              + base);
    }
  }

  private static HoodieWriteConflictException conflict(String detail) {
    return new HoodieWriteConflictException(ErrorCode.SNAPSHOT_MOVED.message(detail));
  }

  private static HoodieCommitMetadata read(HoodieTableMetaClient metaClient, HoodieInstant completed) {
    try {
      return TimelineUtils.getCommitMetadata(completed, metaClient.getActiveTimeline());
    } catch (IOException e) { // unknown is not "unmoved" (I11)
      throw ErrorCode.SNAPSHOT_MOVED.exception("cannot read the metadata of instant " + completed.requestedTime(), e);
    }
  }
}
