package io.hudioperator.commit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.hudioperator.EtcdLockProvider;
import io.hudioperator.FencedConflictResolutionStrategy;
import io.hudioperator.contract.Json;
import io.hudioperator.etcd.Pause;
import io.hudioperator.protocol.InsertRule;
import io.hudioperator.session.Session;
import io.hudioperator.session.TableReads;
import io.hudioperator.support.HudiFiles;
import io.hudioperator.support.TestTable;
import io.hudioperator.testing.GuardedLocalFileSystem;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
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
import org.apache.hudi.exception.HoodieWriteConflictException;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.StoragePath;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * When two commits insert the same new key and neither sees the other, one of them is refused (I13,
 * F58). The files are made by Hudi's own writer.
 */
class InsertConflictsTest {
    private final TestTable table = new TestTable();
    private Session session;
    private HoodieTableMetaClient metaClient;
    private int files;

    @BeforeEach
    void begin() throws Exception {
        session = table.session("ns.a");
        metaClient = table.create(HoodieTableType.COPY_ON_WRITE);
    }

    @AfterEach
    void close() {
        table.close();
    }

    /**
     * Writes a base file with these keys. Returns its name.
     *
     * @param footers whether the footer contains the key range and the Bloom filter
     */
    private String write(String partition, String group, boolean footers, String... keys) throws Exception {
        String name = group + "_0-0-0_" + TestTable.time(files++) + ".parquet";
        StoragePath path = new StoragePath(new StoragePath(table.basePath(), partition), name);
        HudiFiles.base(metaClient.getStorage(), path, footers, partition, keys);
        return name;
    }

    private static HoodieWriteStat stat(String partition, String group, String name, String previous) {
        HoodieWriteStat stat = new HoodieWriteStat();
        stat.setPartitionPath(partition);
        stat.setFileId(group);
        stat.setPath(partition + "/" + name);
        stat.setNumWrites(1);
        stat.setNumInserts(1);
        stat.setPrevCommit(previous.isEmpty() ? HoodieWriteStat.NULL_COMMIT : "20200101000000000");
        stat.setPrevBaseFile(previous);
        return stat;
    }

    private static HoodieCommitMetadata content(WriteOperationType operation, HoodieWriteStat... stats) {
        HoodieCommitMetadata content = new HoodieCommitMetadata();
        content.setOperationType(operation);
        Arrays.stream(stats).forEach(stat -> content.addWriteStat(stat.getPartitionPath(), stat));
        return content;
    }

    /** A commit that creates one file group. */
    private HoodieCommitMetadata inserts(String partition, String group, String... keys) throws Exception {
        HoodieWriteStat stat = stat(partition, group, write(partition, group, true, keys), "");
        stat.setNumWrites(keys.length);
        return content(WriteOperationType.UPSERT, stat);
    }

    /** Tells of files that are opened and folders that are listed. */
    public static final class Watched extends GuardedLocalFileSystem {
        private static volatile Consumer<Path> seen = path -> {};

        @Override
        public FSDataInputStream open(org.apache.hadoop.fs.Path path, int bufferSize) throws IOException {
            seen.accept(Path.of(path.toUri().getPath()));
            return super.open(path, bufferSize);
        }

        @Override
        public FileStatus[] listStatus(org.apache.hadoop.fs.Path path) throws IOException {
            seen.accept(Path.of(path.toUri().getPath()));
            return super.listStatus(path);
        }
    }

    private EtcdLockProvider provider(String index) {
        Configuration conf = TestTable.conf(true);
        conf.set("fs.file.impl", Watched.class.getName());
        Properties options = new Properties();
        options.putAll(Map.of(
                "hoodie.base.path",
                table.folder.toString(),
                "hoodie.write.lock.etcd.table_id",
                table.id,
                "hoodie.index.type",
                index));
        return new EtcdLockProvider(new LockConfiguration(options), HadoopFSUtils.getStorageConf(conf));
    }

    private void lookAhead() {
        EtcdLockProvider provider = provider("SIMPLE");
        assertTrue(provider.tryLock(5, TimeUnit.SECONDS));
        provider.unlock();
    }

    /**
     * Files that were compared before the lock are not read again under it. Files that were
     * committed in the meantime are.
     */
    @Test
    void keysAreComparedBeforeTheLock() throws Exception {
        String pending = request();
        HoodieCommitMetadata mine = inserts("p", "f", "a", "k");
        String file = marked(pending, mine, "CREATE");
        String apart = commit(inserts("p", "g", "b", "m"));
        lookAhead();
        String same = commit(inserts("p", "h", "b", "k"));
        lookAhead();
        String later = commit(inserts("p", "i", "b", "m"));
        Files.delete(table.folder.resolve(file));
        InsertConflicts underTheLock = new InsertConflicts(InsertRule.KEY, false, metaClient);
        assertEquals(Set.of(), underTheLock.between(mine, apart), "the file is not read again");
        assertEquals(Set.of("p/f", "p/h"), underTheLock.between(mine, same));
        assertEquals(Set.of("p/f", "p/i"), underTheLock.between(mine, later), "the file is read, and it is gone");
        assertEquals(
                Set.of("p/f", "p/g"),
                new InsertConflicts(InsertRule.PARTITION, false, metaClient).between(mine, apart));
    }

    /** What does not change is read once for all looks of a session. */
    @Test
    void aLaterLookListsTheTimelineAndReadsNothingElse() throws Exception {
        marked(request(), inserts("p", "f", "a", "k"), "CREATE");
        lookAhead();
        assertEquals(List.of(".hoodie/timeline"), seenBy(this::lookAhead));
    }

    /** Ours, which all checks compare, and one that Hudi makes by itself. */
    @Test
    void aCommitListsTheTimelineTwiceUnderTheLock() throws Exception {
        commit(inserts("p", "g", "b", "m"));
        String time = request();
        Configuration conf = TestTable.conf(true);
        conf.set("fs.file.impl", Watched.class.getName());
        HoodieTableMetaClient watched = HoodieTableMetaClient.builder()
                .setConf(HadoopFSUtils.getStorageConf(conf))
                .setBasePath(table.basePath())
                .build();
        Properties options = new Properties();
        options.putAll(Map.of(
                "hoodie.write.lock.etcd.table_id",
                table.id,
                "hoodie.write.lock.provider",
                EtcdLockProvider.class.getName(),
                "hoodie.write.concurrency.mode",
                "OPTIMISTIC_CONCURRENCY_CONTROL",
                "hoodie.clean.failed.writes.policy",
                "LAZY",
                CommitChecks.PROGRESS_WRITER,
                "ns/w",
                CommitChecks.PROGRESS_BASE,
                time,
                CommitChecks.SCHEMA_BASE,
                time,
                SnapshotCheck.BASE,
                time,
                SnapshotCheck.FLOOR,
                time));
        HoodieWriteConfig config = HoodieWriteConfig.newBuilder()
                .withPath(table.basePath())
                .forTable("t")
                .withProperties(options)
                .build();
        HoodieInstant current = metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "commit", time);
        assertTrue(table.acquire(session));
        try {
            List<String> seen = seenBy(() -> new FencedConflictResolutionStrategy()
                    .getCandidateInstants(watched, current, Option.empty(), Option.of(config)));
            assertEquals(2, Collections.frequency(seen, ".hoodie/timeline"), seen.toString());
        } finally {
            session.release();
        }
    }

    /** Files that are opened and folders that are listed, below the table's folder. */
    private List<String> seenBy(Runnable what) {
        List<String> found = new ArrayList<>();
        Watched.seen = path -> found.add(table.folder.relativize(path).toString());
        try {
            what.run();
        } finally {
            Watched.seen = path -> {};
        }
        return found;
    }

    /** Hudi's marker of the commit's file, whose path is returned. */
    private String marked(String pending, HoodieCommitMetadata mine, String kind) throws IOException {
        String file = mine.getWriteStats().get(0).getPath();
        Path marker = table.folder.resolve(".hoodie/.temp/" + pending + "/" + file + ".marker." + kind);
        Files.createDirectories(marker.getParent());
        Files.createFile(marker);
        return file;
    }

    /**
     * Others that commit while keys are compared without the lock: when the file of the last one is
     * read, the next one commits. Under the lock, files are read slowly.
     */
    private final class Others implements AutoCloseable {
        final List<String> times = new ArrayList<>();
        final Set<Long> triedUnder = new TreeSet<>(); // tokens
        private final Iterator<String> keys;
        private String last = "";
        private boolean commits;

        Others(Iterator<String> keys) throws Exception {
            this.keys = keys;
            next();
            Watched.seen = this::seen;
        }

        private void next() throws Exception {
            if (keys.hasNext()) {
                HoodieCommitMetadata content = inserts("p", "other" + times.size(), "b", keys.next());
                last = content.getWriteStats().get(0).getPath();
                times.add(commit(content));
            }
        }

        private void seen(Path path) {
            if (commits) {
                return;
            }
            if (session.holdsLock()) {
                triedUnder.add(session.heldNow().token);
                Pause.millis(path.toString().endsWith(".parquet") ? 100 : 0);
            } else if (path.endsWith(last)) {
                commits = true;
                try {
                    next();
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
                commits = false;
            }
        }

        @Override
        public void close() {
            Watched.seen = path -> {};
        }
    }

    /**
     * What completes after the last look is not compared under the lock when that takes long: the
     * lock is given back, and the files are compared while others can commit.
     */
    @Test
    void theLockIsNotHeldWhileKeysOfLateCommitsAreRead() throws Exception {
        HoodieCommitMetadata mine = inserts("p", "f", "a", "k");
        String file = marked(request(), mine, "CREATE");
        EtcdLockProvider provider = provider("SIMPLE");
        try (Others others = new Others(List.of("m", "n", "o", "p").iterator())) {
            assertTrue(provider.tryLock(5, TimeUnit.SECONDS));
            assertEquals(4, others.times.size());
            assertEquals(1, others.triedUnder.size(), "it was tried under one lock");
            assertFalse(others.triedUnder.contains(session.heldNow().token), "which was given back");
            Files.delete(table.folder.resolve(file));
            InsertConflicts underTheLock =
                    new InsertConflicts(InsertRule.KEY, false, HoodieTableMetaClient.reload(metaClient));
            for (String time : others.times) {
                assertEquals(Set.of(), underTheLock.between(mine, time), "the file is not read again");
            }
        }
        provider.unlock();
    }

    /** Late commits that can be told apart at once are compared under the lock, which is kept. */
    @Test
    void theLockIsKeptWhenKeysAreReadAtOnce() throws Exception {
        HoodieCommitMetadata mine = inserts("p", "f", "a", "k");
        String file = marked(request(), mine, "CREATE");
        StorageConfiguration<?> conf = HadoopFSUtils.getStorageConf(TestTable.conf(true));
        KeysAhead keys = new KeysAhead(session, new TypedProperties(), conf, TimeUnit.MINUTES.toNanos(1));
        keys.look();
        String apart = commit(inserts("p", "g", "b", "m"));
        String same = commit(inserts("p", "h", "b", "k"));
        assertTrue(table.acquire(session));
        assertFalse(keys.remain());
        session.release();
        Files.delete(table.folder.resolve(file));
        InsertConflicts underTheLock = new InsertConflicts(InsertRule.KEY, false, metaClient);
        assertEquals(Set.of(), underTheLock.between(mine, apart), "the file is not read again");
        assertEquals(Set.of("p/f", "p/h"), underTheLock.between(mine, same));
    }

    /** Others that go on committing keep nobody from a commit. */
    @Test
    void theLockIsGivenBackThreeTimesAtMost() throws Exception {
        HoodieCommitMetadata mine = inserts("p", "f", "a", "k");
        String time = request();
        marked(time, mine, "CREATE");
        EtcdLockProvider provider = provider("SIMPLE");
        String last;
        try (Others others =
                new Others(Stream.iterate("m", key -> key + "m").limit(17).iterator())) {
            assertTrue(provider.tryLock(5, TimeUnit.SECONDS));
            assertEquals(3, others.triedUnder.size());
            assertFalse(others.triedUnder.contains(session.heldNow().token));
            last = others.times.get(others.times.size() - 1);
        }
        HoodieTableMetaClient now = HoodieTableMetaClient.reload(metaClient);
        assertEquals(Set.of(), new InsertConflicts(InsertRule.KEY, false, now).between(mine, last));
        Files.delete(table.folder.resolve(mine.getWriteStats().get(0).getPath()));
        assertEquals(
                2,
                new InsertConflicts(InsertRule.KEY, false, now)
                        .between(mine, last)
                        .size(),
                "it is compared");
        provider.unlock();
    }

    @Test
    void aConflictThatIsFoundAfterTheLockWasGivenBackIsOne() throws Exception {
        HoodieCommitMetadata mine = inserts("p", "f", "a", "k");
        String time = request();
        marked(time, mine, "CREATE");
        EtcdLockProvider provider = provider("SIMPLE");
        try (Others others = new Others(List.of("m", "n", "o", "k").iterator())) {
            assertTrue(provider.tryLock(5, TimeUnit.SECONDS));
            assertEquals(1, others.triedUnder.size());
            assertFalse(others.triedUnder.contains(session.heldNow().token));
        }
        HoodieWriteConflictException e =
                assertThrows(HoodieWriteConflictException.class, () -> askedUnderTheLock("SIMPLE", mine, time, 4));
        assertTrue(e.getMessage().endsWith("inserted the same record keys: p/f, p/other3"), e.getMessage());
        provider.unlock();
    }

    /** Nothing is read under the lock when nobody has completed anything since the last look. */
    @Test
    void theTimelineIsNotReadAgainWhenTheClockHasNotMoved() throws Exception {
        marked(request(), inserts("p", "f", "a", "k"), "CREATE");
        commit(inserts("p", "g", "b", "m"));
        List<Path> underTheLock = new ArrayList<>();
        EtcdLockProvider provider = provider("SIMPLE");
        Watched.seen = path -> {
            if (session.holdsLock()) {
                underTheLock.add(path);
            }
        };
        assertTrue(provider.tryLock(5, TimeUnit.SECONDS));
        Watched.seen = path -> {};
        assertEquals(List.of(), underTheLock);
        assertNull(session.clockWhileFree(), "it may move before the file of a commit is there");
        provider.unlock();
        assertEquals(table.clock(), session.clockWhileFree());
    }

    /**
     * A file into which new keys are packed is compared before the lock, too; one in which rows are
     * changed is not.
     */
    @ParameterizedTest
    @CsvSource({"1, 0", "0, 2"})
    void packedKeysAreComparedBeforeTheLock(int packed, int conflict) throws Exception {
        String before = write("p", "f", true, "a");
        HoodieCommitMetadata mine =
                content(WriteOperationType.UPSERT, stat("p", "f", write("p", "f", true, "a", "k"), before));
        HoodieWriteStat plan = stat("p", "f", "", before);
        plan.setNumInserts(packed);
        String file = marked(request(content(WriteOperationType.UPSERT, plan)), mine, "MERGE");
        String apart = commit(inserts("p", "g", "b", "m"));
        lookAhead();
        Files.delete(table.folder.resolve(file));
        assertEquals(
                conflict,
                new InsertConflicts(InsertRule.KEY, false, metaClient)
                        .between(mine, apart)
                        .size());
    }

    private String request() {
        return request(new HoodieCommitMetadata());
    }

    private String request(HoodieCommitMetadata plan) {
        String time = TestTable.time(0);
        HoodieInstant requested = metaClient.createNewInstant(HoodieInstant.State.REQUESTED, "commit", time);
        assertTrue(table.acquire(session));
        metaClient.getActiveTimeline().createNewInstant(requested);
        metaClient.getActiveTimeline().transitionRequestedToInflight(requested, Option.of(plan));
        session.release();
        return time;
    }

    /** A commit of another process; returns its requested time. */
    private String commit(HoodieCommitMetadata content) {
        String time = request();
        assertTrue(table.acquire(session));
        session.conflictsChecked(time);
        metaClient
                .getActiveTimeline()
                .saveAsComplete(
                        metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "commit", time), Option.of(content));
        session.release();
        metaClient.reloadActiveTimeline();
        return time;
    }

    private Set<String> shared(InsertRule rule, HoodieCommitMetadata mine, HoodieCommitMetadata other) {
        return new InsertConflicts(rule, false, metaClient).between(mine, commit(other));
    }

    private Set<String> shared(HoodieCommitMetadata mine, HoodieCommitMetadata other) {
        return shared(InsertRule.KEY, mine, other);
    }

    /**
     * Calls the strategy as Hudi does under the lock, for a commit that began before the other one.
     */
    private void askedByHudi(String index, HoodieCommitMetadata mine, HoodieCommitMetadata theirs) throws Exception {
        String time = request();
        commit(theirs);
        askedByHudi(index, mine, time);
    }

    private void askedByHudi(String index, HoodieCommitMetadata mine, String time) throws Exception {
        assertTrue(table.acquire(session));
        try {
            askedUnderTheLock(index, mine, time, 1);
        } finally {
            session.release();
        }
    }

    private void askedUnderTheLock(String index, HoodieCommitMetadata mine, String time, int candidates)
            throws Exception {
        Properties options = new Properties();
        options.putAll(Map.of(
                "hoodie.base.path",
                table.folder.toString(),
                "hoodie.write.lock.etcd.table_id",
                table.id,
                "hoodie.write.lock.provider",
                EtcdLockProvider.class.getName(),
                "hoodie.write.concurrency.mode",
                "OPTIMISTIC_CONCURRENCY_CONTROL",
                "hoodie.clean.failed.writes.policy",
                "LAZY",
                "hoodie.index.type",
                index,
                "hoodie.index.bucket.engine",
                "SIMPLE",
                "hoodie.datasource.write.recordkey.field",
                "id"));
        HoodieWriteConfig config = HoodieWriteConfig.newBuilder()
                .withPath(table.basePath())
                .forTable("t")
                .withProperties(options)
                .build();
        HoodieInstant current = metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "commit", time);
        FencedConflictResolutionStrategy strategy = new FencedConflictResolutionStrategy();
        List<HoodieInstant> found = strategy.getCandidateInstants(
                        metaClient, current, Option.empty(), Option.of(config))
                .collect(Collectors.toList());
        assertEquals(candidates, found.size());
        ConcurrentOperation own = new ConcurrentOperation(current, mine);
        for (HoodieInstant each : found) {
            ConcurrentOperation other = new ConcurrentOperation(each, metaClient);
            if (strategy.hasConflict(own, other)) {
                strategy.resolveConflict(null, own, other);
            }
        }
    }

    @Test
    void theLaterCommitOfOneNewKeyIsRefused() throws Exception {
        HoodieWriteConflictException e = assertThrows(
                HoodieWriteConflictException.class,
                () -> askedByHudi("SIMPLE", inserts("p", "f", "a", "k"), inserts("p", "g", "b", "k")));
        assertTrue(e.getMessage().endsWith("inserted the same record keys: p/f, p/g"), e.getMessage());
        assertEquals(
                "[\"p/f\",\"p/g\"]",
                Json.parse(session.lastConflict()).get("fileGroups").toString());
        askedByHudi("SIMPLE", inserts("p", "h", "a", "c"), inserts("p", "i", "b", "d"));
    }

    /**
     * The runtime looks up keys before its write is requested. Commits that complete in between are
     * compared because of that read (F62).
     */
    @Test
    void whatCompletesBetweenTheLookAndTheRequestIsCompared() throws Exception {
        session.reads().read(TableReads.Base.of(metaClient.reloadActiveTimeline()));
        session.reads().forget(commit(inserts("p", "g", "b", "k")));
        HoodieCommitMetadata mine = inserts("p", "f", "a", "k");
        String time = request();
        HoodieWriteConflictException e =
                assertThrows(HoodieWriteConflictException.class, () -> askedByHudi("SIMPLE", mine, time));
        assertTrue(e.getMessage().endsWith("inserted the same record keys: p/f, p/g"), e.getMessage());
        askedByHudi("SIMPLE", inserts("p", "h", "a", "c"), time);
    }

    @Test
    void whatCompletesBetweenTheLookAndTheRequestIsComparedBeforeTheLock() throws Exception {
        session.reads().read(TableReads.Base.of(metaClient.reloadActiveTimeline()));
        String apart = commit(inserts("p", "g", "b", "m"));
        session.reads().forget(apart);
        HoodieCommitMetadata mine = inserts("p", "f", "a", "k");
        String file = marked(request(), mine, "CREATE");
        lookAhead();
        Files.delete(table.folder.resolve(file));
        assertEquals(Set.of(), new InsertConflicts(InsertRule.KEY, false, metaClient).between(mine, apart));
    }

    @Test
    void theGateSaysWhatIsCompared() throws Exception {
        table.gateSays("insertConflicts", "Partition");
        assertThrows(
                HoodieWriteConflictException.class,
                () -> askedByHudi("SIMPLE", inserts("p", "f", "a"), inserts("p", "g", "b")));
        table.gateSays("insertConflicts", "Ignore");
        askedByHudi("SIMPLE", inserts("p", "f", "k"), inserts("p", "g", "k"));
        table.gateSays("insertConflicts", "Key");
        assertThrows(
                HoodieWriteConflictException.class,
                () -> askedByHudi("SIMPLE", inserts("p", "f", "k"), inserts("p", "g", "k")));
    }

    /**
     * Two commits to one bucket already conflict, and different buckets have no key in common. So
     * nothing is read.
     */
    @Test
    void bucketsAreNotComparedByKey() throws Exception {
        HoodieCommitMetadata mine =
                content(WriteOperationType.UPSERT, stat("p", "00000001-a", ".00000001-a_1.log.1_0-0-0", ""));
        HoodieCommitMetadata theirs =
                content(WriteOperationType.UPSERT, stat("p", "00000002-a", ".00000002-a_1.log.1_0-0-0", ""));
        askedByHudi("BUCKET", mine, theirs);
        table.gateSays("insertConflicts", "Partition");
        assertThrows(HoodieWriteConflictException.class, () -> askedByHudi("BUCKET", mine, theirs));
    }

    @ParameterizedTest
    @CsvSource({"p, true, true", "p, true, false", "p, false, false", "q, true, true"})
    void exactWithAndWithoutFooters(String partition, boolean mine, boolean theirs) throws Exception {
        HoodieCommitMetadata one =
                content(WriteOperationType.UPSERT, stat("p", "f", write("p", "f", mine, "a", "c", "k", "z"), ""));
        HoodieCommitMetadata same =
                content(WriteOperationType.UPSERT, stat(partition, "g", write(partition, "g", theirs, "b", "k"), ""));
        HoodieCommitMetadata other =
                content(WriteOperationType.UPSERT, stat(partition, "g", write(partition, "g", theirs, "b", "l"), ""));
        assertEquals(partition.equals("p") ? Set.of("p/f", "p/g") : Set.of(), shared(one, same));
        assertEquals(Set.of(), shared(one, other));
    }

    /**
     * Few keys against many: the Bloom filter of the large file is consulted before the file is
     * read.
     */
    @Test
    void fewKeysAgainstMany() throws Exception {
        String[] many = IntStream.range(0, 100).mapToObj(n -> "key-" + n).toArray(String[]::new);
        assertEquals(Set.of("p/f", "p/g"), shared(inserts("p", "f", "key-50"), inserts("p", "g", many)));
        assertEquals(Set.of(), shared(inserts("p", "f", "key-50-"), inserts("p", "g", many)));
        assertEquals(Set.of("p/f", "p/g"), shared(inserts("p", "g", many), inserts("p", "f", "key-50")));
    }

    @Test
    void everyFileIsCompared() throws Exception {
        HoodieWriteStat[] mine = new HoodieWriteStat[20];
        HoodieWriteStat[] theirs = new HoodieWriteStat[20];
        for (int n = 0; n < mine.length; n++) {
            mine[n] = stat("p", "f" + n, write("p", "f" + n, true, "a" + n, "last" + (n == 19 ? "" : n), "z" + n), "");
            theirs[n] = stat(
                    "p", "g" + n, write("p", "g" + n, true, "b" + n, "last" + (n == 18 ? "" : "-" + n), "y" + n), "");
        }
        assertEquals(
                Set.of("p/f19", "p/g18"),
                shared(content(WriteOperationType.UPSERT, mine), content(WriteOperationType.UPSERT, theirs)));
    }

    /** New keys are packed into a small file. Keys that the file already had were not inserted. */
    @Test
    void keysOfTheVersionBeforeWereNotInserted() throws Exception {
        String before = write("p", "f", true, "k");
        HoodieCommitMetadata packed =
                content(WriteOperationType.UPSERT, stat("p", "f", write("p", "f", true, "k", "n"), before));
        assertEquals(Set.of(), shared(packed, inserts("p", "g", "k", "m")));
        assertEquals(Set.of("p/f", "p/g"), shared(packed, inserts("p", "g", "k", "n")));
        assertEquals(Set.of(), shared(inserts("p", "g", "k"), packed));
        assertEquals(Set.of("p/f", "p/g"), shared(inserts("p", "g", "n"), packed));
    }

    /** The order of a range is not known. UTF-16 and UTF-8 order these keys differently. */
    @Test
    void rangesOfKeysThatAreOrderedInTwoWaysTellNothing() throws Exception {
        String smile = "\uD83D\uDE00";
        String wave = "\uFF5Ex";
        HoodieCommitMetadata one = inserts("p", "f", "a", smile);
        HoodieCommitMetadata two = inserts("p", "g", smile, wave);
        orderedByBytes(two, smile, wave);
        assertEquals(Set.of("p/f", "p/g"), shared(one, two));
        assertEquals(Set.of(), shared(one, inserts("p", "h", wave)));
    }

    /**
     * Rewrites the file's range as a writer would that orders keys by UTF-8 bytes: swaps the least
     * and the greatest key in the footer.
     */
    private void orderedByBytes(HoodieCommitMetadata of, String least, String greatest) throws Exception {
        Path file = Path.of(table.folder.toString(), of.getWriteStats().get(0).getPath());
        String text = Files.readString(file, StandardCharsets.ISO_8859_1);
        String changed = text;
        for (String[] each :
                new String[][] {{"hoodie_min_record_key", least, greatest}, {"hoodie_max_record_key", greatest, least}
                }) {
            int at = changed.indexOf(bytes(each[1]), changed.lastIndexOf(each[0]));
            assertTrue(at > 0 && bytes(each[1]).length() == bytes(each[2]).length());
            changed = changed.substring(0, at)
                    + bytes(each[2])
                    + changed.substring(at + bytes(each[1]).length());
        }
        assertNotEquals(text, changed);
        Files.writeString(file, changed, StandardCharsets.ISO_8859_1);
        Files.deleteIfExists(file.resolveSibling("." + file.getFileName() + ".crc"));
    }

    private static String bytes(String text) {
        return new String(text.getBytes(StandardCharsets.UTF_8), StandardCharsets.ISO_8859_1);
    }

    @ParameterizedTest
    @EnumSource(
            value = WriteOperationType.class,
            names = {"COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX", "BOOTSTRAP"})
    void servicesInsertNothing(WriteOperationType service) throws Exception {
        HoodieCommitMetadata moved = inserts("p", "f", "k");
        moved.setOperationType(service);
        assertEquals(Set.of(), shared(moved, inserts("p", "g", "k")));
        assertEquals(Set.of(), shared(inserts("p", "g", "k"), moved));
    }

    @Test
    void onlyInsertsCount() throws Exception {
        HoodieCommitMetadata updates = inserts("p", "f", "k");
        updates.getWriteStats().forEach(stat -> stat.setPrevCommit("20200101000000000"));
        updates.getWriteStats().forEach(stat -> stat.setNumInserts(0));
        assertEquals(Set.of(), shared(updates, inserts("p", "g", "k")));
        assertEquals(Set.of(), shared(InsertRule.PARTITION, updates, inserts("p", "g", "k")));
    }

    @Test
    void whatCannotBeReadIsAConflict() throws Exception {
        HoodieCommitMetadata gone = inserts("p", "g", "a");
        Files.delete(
                Path.of(table.folder.toString(), gone.getWriteStats().get(0).getPath()));
        assertEquals(Set.of("p/f", "p/g"), shared(inserts("p", "f", "z"), gone));
        HoodieCommitMetadata log =
                content(WriteOperationType.UPSERT, stat("p", "g", ".g_20200101000000000.log.1_0-0-0", ""));
        assertEquals(Set.of("p/f", "p/g"), shared(inserts("p", "f", "z"), log));
    }

    @Test
    void manyKeysThatWereThereBefore() throws Exception {
        String[] keys = IntStream.range(0, 250_000)
                .mapToObj(n -> String.format("key-%09d", n))
                .toArray(String[]::new);
        String before = write("p", "f", true, keys);
        String[] more = Arrays.copyOf(keys, keys.length + 1);
        more[keys.length] = "key-new";
        HoodieCommitMetadata packed =
                content(WriteOperationType.UPSERT, stat("p", "f", write("p", "f", true, more), before));
        assertEquals(Set.of(), shared(packed, inserts("p", "g", keys)));
        assertEquals(Set.of("p/f", "p/g"), shared(packed, inserts("p", "g", more)));
    }

    /**
     * Tells the cost of comparing a million inserted keys with another million, in 10 files each,
     * and how long the lock is held when the others are committed after the last look; and of a
     * round that compares nothing ({@code Ignore}). One line of JSON, printed, and appended to the
     * file {@code INSERT_CONFLICTS_COSTS} if that is set (make bench-keys).
     */
    @ParameterizedTest
    @ValueSource(strings = {"ordered", "random"})
    @Tag("extra")
    void theCostOfAMillionKeysBesideAMillion(String keys) throws Exception {
        Costs costs = new Costs(keys);
        StorageConfiguration<?> conf = HadoopFSUtils.getStorageConf(TestTable.conf(true));
        HoodieCommitMetadata mine = million(keys, "f", 0);
        String theirs = commit(million(keys, "g", 1));
        for (int round = 0; round < 3; round++) {
            assertTrue(costs.of("compared", () -> areApart(InsertRule.KEY, mine, theirs)));
        }
        assertTrue(costs.of("ignored", () -> areApart(InsertRule.IGNORE, mine, theirs)));
        String pending = request();
        for (HoodieWriteStat stat : mine.getWriteStats()) {
            marked(pending, content(WriteOperationType.UPSERT, stat), "CREATE");
        }
        KeysAhead ahead = new KeysAhead(session, new TypedProperties(), conf);
        ahead.look();
        String late = commit(million(keys, "h", 2));
        assertTrue(table.acquire(session));
        boolean given = costs.of("heldForTheLateCommit", ahead::remain);
        session.release();
        if (given) {
            costs.of("withoutTheLock", () -> {
                ahead.look();
                return true;
            });
        }
        assertTrue(table.acquire(session));
        assertTrue(costs.of("heldAtTheCommit", () -> !ahead.remain() && areApart(InsertRule.KEY, mine, late)));
        session.release();
        assertTrue(table.acquire(session));
        assertTrue(costs.of("heldAndIgnored", () -> areApart(InsertRule.IGNORE, mine, late)));
        session.release();
        costs.tell();
    }

    private boolean areApart(InsertRule rule, HoodieCommitMetadata mine, String other) {
        return new InsertConflicts(rule, false, metaClient).between(mine, other).isEmpty();
    }

    /** Milliseconds, and those of the processor, of each step of one run. */
    private static final class Costs {
        private static final double NANOS = 1e6;
        private final Map<String, List<List<Double>>> steps = new TreeMap<>();
        private final String keys;

        Costs(String keys) {
            this.keys = keys;
        }

        boolean of(String step, BooleanSupplier work) {
            long begin = System.nanoTime();
            long used = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
            boolean result = work.getAsBoolean();
            double busy = (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - used) / NANOS;
            steps.computeIfAbsent(step, name -> new ArrayList<>())
                    .add(List.of((System.nanoTime() - begin) / NANOS, busy));
            return result;
        }

        void tell() throws IOException {
            String line = new ObjectMapper().writeValueAsString(Map.of("keys", keys, "millis", steps));
            System.out.println("COST " + line);
            String file = System.getenv("INSERT_CONFLICTS_COSTS");
            if (file != null) {
                Files.writeString(Path.of(file), line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            }
        }
    }

    private HoodieCommitMetadata million(String how, String group, int seed) throws Exception {
        Random random = new Random(seed);
        HoodieWriteStat[] stats = new HoodieWriteStat[10];
        for (int file = 0; file < stats.length; file++) {
            String[] keys = new String[100_000];
            for (int n = 0; n < keys.length; n++) {
                keys[n] = how.equals("random")
                        ? new UUID(random.nextLong(), random.nextLong()).toString()
                        : String.format("%d-%02d-%06d", seed, file, n);
            }
            stats[file] = stat("p", group + file, write("p", group + file, true, keys), "");
            stats[file].setNumWrites(keys.length);
        }
        return content(WriteOperationType.UPSERT, stats);
    }

    @Test
    void anUnknownWordOfALaterVersionIsTheStrictest() {
        assertEquals(InsertRule.KEY, InsertRule.of(""));
        assertEquals(InsertRule.PARTITION, InsertRule.of("Range"));
    }
}
