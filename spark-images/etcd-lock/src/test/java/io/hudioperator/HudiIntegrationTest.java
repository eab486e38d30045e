package io.hudioperator;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.commit.CommitChecks;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.Json;
import io.hudioperator.session.Session;
import io.hudioperator.support.TestTable;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.hudi.client.transaction.ConcurrentOperation;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieException;
import org.apache.hudi.exception.HoodieWriteConflictException;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Lock provider, conflict strategy and storage wrapper as Hudi itself calls them (I9, F5). */
class HudiIntegrationTest {
    private final TestTable table = new TestTable();
    private Session session;
    private HoodieTableMetaClient metaClient;

    @BeforeEach
    void begin() throws Exception {
        session = table.session("ns.a");
        metaClient = table.create(HoodieTableType.COPY_ON_WRITE);
    }

    @AfterEach
    void close() {
        table.close();
    }

    private Properties options(Map<String, String> more) {
        Properties options = new Properties();
        options.setProperty("hoodie.base.path", table.folder.toString());
        options.setProperty("hoodie.write.lock.etcd.table_id", table.id);
        options.setProperty("hoodie.write.lock.provider", EtcdLockProvider.class.getName());
        options.setProperty("hoodie.write.concurrency.mode", "OPTIMISTIC_CONCURRENCY_CONTROL");
        options.setProperty("hoodie.clean.failed.writes.policy", "LAZY");
        options.setProperty(
                "hoodie.write.lock.conflict.resolution.strategy", FencedConflictResolutionStrategy.class.getName());
        options.putAll(more);
        return options;
    }

    private EtcdLockProvider provider(Map<String, String> more) {
        return new EtcdLockProvider(
                new LockConfiguration(options(more)), HadoopFSUtils.getStorageConf(TestTable.conf(true)));
    }

    private Option<HoodieWriteConfig> config(Map<String, String> more) {
        return Option.of(HoodieWriteConfig.newBuilder()
                .withPath(table.basePath())
                .forTable("t")
                .withProperties(options(more))
                .build());
    }

    private HoodieInstant inflight(String time) {
        return metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "commit", time);
    }

    private static void candidates(
            HoodieTableMetaClient metaClient, HoodieInstant instant, Option<HoodieWriteConfig> config) {
        new FencedConflictResolutionStrategy().getCandidateInstants(metaClient, instant, Option.empty(), config);
    }

    private void refused(ErrorCode code, HoodieTableMetaClient client, Map<String, String> more) {
        assertCode(
                code,
                assertThrows(
                        HoodieException.class, () -> candidates(client, inflight(TestTable.time(0)), config(more))));
    }

    @Test
    void theProviderLocksAndUnlocks() {
        EtcdLockProvider provider = provider(Map.of());
        assertTrue(provider.tryLock(5, TimeUnit.SECONDS));
        assertTrue(session.holdsLock());
        EtcdLockProvider other = provider(Map.of());
        assertFalse(other.tryLock(50, TimeUnit.MILLISECONDS));
        other.unlock();
        other.close();
        assertTrue(session.holdsLock(), "the provider does not release a lock that it does not hold");
        assertTrue(other.getCurrentOwnerLockInfo().startsWith("[HUDIOP-LOCK-TIMEOUT]"));
        provider.unlock();
        provider.unlock();
        provider.close();
        assertNull(table.lock());
    }

    @Test
    void theProviderNeedsItsTable() {
        assertCode(
                ErrorCode.OPTION,
                assertThrows(
                        HoodieException.class,
                        () -> provider(Map.of("hoodie.write.lock.etcd.table_id", ""))
                                .tryLock(1, TimeUnit.SECONDS)));
        assertCode(
                ErrorCode.NOT_OWNER,
                assertThrows(
                        HoodieException.class,
                        () -> provider(Map.of("hoodie.write.lock.etcd.table_id", "0"))
                                .tryLock(1, TimeUnit.SECONDS)));
        assertCode(
                ErrorCode.NOT_OWNER,
                assertThrows(
                        HoodieException.class,
                        () -> provider(Map.of("hoodie.base.path", "/tmp/other")).tryLock(1, TimeUnit.SECONDS)));
        assertNull(table.lock());
    }

    @Test
    void theProviderRefusesOptionsThatWouldDestroy() {
        for (Map<String, String> option : java.util.List.of(
                Map.of("hoodie.clean.failed.writes.policy", "EAGER"),
                Map.of("hoodie.write.concurrency.mode", "SINGLE_WRITER"))) {
            HoodieException e =
                    assertThrows(HoodieException.class, () -> provider(option).tryLock(1, TimeUnit.SECONDS));
            assertCode(ErrorCode.OPTION, e);
        }
        assertNull(table.lock());
    }

    @Test
    void theProviderNeverThrowsInUnlock() {
        EtcdLockProvider provider = provider(Map.of());
        assertTrue(provider.tryLock(5, TimeUnit.SECONDS));
        table.etcd.delete("lock", 0);
        provider.unlock();
        assertFalse(session.holdsLock());
    }

    @Test
    void aFencedWriterGetsAnExceptionThatHudiDoesNotRetry() {
        table.fence(session.inc());
        HoodieException e =
                assertThrows(HoodieException.class, () -> provider(Map.of()).tryLock(5, TimeUnit.SECONDS));
        assertCode(ErrorCode.FENCED, e);
        assertFalse(e instanceof org.apache.hudi.exception.HoodieLockException);
    }

    @Test
    void noCommitWithoutTheStorageWrapper() {
        assertTrue(table.acquire(session));
        HoodieTableMetaClient bare = HoodieTableMetaClient.builder()
                .setBasePath(table.basePath())
                .setConf(HadoopFSUtils.getStorageConf(TestTable.conf(false)))
                .build();
        refused(ErrorCode.NO_GUARD, bare, Map.of());
        candidates(metaClient, inflight(TestTable.time(0)), config(Map.of()));
    }

    @Test
    void noCommitWithoutTheLock() {
        refused(ErrorCode.NOT_OWNER, metaClient, Map.of());
    }

    @Test
    void noCommitWithAnotherLockProvider() {
        assertTrue(table.acquire(session));
        refused(
                ErrorCode.OPTION,
                metaClient,
                Map.of("hoodie.write.lock.provider", "org.apache.hudi.client.transaction.lock.InProcessLockProvider"));
    }

    /**
     * Readers, and the index of later writers, use the metadata table. They do not see a commit
     * that leaves it out, and a later write overwrites that commit (F32).
     */
    @Test
    void noCommitThatLeavesOutTheMetadataTable() {
        assertTrue(table.acquire(session));
        Map<String, String> without = Map.of("hoodie.metadata.enable", "false");
        candidates(metaClient, inflight(TestTable.time(0)), config(without)); // the table has no metadata table yet
        metaClient.getTableConfig().setMetadataPartitionState(metaClient, "files", true);
        refused(ErrorCode.OPTION, metaClient, without);
        candidates(metaClient, inflight(TestTable.time(0)), config(Map.of("hoodie.metadata.enable", "true")));
    }

    @Test
    void anInstantThroughHudisOwnTimeline() throws Exception {
        commit(TestTable.time(0), Map.of());
        metaClient.reloadActiveTimeline();
        assertEquals(1, metaClient.getActiveTimeline().filterCompletedInstants().countInstants());
    }

    private void commit(String time, Map<String, String> metadata) {
        assertTrue(table.acquire(session));
        HoodieInstant requested = metaClient.createNewInstant(HoodieInstant.State.REQUESTED, "commit", time);
        metaClient.getActiveTimeline().createNewInstant(requested);
        assertEquals("Pending", table.state(time));
        metaClient.getActiveTimeline().transitionRequestedToInflight("commit", time);
        candidates(metaClient, inflight(time), config(Map.of()));
        HoodieCommitMetadata content = new HoodieCommitMetadata();
        content.setOperationType(WriteOperationType.UPSERT);
        metadata.forEach(content::addMetadata);
        metaClient.getActiveTimeline().saveAsComplete(inflight(time), Option.of(content));
        session.release();
        assertNull(table.instant(time));
    }

    @Test
    void progressThatMovedStopsTheCommit() throws Exception {
        String base = TestTable.time(-1);
        commit(TestTable.time(0), Map.of(CommitChecks.METADATA_WRITER, "ns/w", CommitChecks.METADATA_INC, "another"));
        assertTrue(table.acquire(session));
        Map<String, String> progress = Map.of(CommitChecks.PROGRESS_WRITER, "ns/w", CommitChecks.PROGRESS_BASE, base);
        refused(ErrorCode.PROGRESS_MOVED, metaClient, progress);
        refused(
                ErrorCode.PROGRESS_MOVED,
                metaClient,
                Map.of(CommitChecks.PROGRESS_WRITER, "ns/w", CommitChecks.PROGRESS_BASE, "0"));
        String now = metaClient.reloadActiveTimeline().getLatestCompletionTime().get();
        candidates(
                metaClient,
                inflight(TestTable.time(0)),
                config(Map.of(CommitChecks.PROGRESS_WRITER, "ns/w", CommitChecks.PROGRESS_BASE, now)));
        candidates(
                metaClient,
                inflight(TestTable.time(0)),
                config(Map.of(CommitChecks.PROGRESS_WRITER, "ns/other", CommitChecks.PROGRESS_BASE, "0")));
    }

    @Test
    void progressThatCannotBeReadStopsTheCommit() throws Exception {
        String theirs = TestTable.time(0);
        commit(theirs, Map.of(CommitChecks.METADATA_WRITER, "ns/other", CommitChecks.METADATA_INC, "another"));
        String completed = metaClient
                .reloadActiveTimeline()
                .filterCompletedInstants()
                .lastInstant()
                .get()
                .getCompletionTime();
        Files.write(
                table.folder.resolve(".hoodie/timeline/" + theirs + "_" + completed + ".commit"), new byte[] {1, 2, 3});
        assertTrue(table.acquire(session));
        refused(
                ErrorCode.PROGRESS_MOVED,
                metaClient,
                Map.of(CommitChecks.PROGRESS_WRITER, "ns/w", CommitChecks.PROGRESS_BASE, "0"));
    }

    @Test
    void ownCommitsAreNoMovedProgress() throws Exception {
        commit(
                TestTable.time(0),
                Map.of(CommitChecks.METADATA_WRITER, "ns/w", CommitChecks.METADATA_INC, session.inc()));
        assertTrue(table.acquire(session));
        candidates(
                metaClient,
                inflight(TestTable.time(0)),
                config(Map.of(CommitChecks.PROGRESS_WRITER, "ns/w", CommitChecks.PROGRESS_BASE, "0")));
    }

    @Test
    void aConflictNamesBothInstantsAndWhatTheyShare() {
        assertTrue(table.acquire(session));
        FencedConflictResolutionStrategy strategy = new FencedConflictResolutionStrategy();
        String mine = TestTable.time(0);
        String theirs = TestTable.time(1);
        strategy.getCandidateInstants(metaClient, inflight(mine), Option.empty(), config(Map.of()));
        HoodieWriteConflictException e = assertThrows(
                HoodieWriteConflictException.class,
                () -> strategy.resolveConflict(null, operation(mine, "f1", "f2"), operation(theirs, "f2", "f3")));
        assertTrue(e.getMessage().startsWith("Write conflict: instant " + mine + " and " + theirs), e.getMessage());
        assertTrue(e.getMessage().endsWith("p=1/f2"), e.getMessage());
        assertEquals(
                "[\"p=1/f2\"]",
                Json.parse(session.lastConflict()).get("fileGroups").toString());
        assertEquals(theirs, Json.text(Json.parse(session.lastConflict()), "with"));
    }

    @Test
    void twoFirstFilesOfOneBucketAreAConflict() {
        assertTrue(table.acquire(session));
        ConcurrentOperation one = operation(TestTable.time(0), "00000003-aaaa-0", "00000004-aaaa-0");
        ConcurrentOperation same = operation(TestTable.time(1), "00000003-bbbb-0");
        ConcurrentOperation other = operation(TestTable.time(1), "00000005-bbbb-0", "");
        FencedConflictResolutionStrategy strategy = withIndex("BUCKET", "SIMPLE");
        assertTrue(strategy.hasConflict(one, same));
        assertFalse(strategy.hasConflict(one, other));
        HoodieWriteConflictException e =
                assertThrows(HoodieWriteConflictException.class, () -> strategy.resolveConflict(null, one, same));
        assertTrue(e.getMessage().endsWith("p=1/00000003"), e.getMessage());
        e = assertThrows(
                HoodieWriteConflictException.class,
                () -> strategy.resolveConflict(null, one, operation(TestTable.time(1), "00000004-aaaa-0")));
        assertTrue(e.getMessage().endsWith("p=1/00000004-aaaa-0"), e.getMessage());
    }

    @Test
    void withoutNumberedBucketsTheBeginningOfANameMeansNothing() {
        assertTrue(table.acquire(session));
        ConcurrentOperation one = operation(TestTable.time(0), "00000003-aaaa-0");
        ConcurrentOperation other = operation(TestTable.time(1), "00000003-bbbb-0");
        for (String index : List.of("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX", "INMEMORY")) {
            assertFalse(withIndex(index, "SIMPLE").hasConflict(one, other), index);
            assertTrue(
                    withIndex(index, "SIMPLE").hasConflict(one, operation(TestTable.time(1), "00000003-aaaa-0")),
                    index);
        }
        assertFalse(
                withIndex("BUCKET", "CONSISTENT_HASHING").hasConflict(one, other),
                "with this index the first characters of names are random");
    }

    /** The strategy as created for a commit of a table with that index. */
    private FencedConflictResolutionStrategy withIndex(String type, String engine) {
        FencedConflictResolutionStrategy strategy = new FencedConflictResolutionStrategy();
        Map<String, String> options = Map.of(
                "hoodie.index.type",
                type,
                "hoodie.index.bucket.engine",
                engine,
                "hoodie.datasource.write.recordkey.field",
                "id");
        strategy.getCandidateInstants(metaClient, inflight(TestTable.time(0)), Option.empty(), config(options));
        return strategy;
    }

    private ConcurrentOperation operation(String time, String... fileIds) {
        HoodieCommitMetadata metadata = new HoodieCommitMetadata();
        metadata.setOperationType(WriteOperationType.UPSERT);
        for (String fileId : fileIds) {
            HoodieWriteStat stat = new HoodieWriteStat();
            stat.setFileId(fileId);
            stat.setPartitionPath("p=1");
            metadata.addWriteStat("p=1", stat);
        }
        return new ConcurrentOperation(inflight(time), metadata);
    }
}
