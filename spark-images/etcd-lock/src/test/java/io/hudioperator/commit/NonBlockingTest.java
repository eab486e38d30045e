package io.hudioperator.commit;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.EtcdLockProvider;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.session.LostExecutors;
import io.hudioperator.session.Session;
import io.hudioperator.session.TableReads;
import io.hudioperator.support.TestTable;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieReplaceCommitMetadata;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.exception.HoodieException;
import org.apache.hudi.exception.HoodieIOException;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.hudi.index.bucket.BucketIdentifier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tables whose writers do not block each other. Hudi does not call the conflict strategy for them,
 * so each lock cycle of the provider runs the checks that the strategy would run, and only the gate
 * can switch this mode on (I9, F5).
 */
class NonBlockingTest {
    private final TestTable table = new TestTable();
    private final String instant = TestTable.time(0);
    private Session session;
    private HoodieTableMetaClient metaClient;

    @BeforeEach
    void begin() throws Exception {
        session = table.session("ns.a");
        metaClient = table.create(HoodieTableType.MERGE_ON_READ);
    }

    @AfterEach
    void close() {
        table.close();
    }

    /** What all providers of one of Hudi's write clients have in common. */
    private LockConfiguration client(Map<String, String> more) {
        Properties options = new Properties();
        options.setProperty("hoodie.base.path", table.folder.toString());
        options.setProperty("hoodie.write.lock.etcd.table_id", table.id);
        options.setProperty("hoodie.write.concurrency.mode", "NON_BLOCKING_CONCURRENCY_CONTROL");
        options.putAll(more);
        return new LockConfiguration(options);
    }

    private static EtcdLockProvider provider(boolean guarded, LockConfiguration client) {
        return new EtcdLockProvider(client, HadoopFSUtils.getStorageConf(TestTable.conf(guarded)));
    }

    /** Of a client of its own. */
    private EtcdLockProvider provider(boolean guarded, Map<String, String> more) {
        return provider(guarded, client(more));
    }

    private boolean lock(EtcdLockProvider provider) {
        return provider.tryLock(5, TimeUnit.SECONDS);
    }

    private void request() {
        metaClient
                .getActiveTimeline()
                .createNewInstant(metaClient.createNewInstant(HoodieInstant.State.REQUESTED, "deltacommit", instant));
        metaClient
                .getActiveTimeline()
                .transitionRequestedToInflight(
                        metaClient.createNewInstant(HoodieInstant.State.REQUESTED, "deltacommit", instant),
                        Option.empty());
    }

    private void complete(Map<String, String> metadata) {
        HoodieCommitMetadata content = new HoodieCommitMetadata();
        content.setOperationType(WriteOperationType.UPSERT);
        metadata.forEach(content::addMetadata);
        metaClient
                .getActiveTimeline()
                .saveAsComplete(
                        metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "deltacommit", instant),
                        Option.of(content));
    }

    private void commit(Map<String, String> more, Map<String, String> metadata) {
        LockConfiguration client = client(more);
        locked(client, this::request);
        locked(client, () -> complete(metadata));
    }

    /** In a lock cycle of that client. */
    private void locked(LockConfiguration client, Runnable what) {
        EtcdLockProvider provider = provider(true, client);
        assertTrue(lock(provider));
        try {
            what.run();
        } finally {
            provider.unlock();
        }
    }

    @Test
    void aCommitNeedsNoConflictCheckWhereTheGateSaysSo() {
        table.concurrency("NonBlocking");
        commit(Map.of(), Map.of());
        assertNull(table.instant(instant));
        assertEquals(
                1, metaClient.reloadActiveTimeline().filterCompletedInstants().countInstants());
    }

    @Test
    void theOptionAloneDoesNotSwitchConflictChecksOff() {
        LockConfiguration client = client(Map.of());
        locked(client, this::request);
        locked(client, () -> assertCode(ErrorCode.OPTION, refusal(() -> complete(Map.of()))));
        assertEquals("Pending", table.state(instant));
    }

    @Test
    void aLockThatTheProviderDidNotTakeAllowsNoCommit() {
        table.concurrency("NonBlocking");
        assertTrue(table.acquire(session));
        request();
        assertCode(ErrorCode.OPTION, refusal(() -> complete(Map.of())));
    }

    @Test
    void withoutTheStorageWrapperTheLockIsGivenBack() {
        table.concurrency("NonBlocking");
        assertCode(ErrorCode.NO_GUARD, assertThrows(HoodieException.class, () -> lock(provider(false, Map.of()))));
        assertFalse(session.holdsLock());
        assertNull(table.lock());
    }

    /** F106. */
    @Test
    void rowsThatMayHaveBeenComputedTwiceAreNotCommitted() {
        table.concurrency("NonBlocking");
        long now = LostExecutors.recomputed();
        Map<String, String> before = Map.of(CommitChecks.RECOMPUTED, Long.toString(now + 1));
        assertCode(ErrorCode.RECOMPUTED, assertThrows(HoodieException.class, () -> lock(provider(true, before))));
        assertNull(table.lock());
        commit(Map.of(CommitChecks.RECOMPUTED, Long.toString(now)), Map.of());
    }

    @Test
    void progressThatMovedStopsTheCommit() {
        table.concurrency("NonBlocking");
        Map<String, String> progress = Map.of(CommitChecks.PROGRESS_WRITER, "ns/w", CommitChecks.PROGRESS_BASE, "0");
        commit(progress, Map.of(CommitChecks.METADATA_WRITER, "ns/w", CommitChecks.METADATA_INC, "another"));
        assertCode(ErrorCode.PROGRESS_MOVED, assertThrows(HoodieException.class, () -> lock(provider(true, progress))));
        assertNull(table.lock());
        EtcdLockProvider other =
                provider(true, Map.of(CommitChecks.PROGRESS_WRITER, "ns/other", CommitChecks.PROGRESS_BASE, "0"));
        assertTrue(lock(other), "another writer's progress is its own");
        other.unlock();
    }

    /**
     * Readers, and the index of later writers, use the metadata table. They do not see a commit
     * that leaves it out, and a later write overwrites that commit (F32).
     */
    @Test
    void aCommitThatLeavesOutTheMetadataTableIsRefused() {
        table.concurrency("NonBlocking");
        Map<String, String> without = Map.of("hoodie.metadata.enable", "false");
        commit(without, Map.of()); // the table has no metadata table yet
        EtcdLockProvider making = provider(true, without);
        assertTrue(lock(making), "the table's properties are changed under the lock");
        metaClient.getTableConfig().setMetadataPartitionState(metaClient, "files", true);
        making.unlock();
        HoodieException e = assertThrows(HoodieException.class, () -> lock(provider(true, without)));
        assertCode(ErrorCode.OPTION, e);
        assertTrue(e.getMessage().contains("hoodie.metadata.enable = 'false'"), e.getMessage());
        assertNull(table.lock());
        EtcdLockProvider keeping = provider(true, Map.of("hoodie.metadata.enable", "true"));
        assertTrue(lock(keeping));
        keeping.unlock();
    }

    /** The checks were made for the instants of the client that has the lock. */
    @Test
    void onlyTheClientThatHasBegunAnInstantCompletesIt() {
        table.concurrency("NonBlocking");
        LockConfiguration client = client(Map.of());
        locked(client, this::request);
        locked(client(Map.of()), () -> assertCode(ErrorCode.OPTION, refusal(() -> complete(Map.of()))));
        assertEquals("Pending", table.state(instant));
        locked(client, () -> complete(Map.of()));
        assertNull(table.instant(instant));
    }

    /**
     * F378: a program that repeats a statement that was refused has an instant pending, of the
     * statement's first run.
     */
    @Test
    void aWriteIsNotComparedWithWhatARefusedOneHasRead() throws Exception {
        table.concurrency("NonBlocking");
        session.reads().readByStatement(new TableReads.Base("0", "0", Set.of()));
        LockConfiguration refused = client(Map.of());
        locked(refused, this::request);
        anotherCommit();
        assertCode(ErrorCode.SNAPSHOT_MOVED, assertThrows(HoodieException.class, () -> lock(provider(true, refused))));
        assertNull(table.lock());
        locked(client(Map.of()), () -> {});
        assertEquals("Pending", table.state(instant));
    }

    /** F423: whatever a write is called, its instant says that it replaces file groups. */
    @ParameterizedTest
    @ValueSource(strings = {"replacecommit", "clustering"})
    void nothingReplacesFileGroups(String action) {
        table.concurrency("NonBlocking");
        LockConfiguration client = client(Map.of());
        HoodieInstant replacing = metaClient.createNewInstant(HoodieInstant.State.REQUESTED, action, instant);
        locked(
                client,
                () -> assertCode(
                        ErrorCode.STATEMENT,
                        refusal(() -> metaClient.getActiveTimeline().createNewInstant(replacing))));
        assertNull(table.instant(instant));
        commit(Map.of(), Map.of());
        assertEquals(
                1, metaClient.reloadActiveTimeline().filterCompletedInstants().countInstants());
    }

    /** F423: in another mode it does, for a bucket gets a new file id there. */
    @Test
    void whatWasReplacedMustNotHaveTheIdsOfThisMode() throws Exception {
        assertTrue(BucketIdentifier.newBucketFileIdForNBCC(3).contains(CommitChecks.CONSTANT));
        replaced(BucketIdentifier.newBucketFileIdPrefix(3) + "-0");
        metaClient.reloadActiveTimeline();
        CommitChecks.requireNoReplacedBucket(metaClient);
        replaced(BucketIdentifier.newBucketFileIdForNBCC(3));
        table.concurrency("NonBlocking");
        HoodieException e = assertThrows(HoodieException.class, () -> lock(provider(true, Map.of())));
        assertCode(ErrorCode.OPTION, e);
        assertTrue(e.getMessage().contains("partition 'p'"), e.getMessage());
        assertNull(table.lock());
    }

    /** A commit of the mode Optimistic that has replaced this file group. */
    private void replaced(String fileId) {
        String time = TestTable.time(0);
        HoodieReplaceCommitMetadata content = new HoodieReplaceCommitMetadata();
        content.setOperationType(WriteOperationType.DELETE_PARTITION);
        content.setPartitionToReplaceFileIds(new HashMap<>(Map.of("p", List.of(fileId))));
        assertTrue(table.acquire(session));
        HoodieInstant begun = metaClient.createNewInstant(HoodieInstant.State.REQUESTED, "replacecommit", time);
        metaClient.getActiveTimeline().createNewInstant(begun);
        metaClient.getActiveTimeline().transitionReplaceRequestedToInflight(begun, Option.empty());
        session.conflictsChecked(time);
        metaClient
                .getActiveTimeline()
                .saveAsComplete(
                        metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "replacecommit", time),
                        Option.of(content));
        session.release();
    }

    /** A file group is written by somebody else. */
    private void anotherCommit() throws Exception {
        HoodieWriteStat stat = new HoodieWriteStat();
        stat.setPartitionPath("p");
        stat.setFileId("f");
        HoodieCommitMetadata content = new HoodieCommitMetadata();
        content.setOperationType(WriteOperationType.UPSERT);
        content.addWriteStat("p", stat);
        String other = TestTable.time(0);
        LockConfiguration client = client(Map.of());
        HoodieInstant begun = metaClient.createNewInstant(HoodieInstant.State.REQUESTED, "deltacommit", other);
        locked(client, () -> {
            metaClient.getActiveTimeline().createNewInstant(begun);
            metaClient.getActiveTimeline().transitionRequestedToInflight(begun, Option.empty());
        });
        locked(
                client,
                () -> metaClient
                        .getActiveTimeline()
                        .saveAsComplete(
                                metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "deltacommit", other),
                                Option.of(content)));
        session.reads().forget(other);
    }

    private static Throwable refusal(Runnable change) {
        Throwable thrown = assertThrows(HoodieIOException.class, change::run);
        return thrown.getCause() == null ? thrown : thrown.getCause();
    }
}
