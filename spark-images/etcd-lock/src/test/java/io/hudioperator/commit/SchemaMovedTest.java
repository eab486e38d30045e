package io.hudioperator.commit;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.EtcdLockProvider;
import io.hudioperator.FencedConflictResolutionStrategy;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.Json;
import io.hudioperator.session.Session;
import io.hudioperator.support.TestTable;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieWriteConflictException;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/**
 * A commit whose columns were fitted to an outdated schema of the table is a conflict: the write is
 * repeated (R57).
 */
class SchemaMovedTest {
    private static final String OLD = schema("");
    private static final String NEW = schema(",{\"name\":\"c\",\"type\":[\"null\",\"string\"],\"default\":null}");
    private static final String NEW_AND_MORE = schema(
            ",{\"name\":\"e\",\"type\":\"int\"}" + ",{\"name\":\"c\",\"type\":[\"null\",\"string\"],\"default\":null}");
    private static final String OTHER = schema(",{\"name\":\"d\",\"type\":[\"null\",\"string\"],\"default\":null}");

    private final TestTable table = new TestTable();
    private Session session;
    private HoodieTableMetaClient metaClient;

    private static String schema(String more) {
        return "{\"type\":\"record\",\"name\":\"t\",\"fields\":[{\"name\":\"id\",\"type\":\"int\"}" + more + "]}";
    }

    @BeforeEach
    void begin() throws Exception {
        session = table.session("ns.a");
        metaClient = table.create(HoodieTableType.MERGE_ON_READ);
    }

    @AfterEach
    void close() {
        table.close();
    }

    /** Commits with that schema; returns the completion time. */
    private String commit(int second, WriteOperationType operation, String schema) {
        assertTrue(table.acquire(session));
        String time = TestTable.time(second);
        HoodieInstant requested = metaClient.createNewInstant(HoodieInstant.State.REQUESTED, "deltacommit", time);
        HoodieInstant inflight = metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "deltacommit", time);
        metaClient.getActiveTimeline().createNewInstant(requested);
        metaClient.getActiveTimeline().transitionRequestedToInflight(requested, Option.empty());
        session.conflictsChecked(time);
        HoodieCommitMetadata content = new HoodieCommitMetadata();
        content.setOperationType(operation);
        content.addMetadata(HoodieCommitMetadata.SCHEMA_KEY, schema);
        metaClient.getActiveTimeline().saveAsComplete(inflight, Option.of(content));
        session.release();
        return metaClient.reloadActiveTimeline().getLatestCompletionTime().get();
    }

    private Properties options(String base, String mine) {
        Map<String, String> all = new HashMap<>();
        all.put("hoodie.base.path", table.folder.toString());
        all.put("hoodie.write.lock.etcd.table_id", table.id);
        all.put("hoodie.write.lock.provider", EtcdLockProvider.class.getName());
        all.put("hoodie.clean.failed.writes.policy", "LAZY");
        if (base != null) { // of a HudiWriter
            all.put(CommitChecks.SCHEMA_BASE, base);
        }
        all.put(HoodieWriteConfig.AVRO_SCHEMA_STRING.key(), mine);
        Properties options = new Properties();
        options.putAll(all);
        return options;
    }

    /**
     * What Hudi does under the lock in the optimistic mode.
     *
     * @param base null: a program's write, whose rows were not fitted to the table
     * @param begun the last commit that Hudi had seen when it began to write, or null
     */
    private void check(String base, String mine, HoodieInstant begun) {
        check(base, mine, begun, TestTable.time(9));
    }

    private void check(String base, String mine, HoodieInstant begun, String instant) {
        Properties options = options(base, mine);
        options.setProperty("hoodie.write.concurrency.mode", "OPTIMISTIC_CONCURRENCY_CONTROL");
        HoodieWriteConfig config = HoodieWriteConfig.newBuilder()
                .withPath(table.basePath())
                .forTable("t")
                .withProperties(options)
                .build();
        HoodieInstant current = metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "deltacommit", instant);
        assertTrue(table.acquire(session));
        try {
            new FencedConflictResolutionStrategy()
                    .getCandidateInstants(metaClient, current, Option.ofNullable(begun), Option.of(config));
        } finally {
            session.release();
        }
    }

    private HoodieInstant last() {
        return metaClient
                .reloadActiveTimeline()
                .getCommitsTimeline()
                .filterCompletedInstants()
                .lastInstant()
                .get();
    }

    @Test
    void betweenTheLookAndTheBeginningOfTheWrite() {
        String base = commit(0, WriteOperationType.UPSERT, OLD);
        HoodieInstant first = last();
        String moved = commit(1, WriteOperationType.UPSERT, NEW);
        HoodieInstant second = last();
        for (String mine : new String[] {OLD, OTHER}) {
            assertCode(
                    ErrorCode.SCHEMA_MOVED,
                    assertThrows(HoodieWriteConflictException.class, () -> check(base, mine, second)));
        }
        check(base, NEW, second); // both added the same column
        check(moved, OTHER, second); // the columns were fitted to the current schema
        check(base, OLD, first); // Hudi began before that commit and checks it itself
        check(base, OLD, null);
    }

    /** Hudi may hand over a client that has listed the timeline before the lock. */
    @Test
    void sinceHudiHasListedTheTimeline() {
        String base = commit(0, WriteOperationType.UPSERT, OLD);
        HoodieTableMetaClient early = HoodieTableMetaClient.builder()
                .setConf(HadoopFSUtils.getStorageConf(TestTable.conf(true)))
                .setBasePath(table.basePath())
                .setLoadActiveTimelineOnLoad(true)
                .build();
        commit(1, WriteOperationType.UPSERT, NEW);
        HoodieInstant begun = last();
        metaClient = early;
        refused(() -> check(base, OLD, begun));
    }

    private void refused(Executable write) {
        assertCode(ErrorCode.SCHEMA_MOVED, assertThrows(HoodieWriteConflictException.class, write));
    }

    /** F365: nobody has fitted the rows of a program to the table. */
    @Test
    void aProgramTakesNoColumnAway() {
        commit(0, WriteOperationType.UPSERT, OLD);
        HoodieInstant first = last();
        commit(1, WriteOperationType.UPSERT, NEW);
        HoodieInstant second = last();
        refused(() -> check(null, OLD, second));
        refused(() -> check(null, OTHER, second));
        check(null, NEW, second);
        check(null, NEW_AND_MORE, second); // it brings a column itself
        check(null, OLD, first); // Hudi began before that commit and checks it itself
        commit(2, WriteOperationType.COMPACT, OLD);
        HoodieInstant service = last();
        refused(() -> check(null, OLD, service));
    }

    @Test
    void aProgramsOwnColumnIsNotHidden() {
        commit(0, WriteOperationType.UPSERT, OLD);
        HoodieInstant first = last();
        String begun = TestTable.time(0);
        commit(1, WriteOperationType.UPSERT, OLD);
        refused(() -> check(null, NEW, first, begun)); // the commit that began last does not have the column
        check(null, OLD, first, begun);
        check(null, NEW, last());
    }

    @Test
    void typesAndFieldsOfAProgram() {
        String number = column("\"int\"");
        String wide = column("[\"null\",\"long\"]");
        String one = column("{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"x\",\"type\":\"int\"}]}");
        String two = one.replace("{\"name\":\"x\"", "{\"name\":\"y\",\"type\":[\"null\",\"int\"]},{\"name\":\"x\"");
        assertEquals(List.of(), ColumnsOfPrograms.lost(number, wide));
        assertEquals(List.of("c (\"long\")"), ColumnsOfPrograms.lost(wide, number));
        assertEquals(List.of("c"), ColumnsOfPrograms.lost(wide, OLD));
        assertEquals(List.of(), ColumnsOfPrograms.lost(OLD, wide));
        assertEquals(List.of("c.y"), ColumnsOfPrograms.lost(two, one.replace("\"r\"", "\"s\"")));
        assertEquals(List.of(), ColumnsOfPrograms.lost(one, two));
        String list = column("[\"null\",{\"type\":\"array\",\"items\":" + type(two) + "}]");
        assertEquals(
                List.of("c.element.y"),
                ColumnsOfPrograms.lost(list, column("{\"type\":\"array\",\"items\":" + type(one) + "}")));
        String map = column("{\"type\":\"map\",\"values\":" + type(two) + "}");
        assertEquals(
                List.of("c.value.y"),
                ColumnsOfPrograms.lost(map, column("{\"type\":\"map\",\"values\":" + type(one) + "}")));
    }

    private static String column(String type) {
        return schema(",{\"name\":\"c\",\"type\":" + type + "}");
    }

    private static String type(String schema) {
        return Json.parse(schema).path("fields").path(1).path("type").toString();
    }

    @Test
    void aProgramInTheNonBlockingMode() {
        commit(0, WriteOperationType.UPSERT, OLD);
        commit(1, WriteOperationType.UPSERT, NEW);
        table.concurrency("NonBlocking");
        LockConfiguration client = client(options(null, OLD));
        EtcdLockProvider begins = provider(client);
        assertTrue(begins.tryLock(5, TimeUnit.SECONDS));
        String time = TestTable.time(2);
        metaClient
                .getActiveTimeline()
                .createNewInstant(metaClient.createNewInstant(HoodieInstant.State.REQUESTED, "deltacommit", time));
        begins.unlock();
        refused(() -> provider(client).tryLock(5, TimeUnit.SECONDS));
        assertNull(table.lock());
        TypedProperties merge = client.getConfig();
        merge.putAll(options(null, NEW));
        merge.setProperty(HoodieWriteConfig.WRITE_SCHEMA_OVERRIDE.key(), OLD);
        refused(() -> provider(client).tryLock(5, TimeUnit.SECONDS));
        merge.setProperty(HoodieWriteConfig.WRITE_SCHEMA_OVERRIDE.key(), NEW);
        EtcdLockProvider good = provider(client);
        assertTrue(good.tryLock(5, TimeUnit.SECONDS));
        good.unlock();
    }

    @Test
    void aCommitWithTheSameSchemaMovesNothing() {
        String base = commit(0, WriteOperationType.UPSERT, OLD);
        commit(1, WriteOperationType.UPSERT, OLD);
        check(base, OTHER, last());
    }

    @Test
    void aTableServiceMovesNothing() {
        String base = commit(0, WriteOperationType.UPSERT, OLD);
        commit(1, WriteOperationType.COMPACT, NEW);
        check(base, OLD, last());
    }

    @Test
    void inTheNonBlockingModeNothingMayHaveMoved() {
        String base = commit(0, WriteOperationType.UPSERT, OLD);
        String moved = commit(1, WriteOperationType.UPSERT, NEW);
        table.concurrency("NonBlocking");
        assertCode(ErrorCode.SCHEMA_MOVED, assertThrows(HoodieWriteConflictException.class, () -> lock(base)));
        assertNull(table.lock());
        EtcdLockProvider good = provider(moved);
        assertTrue(good.tryLock(5, TimeUnit.SECONDS));
        good.unlock();
    }

    private boolean lock(String base) {
        return provider(base).tryLock(5, TimeUnit.SECONDS);
    }

    private EtcdLockProvider provider(String base) {
        return provider(client(options(base, OLD)));
    }

    private static LockConfiguration client(Properties options) {
        options.setProperty("hoodie.write.concurrency.mode", "NON_BLOCKING_CONCURRENCY_CONTROL");
        return new LockConfiguration(options);
    }

    private EtcdLockProvider provider(LockConfiguration client) {
        return new EtcdLockProvider(client, HadoopFSUtils.getStorageConf(TestTable.conf(true)));
    }
}
