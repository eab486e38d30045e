package io.hudioperator.commit;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.EtcdLockProvider;
import io.hudioperator.FencedConflictResolutionStrategy;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.session.Session;
import io.hudioperator.session.TableReads;
import io.hudioperator.statements.StatementRules;
import io.hudioperator.support.TestTable;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.hudi.EmptyRelation;
import org.apache.hudi.client.transaction.ConcurrentOperation;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.config.TypedProperties;
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
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * A commit that was made from rows of the table is compared with everything that completed since
 * they were read, not only since its write began (I9).
 */
class SnapshotMovedTest {
    private static final String NOW = "20991231235959999";

    private final TestTable table = new TestTable();
    private String named = "";
    private Session session;
    private HoodieTableMetaClient metaClient;
    private final List<String> requested = new ArrayList<>();
    private FencedConflictResolutionStrategy strategy;

    @BeforeEach
    void begin() throws Exception {
        session = table.session("ns.a");
        metaClient = table.create(HoodieTableType.MERGE_ON_READ);
    }

    @AfterEach
    void close() {
        table.close();
    }

    private static HoodieCommitMetadata content(WriteOperationType operation, String group, long deletes) {
        HoodieCommitMetadata content = new HoodieCommitMetadata();
        content.setOperationType(operation);
        if (!group.isEmpty()) {
            HoodieWriteStat stat = new HoodieWriteStat();
            stat.setPartitionPath("p");
            stat.setFileId(group);
            stat.setNumDeletes(deletes);
            content.addWriteStat("p", stat);
        }
        return content;
    }

    /** Commits as "another" process or in this one; returns the completion time. */
    private String commit(int number, HoodieCommitMetadata content, String who) {
        String completed = commit(number, content);
        if (who.equals("another")) {
            session.reads().forget(requested.get(number));
        }
        return completed;
    }

    private String commit(int number, HoodieCommitMetadata content) {
        assertTrue(table.acquire(session));
        String time = TestTable.time(0);
        requested.add(time);
        assertEquals(number + 1, requested.size());
        HoodieInstant begun = metaClient.createNewInstant(HoodieInstant.State.REQUESTED, "deltacommit", time);
        metaClient.getActiveTimeline().createNewInstant(begun);
        metaClient.getActiveTimeline().transitionRequestedToInflight(begun, Option.empty());
        session.conflictsChecked(time);
        HoodieInstant inflight = metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "deltacommit", time);
        metaClient.getActiveTimeline().saveAsComplete(inflight, Option.of(content));
        session.release();
        return metaClient.reloadActiveTimeline().getLatestCompletionTime().get();
    }

    private Properties options(String base, SnapshotCheck.Isolation isolation) {
        Properties options = new Properties();
        options.putAll(Map.of(
                "hoodie.base.path",
                table.folder.toString(),
                "hoodie.write.lock.etcd.table_id",
                table.id,
                "hoodie.write.lock.provider",
                EtcdLockProvider.class.getName(),
                "hoodie.clean.failed.writes.policy",
                "LAZY",
                SnapshotCheck.FLOOR,
                requested.get(0),
                SnapshotCheck.ISOLATION,
                isolation.name().toLowerCase(Locale.ROOT)));
        if (!named.isEmpty()) {
            options.setProperty(SnapshotCheck.READ, named);
        }
        if (!base.isEmpty()) {
            options.setProperty(SnapshotCheck.BASE, base);
        }
        return options;
    }

    /**
     * Requested times of the commits with which a commit that begins now would be compared; none of
     * them completes after it has begun.
     */
    private Set<String> candidates(String base, SnapshotCheck.Isolation isolation) {
        Properties options = options(base, isolation);
        options.setProperty("hoodie.write.concurrency.mode", "OPTIMISTIC_CONCURRENCY_CONTROL");
        HoodieWriteConfig config = HoodieWriteConfig.newBuilder()
                .withPath(table.basePath())
                .forTable("t")
                .withProperties(options)
                .build();
        HoodieInstant current = metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "deltacommit", NOW);
        HoodieInstant last = metaClient
                .reloadActiveTimeline()
                .getCommitsTimeline()
                .filterCompletedInstants()
                .lastInstant()
                .get();
        strategy = new FencedConflictResolutionStrategy();
        assertTrue(table.acquire(session));
        try {
            return strategy.getCandidateInstants(metaClient, current, Option.of(last), Option.of(config))
                    .map(HoodieInstant::requestedTime)
                    .collect(Collectors.toSet());
        } finally {
            session.release();
        }
    }

    @Test
    void whatCompletedBetweenTheReadAndTheBeginningOfTheWrite() {
        String read = commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        String later = commit(1, content(WriteOperationType.UPSERT, "f", 0), "another");
        assertEquals(Set.of(requested.get(1)), candidates(read, SnapshotCheck.Isolation.SNAPSHOT));
        assertEquals(Set.of(), candidates(later, SnapshotCheck.Isolation.SNAPSHOT));
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
    }

    @Test
    void onesOwnCommitsAreKnown() {
        String read = commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        commit(1, content(WriteOperationType.UPSERT, "f", 0));
        assertEquals(Set.of(), candidates(read, SnapshotCheck.Isolation.SERIALIZABLE));
    }

    /** F40: another thread of the same process that has made its own read. */
    @Test
    void whatAnotherThreadHasCommittedIsNotKnown() throws Exception {
        String read = commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        Thread other = new Thread(() -> commit(1, content(WriteOperationType.UPSERT, "f", 0)));
        other.start();
        other.join();
        assertEquals(Set.of(requested.get(1)), candidates(read, SnapshotCheck.Isolation.SNAPSHOT));
    }

    /** F40: one thread commits what was made from two reads. */
    @Test
    void whatWasMadeFromAnotherReadIsNotKnown() {
        String read = commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        commit(1, content(WriteOperationType.UPSERT, "f", 0));
        session.reads().write(requested.get(1)).madeFrom("B");
        named = "A";
        assertEquals(Set.of(requested.get(1)), candidates(read, SnapshotCheck.Isolation.SNAPSHOT));
        named = "B";
        assertEquals(Set.of(), candidates(read, SnapshotCheck.Isolation.SNAPSHOT));
    }

    /** F59: no option says when rows were read; the thread that writes has read them. */
    @Test
    void whatTheThreadHasReadIsComparedWithoutAnOption() throws Exception {
        commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        TableReads reads = session.reads();
        reads.read(TableReads.Base.of(metaClient.reloadActiveTimeline()));
        commit(1, content(WriteOperationType.UPSERT, "f", 0), "another");
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
        reads.begun(NOW);
        assertEquals(
                Set.of(requested.get(1)),
                candidates("", SnapshotCheck.Isolation.SNAPSHOT),
                "the next write may be made from the same rows");
        Thread other = new Thread(() -> reads.begun(NOW));
        other.start();
        other.join();
        assertEquals(
                Set.of(requested.get(1)),
                candidates("", SnapshotCheck.Isolation.SNAPSHOT),
                "and so may another thread that has read nothing");
        reads.read(TableReads.Base.of(metaClient.reloadActiveTimeline()));
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
    }

    /** Another writer commits twice to one file group; the base of rows that were read between. */
    private TableReads.Base betweenTwoCommits() {
        commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        TableReads.Base before = now();
        commit(1, content(WriteOperationType.UPSERT, "f", 0), "another");
        return before;
    }

    private TableReads.Base now() {
        return TableReads.Base.of(metaClient.reloadActiveTimeline());
    }

    /** F369: a frame of an older read, saved with the option of a later one. */
    @Test
    void whatTheRowsThemselvesWereReadFromCountsBesideTheOption() {
        commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        TableReads.Base before = now();
        String later = commit(1, content(WriteOperationType.UPSERT, "f", 0), "another");
        TableReads reads = session.reads();
        reads.readByStatement(before);
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates(later, SnapshotCheck.Isolation.SNAPSHOT));
        reads.readByStatement(now());
        reads.begun(NOW);
        assertEquals(Set.of(), candidates(later, SnapshotCheck.Isolation.SNAPSHOT));
    }

    /** F422: rows that were collected before the read that the option names. */
    @Test
    void whatTheThreadHasReadBesideTheOptionCounts() throws Exception {
        commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        TableReads.Base before = now();
        String later = commit(1, content(WriteOperationType.UPSERT, "f", 0), "another");
        TableReads reads = session.reads();
        reads.read(before);
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates(later, SnapshotCheck.Isolation.SNAPSHOT));
        reads.begun(NOW);
        assertEquals(Set.of(), candidates(later, SnapshotCheck.Isolation.SNAPSHOT), "it is named for each write");
        Thread other = new Thread(() -> reads.read(before));
        other.start();
        other.join();
        reads.begun(NOW);
        assertEquals(Set.of(), candidates(later, SnapshotCheck.Isolation.SNAPSHOT), "of another thread");
    }

    /** F424: the runtime looks keys up before each try of a write. */
    @Test
    void whatIsLookedUpReplacesNothingThatTheProgramHasRead() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        reads.read(before);
        for (String what : List.of("the first time", "tried again")) {
            lookUp(now());
            reads.statementBegins(true);
            reads.begun(NOW);
            assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT), what);
            reads.lookUpEnds();
        }
        reads.read(now());
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "the program reads again");
    }

    /** I13: a key that somebody inserts after the look-up, for the write that it was made for. */
    @Test
    void whatIsLookedUpCountsForItsWriteAlone() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        lookUp(before);
        reads.statementBegins(true);
        reads.begun(NOW);
        reads.lookUpEnds();
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "of another write");
        lookUp(before);
        reads.lookUpEnds(); // it failed before its write began
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "after one that failed");
        lookUp(before);
        lookUp(now());
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "looked up again");
    }

    private void lookUp(TableReads.Base base) {
        session.reads().lookUpBegins(false);
        session.reads().read(base);
    }

    /** F446: a program that reads, writes and reads again for a long time. */
    @Test
    void theFirstReadOfALongProgramIsNotItsLast() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        reads.read(before);
        for (int i = 0; i < 2_000; i++) {
            reads.begun(NOW);
            reads.queried(now());
            reads.read(now());
        }
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
    }

    /** F441: a look at the columns, or a query that is saved later. */
    @Test
    void aQueryThatWasNotExecutedReplacesNothing() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        reads.queried(before);
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "it may be saved");
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "the next write");
        reads.read(before);
        reads.begun(NOW);
        reads.queried(now());
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "rows are kept");
        reads.read(now());
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "read again");
    }

    /** F442: an Update that decides by rows that its function's generator has read before. */
    @Test
    void eachTryOfABatchIsMadeFromWhatWasReadBeforeIt() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        reads.read(before);
        reads.batchBegins();
        for (String what : List.of("a commit of new columns", "the first try", "the second one")) {
            tries(now());
            assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT), what);
            assertEquals(
                    Set.of(requested.get(1)),
                    candidates(now().completion, SnapshotCheck.Isolation.SNAPSHOT),
                    what + ", with a read of its own");
        }
        reads.batchEnds();
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "the next write");
    }

    /** What the function of an Update has read is replaced at its next try. */
    @Test
    void eachTryReadsAgain() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        reads.batchBegins();
        tries(before);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
        tries(now());
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
        reads.batchEnds();
        reads.batchBegins();
        tries(before);
        reads.batchEnds();
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "it may keep rows");
    }

    /** A try that is refused before its write begins. */
    @Test
    void whatATryThatDidNotBeginHasReadIsForgotten() {
        TableReads.Base before = betweenTwoCommits();
        session.reads().batchBegins();
        session.reads().tryBegins();
        session.reads().read(before);
        session.reads().queried(before);
        session.reads().tryEnds();
        tries(now());
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
    }

    private void tries(TableReads.Base base) {
        session.reads().tryBegins();
        session.reads().askBegins();
        session.reads().read(base);
        session.reads().askEnds();
        session.reads().queried(base); // the runtime makes the rows that it writes
        session.reads().begun(NOW);
        session.reads().tryEnds();
    }

    /** F425: what a delete has found counts as any other read, but not in the non-blocking mode. */
    @Test
    void whatADeleteFindsIsNoReasonForItInTheNonBlockingMode() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        reads.readByDelete(before);
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
        reads.lookUpBegins(true);
        reads.read(before);
        reads.begun(NOW);
        reads.lookUpEnds();
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "of another write");
        reads.readByDelete(before);
        reads.statementBegins(true); // the delete failed before its write began
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "after one that failed");
        reads.readByDelete(before);
        reads.begun(NOW);
        compareInNonBlockingMode();
        reads.read(before);
        reads.readByDelete(now());
        reads.begun(NOW);
        assertCode(
                ErrorCode.SNAPSHOT_MOVED,
                assertThrows(HoodieWriteConflictException.class, this::compareInNonBlockingMode));
    }

    private void compareInNonBlockingMode() {
        TypedProperties props = TypedProperties.copy(options("", SnapshotCheck.Isolation.SNAPSHOT));
        SnapshotCheck.inNonBlockingMode(metaClient, props, session, Set.of(NOW));
    }

    /** F88: UPDATE with a value that the program read earlier. */
    @Test
    void whatAStatementReadsReplacesNothingThatTheProgramHasRead() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        reads.read(before);
        for (String what : List.of("the first time", "tried again")) {
            reads.readByStatement(now());
            reads.begun(NOW);
            assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT), what);
        }
        reads.read(now());
        reads.readByStatement(now());
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
    }

    /** A program that reads nothing else: each statement is compared since its own read. */
    @Test
    void whatAStatementReadsCountsForItAlone() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        reads.readByStatement(before);
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
        reads.readByStatement(now());
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
    }

    /** F379: a statement fails before its write begins, and the program runs it again. */
    @Test
    void whatAFailedStatementHasReadIsNotInTheRowsOfTheNextOne() {
        commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        TableReads.Base before = now();
        commit(1, content(WriteOperationType.UPSERT, "f", 0), "another"); // begins a write of this thread
        TableReads reads = session.reads();
        reads.statementBegins(true);
        reads.readByStatement(before);
        reads.statementBegins(true);
        reads.readByStatement(now());
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
    }

    /** What a program itself has read before is in its hands, whatever a statement does. */
    @Test
    void aStatementThatBeginsForgetsNothingThatTheProgramHasRead() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        reads.read(before);
        reads.statementBegins(true);
        reads.readByStatement(now());
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
    }

    /** F402: rows go through another table: INSERT INTO other SELECT … FROM t, and back. */
    @Test
    void whatAStatementTakesToAnotherTableIsInTheProgramsHands() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        reads.statementBegins(false);
        reads.readByStatement(before);
        reads.statementBegins(true);
        reads.readByStatement(now());
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
    }

    /** F449: save(spark.table("t").observe(…)), and a write made from what was observed. */
    @Test
    void whatAStatementGivesToItsProgramIsInTheProgramsHands() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        saveObserved(before);
        for (String what : List.of("the next write", "tried again")) {
            reads.statementBegins(true);
            reads.readByStatement(now());
            reads.begun(NOW);
            assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT), what);
        }
        reads.read(now());
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "read again");
    }

    /** F449: such a statement is no reason to forget rows that the program keeps. */
    @Test
    void whatAStatementGivesToItsProgramReplacesNothing() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        reads.read(before);
        reads.begun(NOW);
        saveObserved(now());
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "its own write");
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "the next one");
        reads.read(now());
        saveObserved(now());
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "read again");
    }

    /** F449: what one thread has observed is written by another one, which has written before. */
    @Test
    void whatAStatementGivesToItsProgramIsHandedToOtherThreads() throws Exception {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        reads.begun(NOW);
        Thread other = new Thread(() -> saveObserved(before));
        other.start();
        other.join();
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
    }

    /** F449: a batch of the runtime, whose first try was refused. */
    @Test
    void whatATryGivesToItsProgramCountsAfterTheBatch() {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        reads.batchBegins();
        reads.tryBegins();
        saveObserved(before);
        reads.tryEnds();
        reads.tryBegins();
        saveObserved(now());
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "it is read again");
        reads.tryEnds();
        reads.batchEnds();
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "the next batch");
    }

    /** F449: a program that does nothing but observe what it saves is not refused for ever. */
    @Test
    void whatAStatementGivesReplacesWhatEarlierOnesGave() {
        saveObserved(betweenTwoCommits());
        saveObserved(now());
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "made of the first");
        saveObserved(now());
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT), "made of the second");
    }

    private void saveObserved(TableReads.Base base) {
        session.reads().statementBegins(true);
        session.reads().readByStatement(base);
        session.reads().handed(base);
        session.reads().begun(NOW);
    }

    /** The message says what helps: a lazy query of the write itself does not. */
    @Test
    void aRefusalSaysHowToReadAgain() {
        String read = commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        commit(1, content(WriteOperationType.UPSERT, "g", 0), "another");
        HoodieWriteConflictException refused = assertThrows(
                HoodieWriteConflictException.class, () -> candidates(read, SnapshotCheck.Isolation.SERIALIZABLE));
        for (String part : List.of("read, at " + read, "collect()", "outside of the write", "commit_metadata()")) {
            assertTrue(refused.getMessage().contains(part), refused.getMessage());
        }
    }

    /**
     * F88: rows that a thread pool has read are written by a thread that has read something else
     * later.
     */
    @Test
    void whatOtherThreadsHaveReadCountsBesideOnesOwnRead() throws Exception {
        TableReads.Base before = betweenTwoCommits();
        TableReads reads = session.reads();
        Thread other = new Thread(() -> reads.read(before));
        other.start();
        other.join();
        reads.read(now());
        reads.begun(NOW);
        assertEquals(Set.of(requested.get(1)), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
        reads.begun(NOW);
        assertEquals(
                Set.of(requested.get(1)),
                candidates("", SnapshotCheck.Isolation.SNAPSHOT),
                "tried again without a read");
        reads.read(now());
        reads.begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
    }

    /** One thread reads and others write, repeatedly: only reads since the last write count. */
    @Test
    void aThreadThatOnlyReadsHoldsNobodyUpForEver() throws Exception {
        commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        TableReads reads = session.reads();
        for (int number = 1; number < 3; number++) {
            reads.read(TableReads.Base.of(metaClient.reloadActiveTimeline()));
            Thread writer = new Thread(() -> reads.begun(NOW));
            writer.start();
            writer.join();
            assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
            commit(number, content(WriteOperationType.UPSERT, "f", 0), "another");
        }
    }

    /**
     * F63: a relation of an empty table does not say which table it is. It cannot be a table that
     * had commits when this process began.
     */
    @Test
    void anEmptyTableIsNotTheOneThatHadCommits() {
        commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        session.reads().begin(HadoopFSUtils.getStorageConf(TestTable.conf(true)), table.basePath());
        StatementRules.read(new EmptyRelation(null, new StructType()), false, true);
        session.reads().begun(NOW);
        assertEquals(Set.of(), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
    }

    @Test
    void anEmptyTableMayBeTheOneThatHadNone() {
        session.reads().begin(HadoopFSUtils.getStorageConf(TestTable.conf(true)), table.basePath());
        StatementRules.read(new EmptyRelation(null, new StructType()), false, true);
        commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        session.reads().begun(NOW);
        assertEquals(Set.of(requested.get(0)), candidates("", SnapshotCheck.Isolation.SNAPSHOT));
    }

    /** F60: a thread that has not acquired the lock commits nothing under another thread's lock. */
    @Test
    void theLockOfAnotherThreadIsNotEnough() throws Exception {
        commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        Thread other = new Thread(() -> assertTrue(table.acquire(session)));
        other.start();
        other.join();
        HoodieInstant current = metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "deltacommit", NOW);
        assertCode(
                ErrorCode.NOT_OWNER,
                assertThrows(
                        HoodieException.class,
                        () -> new FencedConflictResolutionStrategy()
                                .getCandidateInstants(metaClient, current, Option.empty(), Option.empty())));
        session.release();
    }

    @Test
    void serializableMeansThatNobodyHasCommittedRows() {
        String read = commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        commit(1, content(WriteOperationType.COMPACT, "g", 0), "another");
        commit(2, content(WriteOperationType.UPSERT, "", 0), "another");
        assertEquals(
                Set.of(requested.get(1), requested.get(2)), candidates(read, SnapshotCheck.Isolation.SERIALIZABLE));
        commit(3, content(WriteOperationType.UPSERT, "g", 0), "another");
        assertCode(
                ErrorCode.SNAPSHOT_MOVED,
                assertThrows(
                        HoodieWriteConflictException.class,
                        () -> candidates(read, SnapshotCheck.Isolation.SERIALIZABLE)));
    }

    /**
     * A record that was read in that partition may be gone. Writing it again would bring it back,
     * in another file group.
     */
    @Test
    void whoeverRemovedRecordsOfThePartitionIsInTheWay() {
        String read = commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        HoodieCommitMetadata removing = content(WriteOperationType.UPSERT, "g", 1);
        commit(1, removing, "another");
        HoodieCommitMetadata other = content(WriteOperationType.UPSERT, "g", 0);
        commit(2, other, "another");
        assertEquals(Set.of(requested.get(1), requested.get(2)), candidates(read, SnapshotCheck.Isolation.SNAPSHOT));
        ConcurrentOperation mine =
                operation(HoodieInstant.State.INFLIGHT, TestTable.time(0), content(WriteOperationType.UPSERT, "f", 0));
        assertTrue(strategy.hasConflict(mine, operation(HoodieInstant.State.COMPLETED, requested.get(1), removing)));
        assertFalse(strategy.hasConflict(mine, operation(HoodieInstant.State.COMPLETED, requested.get(2), other)));
    }

    private ConcurrentOperation operation(HoodieInstant.State state, String time, HoodieCommitMetadata metadata) {
        return new ConcurrentOperation(metaClient.createNewInstant(state, "deltacommit", time), metadata);
    }

    @Test
    void inTheNonBlockingModeAnUpdateMeetsEveryCommit() {
        String read = commit(0, content(WriteOperationType.UPSERT, "f", 0), "another");
        String later = commit(1, content(WriteOperationType.UPSERT, "g", 0), "another");
        table.concurrency("NonBlocking");
        assertCode(
                ErrorCode.SNAPSHOT_MOVED,
                assertThrows(HoodieWriteConflictException.class, () -> lock(read, SnapshotCheck.Isolation.SNAPSHOT)));
        assertNull(table.lock());
        assertTrue(lock(later, SnapshotCheck.Isolation.SNAPSHOT));
    }

    private boolean lock(String base, SnapshotCheck.Isolation isolation) {
        Properties options = options(base, isolation);
        options.setProperty("hoodie.write.concurrency.mode", "NON_BLOCKING_CONCURRENCY_CONTROL");
        EtcdLockProvider provider = new EtcdLockProvider(
                new LockConfiguration(options), HadoopFSUtils.getStorageConf(TestTable.conf(true)));
        boolean locked = provider.tryLock(5, TimeUnit.SECONDS);
        provider.unlock();
        return locked;
    }
}
