package io.hudioperator.commit;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.session.LostExecutors;
import io.hudioperator.timeline.Guarded;
import java.io.IOException;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.lock.LockProvider;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieReplaceCommitMetadata;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieIOException;
import org.apache.hudi.exception.HoodieWriteConflictException;
import org.apache.hudi.hadoop.fs.HoodieWrapperFileSystem;

/**
 * Conditions that must hold under the lock before a commit is published, in every concurrency mode
 * of Hudi: the storage wrapper and the options are ours, and no other incarnation has advanced the
 * same writer's progress.
 *
 * <p>All of them compare one listing of the timeline, which their caller makes after it has
 * acquired the lock ({@code reloadActiveTimeline}, or a client that is made then). That is as good
 * as a listing for each of them: until the lock is released nobody else completes an instant (I1),
 * and this process completes its own after the checks.
 */
public final class CommitChecks {
    public static final String PROGRESS_WRITER = "hoodie.write.lock.etcd.progress_writer";
    public static final String PROGRESS_BASE = "hoodie.write.lock.etcd.progress_base";
    static final String SCHEMA_BASE = "hoodie.write.lock.etcd.schema_base";
    static final String RECOMPUTED = "hoodie.write.lock.etcd.recomputed";
    public static final String METADATA_WRITER = "hudioperator.writer";
    public static final String METADATA_INC = "hudioperator.inc";

    /** In each file id that a bucket gets in the mode NonBlocking, and in no other. */
    static final String CONSTANT = "-0000-0000-0000-000000000000";

    private CommitChecks() {}

    /**
     * Checks both file systems: the one Hudi works with, and the one that any other caller would
     * get from this configuration.
     *
     * @param wrapper the class that the configuration must name
     */
    public static void requireGuard(HoodieTableMetaClient metaClient, String base, Class<? extends Guarded> wrapper) {
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
        if (!(used instanceof Guarded) || !(resolved instanceof Guarded)) {
            throw ErrorCode.NO_GUARD.exception(
                    base + " is written through " + used.getClass().getName() + "; fs."
                            + ((FileSystem) resolved).getUri().getScheme() + ".impl must be " + wrapper.getName());
        }
    }

    /** @param provider the lock provider that the options must name */
    public static void requireOptions(HoodieWriteConfig config, Class<? extends LockProvider<?>> provider) {
        require("hoodie.write.lock.provider", provider.getName(), config.getLockProviderClass());
        String mode = config.getWriteConcurrencyMode().name();
        if (!config.getWriteConcurrencyMode().supportsMultiWriter()) {
            require("hoodie.write.concurrency.mode", "OPTIMISTIC_CONCURRENCY_CONTROL", mode);
        }
        if (config.getFailedWritesCleanPolicy().isEager()) {
            require(
                    "hoodie.clean.failed.writes.policy",
                    "LAZY",
                    config.getFailedWritesCleanPolicy().name());
        }
    }

    private static void require(String option, String expected, String actual) {
        if (!expected.equals(actual)) {
            throw ErrorCode.OPTION.exception(
                    option + " is owned by the operator: it must be " + expected + ", not " + actual);
        }
    }

    /**
     * Refuses the commit when another incarnation of the same writer has committed since this one
     * read its progress. Otherwise the same source rows would be committed twice (F5, I9).
     * Properties without a writer (a user's own program) have nothing to compare.
     */
    public static void requireProgress(
            HoodieTableMetaClient metaClient, TypedProperties props, String inc, String what) {
        String writer = props.getString(PROGRESS_WRITER, "");
        String base = props.getString(PROGRESS_BASE, "");
        if (writer.isEmpty() || base.isEmpty()) {
            return;
        }
        metaClient
                .getActiveTimeline()
                .getCommitsTimeline()
                .filterCompletedInstants()
                .getInstantsAsStream()
                .filter(i ->
                        i.getCompletionTime() != null && i.getCompletionTime().compareTo(base) > 0)
                .forEach(i -> requireNotOf(metaClient, i, writer, inc, what));
    }

    private static void requireNotOf(
            HoodieTableMetaClient metaClient, HoodieInstant completed, String writer, String inc, String what) {
        HoodieCommitMetadata metadata;
        try {
            metadata = metaClient.getActiveTimeline().readCommitMetadata(completed);
        } catch (IOException e) { // unknown is not "unmoved" (I11)
            throw ErrorCode.PROGRESS_MOVED.exception(
                    "cannot read the metadata of instant " + completed.requestedTime(), e);
        }
        if (writer.equals(metadata.getMetadata(METADATA_WRITER)) && !inc.equals(metadata.getMetadata(METADATA_INC))) {
            throw ErrorCode.PROGRESS_MOVED.exception("instant " + completed.requestedTime() + " (completed "
                    + completed.getCompletionTime() + ") is a commit of writer " + writer + " by incarnation "
                    + metadata.getMetadata(METADATA_INC) + ", made after " + what + " read its progress");
        }
    }

    /**
     * Refuses the commit when a part of its rows may have been computed twice, and they differ each
     * time they are computed. A row with another key goes to another file than the one already
     * written, so rows would be missing and others there twice (F106). Without the property the
     * rows are the same each time.
     */
    public static void requireComputedOnce(TypedProperties props) {
        String before = props.getString(RECOMPUTED, "");
        if (before.isEmpty()) {
            return;
        }
        long now = LostExecutors.recomputed();
        if (now == LostExecutors.UNKNOWN || !before.equals(Long.toString(now))) {
            throw ErrorCode.RECOMPUTED.exception(
                    "an executor was lost, or a stage was repeated, while a batch was written whose rows differ "
                            + "each time they are computed (uuid(), rand(), a function that is not deterministic, "
                            + "limit, row_number, a database): rows of it may be missing or there twice");
        }
    }

    /**
     * Refuses the commit when the table's schema has changed since the batch was fitted to it.
     * Readers take the schema of the commit that began last: a schema without a new column would
     * hide that column, and a schema without a widened type would make its values unreadable. In
     * the optimistic mode Hudi checks this itself, but only against commits that completed after it
     * began to write; in the non-blocking mode it does not check.
     *
     * @param mine schema of this commit; null or empty when it is not known
     * @param until completion time up to which commits are checked; null for no bound
     * @throws HoodieWriteConflictException so that the write is repeated with columns that fit
     */
    public static void requireSchema(
            HoodieTableMetaClient metaClient, TypedProperties props, String mine, String until) {
        String base = props.getString(SCHEMA_BASE, "");
        if (base.isEmpty()) {
            return;
        }
        List<HoodieInstant> completed = newestFirst(metaClient)
                .filter(i -> until == null || i.getCompletionTime().compareTo(until) <= 0)
                .collect(Collectors.toList());
        List<HoodieInstant> later = completed.stream()
                .filter(i -> i.getCompletionTime().compareTo(base) > 0)
                .collect(Collectors.toList());
        if (later.isEmpty()) {
            return;
        }
        completed.removeAll(later);
        String known = completed.stream()
                .map(i -> schema(metaClient, i))
                .filter(s -> !s.isEmpty())
                .findFirst()
                .orElse("");
        for (HoodieInstant instant : later) {
            String theirs = schema(metaClient, instant);
            if (!theirs.isEmpty() && !same(theirs, known) && !same(theirs, mine)) {
                throw new HoodieWriteConflictException(
                        ErrorCode.SCHEMA_MOVED.message("instant " + instant.requestedTime() + " (completed "
                                + instant.getCompletionTime() + ") has changed the table's schema since " + base));
            }
        }
    }

    /**
     * Refuses a commit in the mode NonBlocking while a bucket has been replaced: it keeps its file
     * id in this mode, and readers leave out whatever has a replaced one (F423). In another mode a
     * partition may have been deleted that was written in this one before.
     */
    public static void requireNoReplacedBucket(HoodieTableMetaClient metaClient) {
        metaClient
                .getActiveTimeline()
                .getCompletedReplaceTimeline()
                .getInstantsAsStream()
                .forEach(i -> requireNoReplacedBucket(metaClient, i));
    }

    private static void requireNoReplacedBucket(HoodieTableMetaClient metaClient, HoodieInstant completed) {
        HoodieReplaceCommitMetadata metadata;
        try {
            metadata = metaClient.getActiveTimeline().readReplaceCommitMetadata(completed);
        } catch (IOException e) { // unknown is not "none" (I11)
            throw new HoodieIOException("cannot read the metadata of instant " + completed.requestedTime(), e);
        }
        metadata.getPartitionToReplaceFileIds().forEach((partition, ids) -> {
            if (ids.stream().anyMatch(id -> id.contains(CONSTANT))) {
                throw ErrorCode.OPTION.exception("hoodie.write.concurrency.mode must not be NonBlocking yet: instant "
                        + completed.requestedTime() + " has replaced buckets of partition '" + partition
                        + "' that would get their file ids again, and readers leave these out until the instant is "
                        + "archived; set concurrency.mode of the HudiTable to Optimistic");
            }
        });
    }

    /** Completed commits, the one that began last first. */
    static Stream<HoodieInstant> newestFirst(HoodieTableMetaClient metaClient) {
        return metaClient
                .getActiveTimeline()
                .getCommitsTimeline()
                .filterCompletedInstants()
                .getInstantsAsStream()
                .filter(i -> i.getCompletionTime() != null)
                .sorted(Comparator.comparing(HoodieInstant::requestedTime).reversed());
    }

    /** The schema that readers would take from this commit; empty when they would take none. */
    static String schema(HoodieTableMetaClient metaClient, HoodieInstant completed) {
        HoodieCommitMetadata metadata;
        try {
            metadata = metaClient.getActiveTimeline().readCommitMetadata(completed);
        } catch (IOException e) { // unknown is not "unmoved" (I11)
            throw ErrorCode.SCHEMA_MOVED.exception(
                    "cannot read the metadata of instant " + completed.requestedTime(), e);
        }
        String schema = metadata.getMetadata(HoodieCommitMetadata.SCHEMA_KEY);
        return schema == null || !WriteOperationType.canUpdateSchema(metadata.getOperationType()) ? "" : schema;
    }

    private static boolean same(String one, String other) {
        return one.equals(other)
                || other != null && !other.isEmpty() && HoodieSchema.parse(one).equals(HoodieSchema.parse(other));
    }
}
