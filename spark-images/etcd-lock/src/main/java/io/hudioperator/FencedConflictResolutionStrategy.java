package io.hudioperator;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.client.transaction.ConcurrentOperation;
import org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieWriteConflictException;
import org.apache.hudi.hadoop.fs.HoodieWrapperFileSystem;
import org.apache.hudi.table.HoodieTable;

/**
 * Hudi asks this under the lock, on every commit, with the instant and the write configuration: the place to refuse a commit whose
 * storage wrapper, lock or options are not ours, or whose progress has moved. Conflicts themselves are decided by Hudi's PreferWriter
 * rules; ingestion goes before table services.
 */
public final class FencedConflictResolutionStrategy extends PreferWriterConflictResolutionStrategy {
  static final String PROGRESS_WRITER = "hoodie.write.lock.etcd.progress_writer";
  static final String PROGRESS_BASE = "hoodie.write.lock.etcd.progress_base";
  static final String METADATA_WRITER = "hudioperator.writer";
  static final String METADATA_INC = "hudioperator.inc";
  private static final int MAX_FILE_GROUPS = 5;

  private Session session;

  @Override
  public Stream<HoodieInstant> getCandidateInstants(
      HoodieTableMetaClient metaClient,
      HoodieInstant current,
      Option<HoodieInstant> lastSuccessful,
      Option<HoodieWriteConfig> writeConfig) {
    String base = metaClient.getBasePath().toString();
    requireGuard(metaClient, base);
    session = Sessions.byPath(base);
    if (session == null || !session.holdsLock()) {
      throw ErrorCode.NOT_OWNER.exception("the lock of " + base + " is not held at the commit of " + current.requestedTime());
    }
    if (writeConfig.isPresent()) {
      requireOptions(writeConfig.get());
      requireProgress(metaClient, current, writeConfig.get());
    }
    session.conflictsChecked(current.requestedTime());
    return super.getCandidateInstants(metaClient, current, lastSuccessful, writeConfig);
  }

  /** Both file systems count: the one Hudi works with, and the one that anybody else would get from this configuration. */
  private static void requireGuard(HoodieTableMetaClient metaClient, String base) {
    Object used = metaClient.getStorage().getFileSystem();
    if (used instanceof HoodieWrapperFileSystem) {
      used = ((HoodieWrapperFileSystem) used).getFileSystem();
    }
    Object resolved;
    try {
      resolved = new Path(base).getFileSystem(metaClient.getStorageConf().unwrapAs(Configuration.class));
    } catch (IOException e) {
      throw ErrorCode.NO_GUARD.exception("cannot open the file system of " + base, e);
    }
    if (!isGuarded(used) || !isGuarded(resolved)) {
      throw ErrorCode.NO_GUARD.exception(
          base + " is written through " + used.getClass().getName() + "; fs." + ((FileSystem) resolved).getUri().getScheme() + ".impl must be "
              + GuardedFileSystem.class.getName());
    }
  }

  private static boolean isGuarded(Object fs) {
    return fs instanceof GuardedFileSystem || fs instanceof GuardedLocalFileSystem;
  }

  private static void requireOptions(HoodieWriteConfig config) {
    require("hoodie.write.lock.provider", EtcdLockProvider.class.getName(), config.getLockProviderClass());
    String mode = config.getWriteConcurrencyMode().name();
    if (!config.getWriteConcurrencyMode().supportsMultiWriter()) {
      require("hoodie.write.concurrency.mode", "OPTIMISTIC_CONCURRENCY_CONTROL", mode);
    }
    if (config.getFailedWritesCleanPolicy().isEager()) {
      require("hoodie.clean.failed.writes.policy", "LAZY", config.getFailedWritesCleanPolicy().name());
    }
  }

  private static void require(String option, String expected, String actual) {
    if (!expected.equals(actual)) {
      throw ErrorCode.OPTION.exception(option + " is owned by the operator: it must be " + expected + ", not " + actual);
    }
  }

  /**
   * Has another incarnation of the same writer committed since this one read how far it had come? Then the same source rows would be
   * committed twice (F5, I9).
   */
  private void requireProgress(HoodieTableMetaClient metaClient, HoodieInstant current, HoodieWriteConfig config) {
    String writer = config.getString(PROGRESS_WRITER);
    String base = config.getString(PROGRESS_BASE);
    if (writer == null || writer.isEmpty() || base == null || base.isEmpty()) {
      return;
    }
    metaClient
        .reloadActiveTimeline()
        .getCommitsTimeline()
        .filterCompletedInstants()
        .getInstantsAsStream()
        .filter(i -> i.getCompletionTime() != null && i.getCompletionTime().compareTo(base) > 0)
        .forEach(i -> requireNotOf(metaClient, i, writer, current));
  }

  private void requireNotOf(HoodieTableMetaClient metaClient, HoodieInstant completed, String writer, HoodieInstant current) {
    HoodieCommitMetadata metadata;
    try {
      metadata = metaClient.getActiveTimeline().readCommitMetadata(completed);
    } catch (IOException e) { // unknown is not "unmoved" (I11)
      throw ErrorCode.PROGRESS_MOVED.exception("cannot read the metadata of instant " + completed.requestedTime(), e);
    }
    if (writer.equals(metadata.getMetadata(METADATA_WRITER)) && !session.inc().equals(metadata.getMetadata(METADATA_INC))) {
      throw ErrorCode.PROGRESS_MOVED.exception(
          "instant " + completed.requestedTime() + " (completed " + completed.getCompletionTime() + ") is a commit of writer " + writer
              + " by incarnation " + metadata.getMetadata(METADATA_INC) + ", made after instant " + current.requestedTime() + " read its progress");
    }
  }

  @Override
  public Option<HoodieCommitMetadata> resolveConflict(HoodieTable table, ConcurrentOperation mine, ConcurrentOperation other) {
    try {
      return super.resolveConflict(table, mine, other);
    } catch (HoodieWriteConflictException e) {
      Set<String> shared = sharedFileGroups(mine, other);
      if (session != null) {
        session.conflict(json(mine, other, shared));
      }
      throw new HoodieWriteConflictException(
          "Write conflict: instant " + mine.getInstantTimestamp() + " and " + other.getInstantTimestamp() + " (" + other.getInstantActionType() + ", "
              + other.getInstantActionState() + ") changed the same file groups: " + (shared.isEmpty() ? "unknown" : String.join(", ", shared)),
          e);
    }
  }

  private static Set<String> sharedFileGroups(ConcurrentOperation mine, ConcurrentOperation other) {
    Set<Pair<String, String>> both = new HashSet<>(mine.getMutatedPartitionAndFileIds());
    both.retainAll(other.getMutatedPartitionAndFileIds());
    Set<String> names = new TreeSet<>();
    both.forEach(p -> names.add(p.getLeft().isEmpty() ? p.getRight() : p.getLeft() + "/" + p.getRight()));
    Set<String> first = new TreeSet<>();
    names.stream().limit(MAX_FILE_GROUPS).forEach(first::add);
    return first;
  }

  private static String json(ConcurrentOperation mine, ConcurrentOperation other, Set<String> shared) {
    ObjectNode json = Json.object().put("instant", mine.getInstantTimestamp()).put("with", other.getInstantTimestamp());
    ArrayNode groups = json.putArray("fileGroups");
    shared.forEach(groups::add);
    return json.put("atMs", System.currentTimeMillis()).toString();
  }
}
