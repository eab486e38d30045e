package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.protocol.TableStorage;
import io.hudioperator.session.Session;
import io.hudioperator.support.TestTable;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Tests that every real store must pass, through Hudi's own timeline: the probe finds nothing
 * missing, and a commit succeeds only under the lock.
 */
abstract class StoreContract {
    static final String INSTANT = "20260101000000000";
    static final String COMPLETED = INSTANT + "_20260101000001000.commit";

    final TestTable table = new TestTable();
    final String base = root() + "/lake/" + table.id;

    /** Scheme and authority. */
    abstract String root();

    /** The class that the wrapper delegates to. */
    abstract String delegate();

    /** The configuration that a client of the store needs. */
    abstract Configuration client();

    @AfterEach
    void close() {
        table.close();
    }

    final Configuration conf() {
        Configuration conf = client();
        String scheme = root().substring(0, root().indexOf(':'));
        conf.set("fs." + scheme + ".impl", GuardedFileSystem.class.getName());
        conf.set("hudi.operator.guard." + scheme + ".delegate", delegate());
        return conf;
    }

    final FileSystem guarded() throws IOException {
        return new Path(base).getFileSystem(conf());
    }

    /** A client without a session, as in another process. */
    final FileSystem another() throws IOException {
        return FileSystem.newInstance(new Path(base).toUri(), client());
    }

    final Session session() {
        return table.session("ns.a", Map.of("basePath", base));
    }

    final boolean acquire(Session session) throws InterruptedException {
        return session.acquire(TimeUnit.SECONDS.toNanos(20), new TableStorage(base, conf()));
    }

    final HoodieTableMetaClient create() throws IOException {
        return HoodieTableMetaClient.newTableBuilder()
                .setTableType(HoodieTableType.COPY_ON_WRITE)
                .setTableName("t")
                .initTable(HadoopFSUtils.getStorageConf(conf()), base);
    }

    final Path timeline(String name) {
        return new Path(base + "/.hoodie/timeline/" + name);
    }

    static HoodieInstant begin(HoodieTableMetaClient metaClient, String time) {
        metaClient
                .getActiveTimeline()
                .createNewInstant(metaClient.createNewInstant(HoodieInstant.State.REQUESTED, "commit", time));
        metaClient.getActiveTimeline().transitionRequestedToInflight("commit", time);
        return metaClient.createNewInstant(HoodieInstant.State.INFLIGHT, "commit", time);
    }

    static void complete(HoodieTableMetaClient metaClient, HoodieInstant inflight) {
        HoodieCommitMetadata content = new HoodieCommitMetadata();
        content.setOperationType(WriteOperationType.UPSERT);
        metaClient.getActiveTimeline().saveAsComplete(inflight, Option.of(content));
    }

    static int completed(HoodieTableMetaClient metaClient) {
        return metaClient.reloadActiveTimeline().filterCompletedInstants().countInstants();
    }

    @Test
    void itHasEverythingThatTheProtocolLeansOn() throws IOException {
        assertEquals(List.of(), StoreProbe.missing(base, conf()));
        assertFalse(guarded().exists(new Path(base, StoreProbe.FOLDER)));
    }

    @Test
    void aCommitIsThereUnderTheLock() throws Exception {
        Session session = session();
        HoodieTableMetaClient metaClient = create();
        assertTrue(acquire(session));
        String time = TestTable.time(0);
        HoodieInstant inflight = begin(metaClient, time);
        assertEquals("Pending", table.state(time));
        session.conflictsChecked(time);
        complete(metaClient, inflight);
        session.release();
        assertNull(table.instant(time));
        assertNull(table.lock());
        assertEquals(1, completed(metaClient));
        assertTrue(guarded().exists(new Path(base, ".hoodie/hudi-operator/" + table.id)));
    }

    @Test
    void withoutTheLockNothingIsCompleted() throws Exception {
        Session session = session();
        HoodieTableMetaClient metaClient = create();
        assertTrue(acquire(session));
        String time = TestTable.time(0);
        HoodieInstant inflight = begin(metaClient, time);
        session.conflictsChecked(time);
        session.release();
        assertThrows(RuntimeException.class, () -> complete(metaClient, inflight));
        assertEquals(0, completed(metaClient));
        assertEquals("Pending", table.state(time));
    }
}
