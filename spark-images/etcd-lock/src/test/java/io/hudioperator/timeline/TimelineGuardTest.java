package io.hudioperator.timeline;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.GuardedFileSystem;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InstantTime;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import io.hudioperator.support.SlowStore;
import io.hudioperator.support.TestTable;
import io.hudioperator.testing.GuardedLocalFileSystem;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Who may change which file of a timeline (F6, F12, I3, I7), with the wrapper for local files. */
class TimelineGuardTest {
    private static final String DATA = "9b3df2c0-1f7a-4a73-9d52-6f0c4d5a1e00-0_0-12-34_20250101000000000.parquet";

    private final TestTable table = new TestTable();
    private final GuardedLocalFileSystem fs = new GuardedLocalFileSystem();
    private Session session;
    private String instant;

    @BeforeEach
    void begin() throws IOException {
        fs.initialize(URI.create("file:///"), new Configuration());
        session = table.session("ns.a");
        instant = TestTable.time(0);
    }

    @AfterEach
    void close() {
        table.close();
    }

    private Path path(String name) {
        return new Path(table.timeline(name));
    }

    private boolean exists(String name) {
        return Files.exists(table.folder.resolve(".hoodie/timeline").resolve(name));
    }

    /** Writes as Hudi does on a file system with a rename. */
    private void write(String name) throws IOException {
        Path temporary = path(name + ".01234567-89ab-cdef-0123-456789abcdef");
        TestTable.write(fs, temporary, name.indexOf('_') > 0 ? TestTable.COMPLETED : new byte[0]);
        if (!fs.rename(temporary, path(name))) {
            throw new IOException("not renamed");
        }
    }

    private static void refused(ErrorCode code, Executable change) {
        assertCode(code, assertThrows(TimelineRefusedException.class, change));
    }

    @Test
    void aCommitFromTheFirstFileToTheLast() throws IOException {
        assertTrue(table.acquire(session));
        write(instant + ".commit.requested");
        assertEquals("Pending", table.state(instant));
        assertEquals(instant, table.clock());
        session.release();
        write(instant + ".inflight");
        assertTrue(table.acquire(session));
        session.conflictsChecked(instant);
        String completion = TestTable.time(0);
        write(instant + "_" + completion + ".commit");
        assertEquals(completion, table.clock());
        session.release();
        assertNull(table.instant(instant));
        assertEquals(completion, table.clock());
    }

    @Test
    void theRecordAndTheClockComeBeforeTheFile() throws IOException {
        assertTrue(table.acquire(session));
        // the store fails
        Files.createDirectory(table.folder.resolve(".hoodie/timeline/" + instant + ".commit.requested"));
        assertThrows(IOException.class, () -> fs.create(path(instant + ".commit.requested"), true));
        assertEquals("Pending", table.state(instant));
        assertEquals(instant, table.clock());
    }

    @Test
    void theClockIsWrittenBeforeTheCompletedFile() throws IOException {
        assertTrue(table.acquire(session));
        write(instant + ".commit.requested");
        session.conflictsChecked(instant);
        String completion = TestTable.time(1);
        Files.createDirectory(table.folder.resolve(".hoodie/timeline/" + instant + "_" + completion + ".commit"));
        assertThrows(
                IOException.class,
                () -> TestTable.write(fs, path(instant + "_" + completion + ".commit"), TestTable.COMPLETED));
        assertEquals(completion, table.clock());
        assertEquals("Pending", table.state(instant));
    }

    /** F91: a table that is created again, or has lost its properties, shows none of its rows. */
    @Test
    void theTablesPropertiesAreChangedUnderTheLock() throws IOException {
        Path properties = new Path(table.basePath() + "/.hoodie/hoodie.properties");
        Path other = new Path(table.basePath() + "/.hoodie/x");
        Files.writeString(table.folder.resolve(".hoodie/hoodie.properties"), "a=b");
        Files.writeString(table.folder.resolve(".hoodie/x"), "a=c");
        refused(ErrorCode.NOT_OWNER, () -> fs.delete(properties, false));
        refused(ErrorCode.NOT_OWNER, () -> fs.create(properties, true));
        refused(ErrorCode.NOT_OWNER, () -> fs.rename(properties, new Path(table.basePath() + "/.hoodie/y")));
        refused(ErrorCode.NOT_OWNER, () -> fs.rename(other, properties));
        assertEquals("a=b", Files.readString(table.folder.resolve(".hoodie/hoodie.properties")));
        assertTrue(table.acquire(session));
        assertTrue(fs.delete(properties, false));
        TestTable.write(fs, properties, new byte[0]);
        session.release();
    }

    @Test
    void withoutTheLockNothingIsRequestedOrCompleted() throws IOException {
        refused(ErrorCode.NOT_OWNER, () -> fs.create(path(instant + ".commit.requested"), false));
        refused(ErrorCode.NOT_OWNER, () -> write(instant + ".commit.requested"));
        refused(ErrorCode.NOT_OWNER, () -> write(instant + ".inflight"));
        // as on an object store, without a rename
        refused(ErrorCode.NOT_OWNER, () -> fs.create(path(instant + ".inflight"), false));
        refused(ErrorCode.NOT_OWNER, () -> write(instant + "_" + TestTable.time(1) + ".commit"));
        assertNull(table.instant(instant));
        assertFalse(exists(instant + ".commit.requested"));
    }

    @Test
    void anAbandonedInstantIsNotTouchedAgain() throws IOException {
        assertTrue(table.acquire(session));
        write(instant + ".commit.requested");
        session.release();
        assertTrue(session.abandon(instant));
        refused(ErrorCode.NOT_OWNER, () -> write(instant + ".inflight"));
        assertTrue(table.acquire(session));
        session.conflictsChecked(instant);
        refused(ErrorCode.NOT_PENDING, () -> write(instant + "_" + TestTable.time(1) + ".commit"));
    }

    @Test
    void aCommitThatWasNotCheckedForConflictsIsRefused() throws IOException {
        assertTrue(table.acquire(session));
        write(instant + ".commit.requested");
        refused(ErrorCode.OPTION, () -> write(instant + "_" + TestTable.time(1) + ".commit"));
        session.conflictsChecked(instant);
        session.release();
        assertTrue(table.acquire(session));
        refused(ErrorCode.OPTION, () -> write(instant + "_" + TestTable.time(1) + ".commit"));
    }

    /** F60: the guard checks the thread, not only the process. */
    @Test
    void anotherThreadHasToWaitForItsTurn() throws Exception {
        assertTrue(table.acquire(session));
        write(instant + ".commit.requested");
        session.release();
        Thread other = new Thread(() -> assertTrue(table.acquire(session)));
        other.start();
        other.join();
        session.conflictsChecked(instant);
        String metadata = table.basePath() + "/.hoodie/metadata/.hoodie/timeline/" + instant + "_" + TestTable.time(1)
                + ".deltacommit";
        refused(ErrorCode.NOT_OWNER, () -> fs.create(new Path(metadata), false));
        refused(ErrorCode.NOT_OWNER, () -> fs.rename(path(instant + ".inflight"), new Path(metadata)));
        refused(ErrorCode.NOT_OWNER, () -> write(instant + "_" + TestTable.time(1) + ".commit"));
        refused(ErrorCode.NOT_OWNER, () -> write(TestTable.time(2) + ".commit.requested"));
        session.release();
        assertTrue(table.acquire(session));
        TestTable.write(fs, new Path(metadata), TestTable.COMPLETED);
    }

    @Test
    void aWriterNeverRollsBack() {
        assertTrue(table.acquire(session));
        refused(ErrorCode.NOT_OWNER, () -> write(instant + ".rollback.requested"));
        refused(ErrorCode.NOT_OWNER, () -> write(instant + ".restore.requested"));
        assertNull(table.instant(instant));
    }

    @Test
    void aSavepointIsTheAgentsBehindTheClosedGate() throws IOException {
        String commit = "20250101000000000";
        String kept = commit + ".savepoint.inflight";
        Session agent = table.session("ns.agent", Map.of("role", "agent"));
        assertTrue(table.acquire(session));
        refused(ErrorCode.NOT_OWNER, () -> session.beginSavepoint(commit)); // a writer
        refused(ErrorCode.NOT_OWNER, () -> fs.create(path(kept), false));
        session.release();
        OpenSessions.register(agent);
        refused(ErrorCode.NOT_OWNER, () -> agent.beginSavepoint(commit)); // no lock
        assertTrue(table.acquire(agent));
        refused(ErrorCode.NOT_OWNER, () -> agent.beginSavepoint(commit)); // an open gate
        agent.release();
        table.gate("closed", "PodTermination");
        assertTrue(table.acquire(agent));
        String before = table.clock();
        refused(ErrorCode.NOT_OWNER, () -> fs.create(path(kept), false)); // not begun
        agent.beginSavepoint(commit);
        assertEquals("Pending", table.state(commit));
        assertEquals(before, table.clock(), "the time of the commit is long past (I10)");
        // it is completed already (I3)
        refused(ErrorCode.NOT_OWNER, () -> fs.create(path(commit + "_" + TestTable.time(1) + ".commit"), false));
        agent.release();
        write(kept);
        assertTrue(table.acquire(agent));
        String completion = TestTable.time(1);
        write(commit + "_" + completion + ".savepoint");
        assertEquals(completion, table.clock());
        agent.release();
        assertNull(table.instant(commit));
        refused(ErrorCode.NOT_OWNER, () -> fs.create(path(kept), false));
    }

    @Test
    void aSavepointIsCompletedBehindTheGateThatItWasBegunBehind() throws IOException {
        String commit = "20250101000000000";
        Session agent = table.session("ns.agent", Map.of("role", "agent"));
        OpenSessions.register(agent);
        for (String gate : List.of("open", "closed")) { // closed again: writers have committed meanwhile (F435)
            table.gate("closed", "PodTermination");
            assertTrue(table.acquire(agent));
            agent.beginSavepoint(commit);
            agent.release();
            write(commit + ".savepoint.inflight");
            table.gate(gate, "PodTermination");
            assertTrue(table.acquire(agent));
            String before = table.clock();
            String completed = commit + "_" + TestTable.time(1) + ".savepoint";
            refused(ErrorCode.NOT_PENDING, () -> fs.create(path(completed), false));
            assertEquals(before, table.clock());
            agent.release();
            fs.delete(path(commit + ".savepoint.inflight"), false);
            assertTrue(agent.abandon(commit));
            assertTrue(table.etcd.delete("instant/" + commit, 0));
        }
        table.gate("closed", "PodTermination");
        assertTrue(table.acquire(agent));
        agent.beginSavepoint(commit); // given up before by the same process
        agent.release();
        write(commit + ".savepoint.inflight");
        assertTrue(table.acquire(agent));
        write(commit + "_" + TestTable.time(1) + ".savepoint");
        agent.release();
        assertNull(table.instant(commit));
    }

    @Test
    void aRestoreIsTheAgentsBehindTheGateThatIsClosedForIt() throws IOException {
        table.restoring("one");
        Session agent = table.session("ns.agent", Map.of("role", "agent"));
        OpenSessions.register(agent);
        refused(ErrorCode.NOT_OWNER, () -> agent.beginRestore("one")); // no lock
        assertTrue(table.acquire(agent));
        refused(ErrorCode.NOT_OWNER, () -> agent.beginRestore("two")); // closed for another one
        refused(ErrorCode.NOT_OWNER, () -> agent.beginRestore(""));
        Path requested = path(instant + ".restore.requested");
        refused(ErrorCode.NOT_OWNER, () -> fs.create(requested, false)); // not begun (I8)
        agent.beginRestore("one");
        table.gate("closed", "PodTermination");
        refused(ErrorCode.NOT_PENDING, () -> fs.create(requested, false)); // the operator has changed the gate (F8)
        assertNull(table.instant(instant));
        agent.release();
        table.gate("open", "PodTermination");
        assertTrue(table.acquire(agent));
        refused(ErrorCode.NOT_OWNER, () -> agent.beginRestore("one")); // an open gate
        agent.release();
        table.restoring("one");
        assertTrue(table.acquire(agent));
        agent.beginRestore("one");
        write(instant + ".restore.requested");
        assertEquals(instant, table.clock());
        agent.release();
        write(instant + ".restore.inflight");
        assertTrue(table.acquire(agent));
        String completed = instant + "_" + TestTable.time(1) + ".restore";
        // must be declared again in each lock cycle
        refused(ErrorCode.NOT_OWNER, () -> fs.create(path(completed), false));
        agent.beginRestore("one");
        write(completed);
        agent.release();
        assertNull(table.instant(instant));
        OpenSessions.closed(agent);
    }

    @Test
    void theAgentRollsBackUnderTheLock() throws IOException {
        Session agent = table.session("ns.agent", Map.of("role", "agent"));
        OpenSessions.register(agent);
        Files.createFile(table.folder.resolve(".hoodie/timeline/20250101000000000.inflight"));
        refused(ErrorCode.NOT_OWNER, () -> fs.delete(path("20250101000000000.inflight"), false));
        assertTrue(table.acquire(agent));
        write(instant + ".rollback.requested");
        write(instant + ".rollback.inflight");
        assertTrue(fs.delete(path("20250101000000000.inflight"), false));
        write(instant + "_" + TestTable.time(1) + ".rollback");
        agent.release();
        assertNull(table.instant(instant));
        OpenSessions.closed(agent);
    }

    @Test
    void theBeginningOfATimelineIsTheAgentsUnderTheLock() throws IOException {
        String name = InstantTime.BEGINNING + "_19700101000000001.commit";
        Session agent = table.session("ns.agent", Map.of("role", "agent"));
        OpenSessions.register(session);
        assertTrue(table.acquire(session));
        refused(ErrorCode.NOT_OWNER, () -> TestTable.write(fs, path(name), TestTable.COMPLETED));
        session.release();
        OpenSessions.closed(session);
        OpenSessions.register(agent);
        refused(ErrorCode.NOT_OWNER, () -> TestTable.write(fs, path(name), TestTable.COMPLETED));
        assertFalse(exists(name));
        assertTrue(table.acquire(agent));
        String clock = table.clock();
        write(name);
        agent.release();
        assertTrue(exists(name));
        assertEquals(clock, table.clock(), "it is no time of a commit");
        assertNull(table.instant(InstantTime.BEGINNING));
        OpenSessions.closed(agent);
    }

    /**
     * RFC-22: table services are scheduled under the lock, and their results are published under
     * it.
     */
    @Test
    void aServiceIsPlannedAndPublishedUnderTheLock() throws IOException {
        Session agent = table.session("ns.agent", Map.of("role", "agent"));
        OpenSessions.register(agent);
        int millis = 0;
        for (String action : java.util.List.of("compaction", "clustering", "clean", "indexing", "replacecommit")) {
            String planned = TestTable.time(++millis);
            refused(ErrorCode.NOT_OWNER, () -> write(planned + "." + action + ".requested"));
            assertFalse(exists(planned + "." + action + ".requested"));
            assertNull(table.instant(planned));
        }
        String planned = TestTable.time(100);
        assertTrue(table.acquire(agent));
        write(planned + ".compaction.requested");
        agent.release();
        write(planned + ".compaction.inflight");
        refused(ErrorCode.NOT_OWNER, () -> write(planned + "_" + TestTable.time(200) + ".commit"));
        assertEquals("Pending", table.state(planned));
        OpenSessions.closed(agent);
    }

    @Test
    void aClusteringIsPublishedOnlyAfterTheCheck() throws IOException {
        Session agent = table.session("ns.agent", Map.of("role", "agent"));
        OpenSessions.register(agent);
        assertTrue(table.acquire(agent));
        write(instant + ".clustering.requested");
        refused(ErrorCode.OPTION, () -> write(instant + "_" + TestTable.time(1) + ".replacecommit"));
        agent.conflictsChecked(instant);
        write(instant + "_" + TestTable.time(1) + ".replacecommit");
        agent.release();
        assertNull(table.instant(instant));
        OpenSessions.closed(agent);
    }

    @Test
    void deletingAndRenamingNeedTheLock() throws IOException {
        Files.createFile(table.folder.resolve(".hoodie/timeline/20250101000000000_20250101000001000.commit"));
        Path completed = path("20250101000000000_20250101000001000.commit");
        refused(ErrorCode.NOT_OWNER, () -> fs.delete(completed, false));
        refused(ErrorCode.NOT_OWNER, () -> fs.rename(completed, new Path(table.basePath() + "/elsewhere")));
        refused(ErrorCode.NOT_OWNER, () -> fs.create(path("history/manifest_1"), true));
        assertTrue(table.acquire(session));
        table.etcd.delete("lock", 0);
        refused(ErrorCode.TOKEN, () -> fs.delete(completed, false));
        session.release();
        assertTrue(table.acquire(session));
        fs.create(path("history/manifest_1"), true).close();
        refused(ErrorCode.NOT_OWNER, () -> fs.delete(completed, false)); // a writer (I8)
        refused(ErrorCode.NOT_OWNER, () -> fs.rename(completed, new Path(table.basePath() + "/elsewhere")));
        session.release();
        Session agent = table.session("ns.agent", Map.of("role", "agent"));
        OpenSessions.register(agent);
        assertTrue(table.acquire(agent));
        assertTrue(fs.delete(completed, false)); // it archives
        agent.release();
        OpenSessions.closed(agent);
    }

    /** Only the agent decides what becomes of an instant that somebody else has begun (F211). */
    @Test
    void aWriterLeavesPendingInstantsOfOthersAsTheyAre() throws IOException {
        for (String name : List.of("20250101000000000.commit.requested", "20250101000000000.inflight")) {
            Files.createFile(table.folder.resolve(".hoodie/timeline/" + name));
            assertTrue(table.acquire(session));
            refused(ErrorCode.NOT_OWNER, () -> fs.delete(path(name), false));
            refused(ErrorCode.NOT_OWNER, () -> fs.rename(path(name), new Path(table.basePath() + "/elsewhere")));
            session.release();
            assertTrue(exists(name));
        }
        assertTrue(table.acquire(session));
        refused(ErrorCode.NOT_OWNER, () -> fs.create(path("20250101000000000.inflight"), true));
        refused(ErrorCode.NOT_OWNER, () -> fs.create(path("20250102000000000.inflight"), true));
        session.release();
        assertFalse(exists("20250102000000000.inflight"));
    }

    @Test
    void ownPendingFilesMayBeRemovedWithoutTheLock() throws IOException {
        assertTrue(table.acquire(session));
        write(instant + ".commit.requested");
        session.release();
        write(instant + ".inflight");
        assertTrue(fs.delete(path(instant + ".inflight"), false));
    }

    @Test
    void theFoldersAboveATimelineStay() throws IOException {
        assertTrue(table.acquire(session));
        refused(ErrorCode.NOT_OWNER, () -> fs.delete(new Path(table.basePath()), true));
        refused(ErrorCode.NOT_OWNER, () -> fs.delete(new Path(table.folder.toString()), true));
        refused(ErrorCode.NOT_OWNER, () -> fs.delete(new Path(table.basePath() + "/.hoodie"), true));
        refused(ErrorCode.NOT_OWNER, () -> fs.delete(new Path(table.basePath() + "/.hoodie/timeline"), true));
        refused(
                ErrorCode.NOT_OWNER,
                () -> fs.rename(new Path(table.folder.getParent().toString()), new Path("file:///somewhere")));
        assertTrue(
                fs.delete(new Path(table.basePath() + "/.hoodie/metadata"), true),
                "the metadata table may be rebuilt under the lock");
        session.release();
        Files.createDirectories(table.folder.resolve(".hoodie/metadata/.hoodie/timeline"));
        refused(ErrorCode.NOT_OWNER, () -> fs.delete(new Path(table.basePath() + "/.hoodie/metadata"), true));
    }

    @Test
    void theMetadataTableFollowsItsTable() throws IOException {
        String mdt = table.basePath() + "/.hoodie/metadata/.hoodie/timeline/";
        refused(ErrorCode.NOT_OWNER, () -> fs.create(new Path(mdt + instant + ".deltacommit.requested"), false));
        assertTrue(table.acquire(session));
        write(instant + ".commit.requested");
        session.release();
        fs.create(new Path(mdt + instant + ".deltacommit.requested"), false).close();
        fs.create(new Path(mdt + instant + "001.commit.requested"), false).close();
        refused(ErrorCode.NOT_OWNER, () -> fs.create(new Path(mdt + "20250101000000000.deltacommit.requested"), false));
        assertTrue(table.acquire(session));
        TestTable.write(fs, new Path(mdt + "20250101000000000_20250101000001000.deltacommit"), TestTable.COMPLETED);
        assertNull(table.instant("20250101000000000"), "it has no records of its own");
    }

    @Test
    void otherTablesAreNotWritten() throws IOException {
        java.nio.file.Path other = Files.createTempDirectory("other-");
        Path file = new Path(other.toUri().toString() + "/.hoodie/timeline/" + instant + ".commit.requested");
        assertTrue(table.acquire(session));
        TimelineRefusedException e = assertThrows(TimelineRefusedException.class, () -> fs.create(file, false));
        assertCode(ErrorCode.NOT_OWNER, e);
        assertTrue(e.getMessage().contains(file.toString()));
        fs.create(new Path(other.toUri().toString() + "/data.parquet"), false).close();
    }

    @Test
    void olderLayoutsAreNotWritten() {
        assertTrue(table.acquire(session));
        refused(
                ErrorCode.NOT_OWNER,
                () -> fs.create(new Path(table.basePath() + "/.hoodie/" + instant + ".commit"), false));
    }

    @Test
    void everyWayToWriteIsGuarded() throws IOException {
        Path file = path(instant + ".commit.requested");
        Path base = new Path(table.basePath());
        refused(
                ErrorCode.NOT_OWNER,
                () -> fs.create(
                        file, FsPermission.getFileDefault(), EnumSet.of(CreateFlag.CREATE), 1, (short) 1, 1024, null));
        refused(
                ErrorCode.NOT_OWNER,
                () -> fs.createNonRecursive(file, FsPermission.getFileDefault(), false, 1, (short) 1, 1024, null));
        refused(ErrorCode.NOT_OWNER, () -> fs.createFile(file).build());
        refused(ErrorCode.NOT_OWNER, () -> fs.createNewFile(file));
        refused(ErrorCode.NOT_OWNER, () -> fs.append(file));
        refused(ErrorCode.NOT_OWNER, () -> fs.truncate(file, 0));
        refused(ErrorCode.NOT_OWNER, () -> fs.concat(file, new Path[] {base}));
        refused(ErrorCode.NOT_OWNER, () -> fs.copyFromLocalFile(false, base, file));
        refused(ErrorCode.NOT_OWNER, () -> fs.moveFromLocalFile(base, file));
        refused(ErrorCode.NOT_OWNER, () -> fs.createSymlink(base, file, false));
        refused(ErrorCode.NOT_OWNER, () -> fs.startLocalOutput(file, base));
        refused(ErrorCode.NOT_OWNER, () -> fs.createMultipartUploader(path("history")));
        GuardedFileSystem wrapped = SlowStore.guarded();
        Path slow = SlowStore.path(table, instant + ".commit.requested");
        refused(ErrorCode.NOT_OWNER, () -> wrapped.create(slow, false));
        refused(ErrorCode.NOT_OWNER, () -> wrapped.createFile(slow).build());
        refused(ErrorCode.NOT_OWNER, () -> wrapped.createNewFile(slow));
        refused(ErrorCode.NOT_OWNER, () -> wrapped.append(slow));
        refused(ErrorCode.NOT_OWNER, () -> wrapped.delete(slow, false));
        assertFalse(exists(instant + ".commit.requested"));
    }

    @Test
    void readingAndDataAreFree() throws IOException {
        Files.createFile(table.folder.resolve(".hoodie/timeline/20250101000000000.inflight"));
        fs.open(path("20250101000000000.inflight")).close();
        assertEquals(1, fs.listStatus(path(""), p -> p.getName().endsWith("inflight")).length);
        fs.mkdirs(path("history/more"));
        fs.create(new Path(table.basePath() + "/p=1/" + DATA), false).close();
        fs.create(new Path(table.basePath() + "/.hoodie/.heartbeat/" + instant), false)
                .close();
        assertTrue(fs.delete(new Path(table.basePath() + "/p=1/" + DATA), false));
    }

    /**
     * Hudi's timer writes it once a minute for as long as the driver lives, whatever the outcome of
     * the commit (F77).
     */
    @Test
    void theHeartbeatOfAnInstantThatWasGivenUpEnds() throws IOException {
        Path own = new Path(table.basePath() + "/.hoodie/.heartbeat/" + instant);
        Path metadata = new Path(table.basePath() + "/.hoodie/metadata/.hoodie/.heartbeat/" + instant);
        assertTrue(table.acquire(session));
        write(instant + ".commit.requested");
        session.release();
        fs.create(own, true).close();
        fs.create(metadata, true).close();
        assertTrue(fs.delete(metadata, false));
        assertTrue(session.abandon(instant));
        refused(ErrorCode.NOT_PENDING, () -> fs.create(own, true));
        refused(ErrorCode.NOT_PENDING, () -> fs.create(metadata, true));
        assertFalse(fs.exists(metadata));
        fs.create(new Path(metadata.getParent(), TestTable.time(1)), true).close();
        assertTrue(session.close());
        refused(ErrorCode.NOT_PENDING, () -> fs.create(metadata, true)); // a JVM that ends takes its time
    }

    @Test
    void anExistingRecordOfSomebodyElseIsNotOverwritten() {
        table.etcd.put("instant/" + instant, "{\"inc\":\"somebody\",\"action\":\"commit\",\"state\":\"Pending\"}");
        assertTrue(table.acquire(session));
        refused(ErrorCode.NOT_PENDING, () -> write(instant + ".commit.requested"));
        assertTrue(table.instant(instant).value().contains("somebody"));
    }

    @Test
    void aFencedSessionCompletesNothing() throws IOException {
        assertTrue(table.acquire(session));
        write(instant + ".commit.requested");
        session.conflictsChecked(instant);
        table.fence(session.inc());
        refused(ErrorCode.FENCED, () -> write(instant + "_" + TestTable.time(1) + ".commit"));
    }

    @Test
    void aWrapperWithoutDelegateIsAnError() {
        GuardedFileSystem wrapped = new GuardedFileSystem();
        IOException e = assertThrows(
                IOException.class, () -> wrapped.initialize(URI.create("gs://bucket"), new Configuration()));
        assertCode(ErrorCode.NO_GUARD, e);
    }
}
