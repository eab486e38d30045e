package io.hudioperator;

import io.hudioperator.commit.ColumnsOfPrograms;
import io.hudioperator.commit.CommitChecks;
import io.hudioperator.commit.KeysAhead;
import io.hudioperator.commit.SnapshotCheck;
import io.hudioperator.commit.WriteOptions;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TablePath;
import io.hudioperator.protocol.TableStorage;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.lock.LockProvider;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieLockException;
import org.apache.hudi.storage.StorageConfiguration;

/**
 * Hudi's view of the lock ({@code hoodie.write.lock.provider}). Hudi creates one provider for each
 * lock cycle. State that outlives a cycle is in the {@link Session} of the table.
 */
public final class EtcdLockProvider implements LockProvider<String> {
    static final String TABLE_ID = "hoodie.write.lock.etcd.table_id";
    private static final String MODE = "hoodie.write.concurrency.mode";
    private static final String FAILED_WRITES = "hoodie.clean.failed.writes.policy";
    private static final String BASE_PATH = "hoodie.base.path";

    /** Hudi makes one for each write client, and hands it to all providers of that client. */
    private final LockConfiguration client;

    private final TypedProperties props;
    private final StorageConfiguration<?> storageConf;
    private final Object entry = new Object(); // one thread waits at a time; close() and unlock() do not wait for it
    private volatile Session session;
    private boolean mine;
    private boolean closed;

    public EtcdLockProvider(LockConfiguration lockConfiguration, StorageConfiguration<?> storageConf) {
        this.client = lockConfiguration;
        this.props = lockConfiguration.getConfig();
        this.storageConf = storageConf;
    }

    private Session session() {
        String tableId = props.getString(TABLE_ID, "");
        if (tableId.isEmpty()) {
            throw ErrorCode.OPTION.exception(TABLE_ID + " is not set");
        }
        Session found = OpenSessions.byTable(tableId);
        if (found == null) {
            throw ErrorCode.NOT_OWNER.exception(
                    "this process has no session at table " + tableId + " (" + props.getString(BASE_PATH, "?") + ")");
        }
        String path = props.getString(BASE_PATH, "");
        if (!path.isEmpty() && !TablePath.comparable(path).equals(TablePath.comparable(found.basePath()))) {
            throw ErrorCode.NOT_OWNER.exception("table " + tableId + " is at " + found.basePath() + ", not at " + path);
        }
        if ("EAGER".equalsIgnoreCase(props.getString(FAILED_WRITES, "LAZY"))) {
            // EAGER rolls back pending instants of living writers
            throw ErrorCode.OPTION.exception(FAILED_WRITES + " must not be EAGER");
        }
        if ("SINGLE_WRITER".equalsIgnoreCase(props.getString(MODE, ""))) {
            // Hudi would take the lock but skip the conflict check
            throw ErrorCode.OPTION.exception(MODE + " must not be SINGLE_WRITER");
        }
        return found;
    }

    @Override
    public boolean tryLock(long time, TimeUnit unit) {
        synchronized (entry) {
            requireFree();
            session = session();
            WriteOptions.require(session, props, () -> metaClient().getTableConfig());
            TableStorage storage = new TableStorage(session.basePath(), storageConf.unwrapAs(Configuration.class));
            boolean acquired;
            try (KeysAhead keys = new KeysAhead(session, props, storageConf)) {
                acquired = acquire(unit.toNanos(time), storage, keys);
            }
            if (acquired && session.isNonBlockingCommit()) {
                checkCommits();
            }
            return acquired;
        }
    }

    /** Makes as many comparisons as possible before it acquires the lock. */
    private boolean acquire(long nanos, TableStorage storage, KeysAhead keys) {
        keys.look();
        boolean acquired = acquire(nanos, storage, false);
        for (int given = 0; acquired && given < KeysAhead.RETURNS && remain(keys); given++) {
            giveBack();
            keys.look();
            acquired = acquire(nanos, storage, true);
        }
        return acquired;
    }

    private boolean acquire(long nanos, TableStorage storage, boolean again) {
        try {
            if (!session.acquire(nanos, storage, again)) {
                return false;
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new HoodieLockException("interrupted while waiting for the lock", e);
        }
        session.isFor(client);
        enter();
        return true;
    }

    /** Whether keys remain to be compared that should be compared while others can commit. */
    private boolean remain(KeysAhead keys) {
        boolean known = false;
        try {
            boolean remain = keys.remain();
            known = true;
            return remain;
        } finally {
            if (!known) {
                unlock();
            }
        }
    }

    /**
     * Releases a lock under which nothing was done. Unlike {@link #unlock} it throws when that
     * fails, for this process must not ask for the lock then.
     */
    private synchronized void giveBack() {
        if (!mine) { // it was closed, and somebody else may have the lock
            throw ErrorCode.NOT_OWNER.exception("this lock provider was closed before the lock was used");
        }
        mine = false;
        session.release();
    }

    private synchronized void requireFree() {
        if (closed) {
            throw ErrorCode.NOT_OWNER.exception("this lock provider is closed");
        }
        if (mine) {
            throw ErrorCode.NOT_OWNER.exception("this lock is held already");
        }
    }

    /**
     * If the provider was closed while it waited, its owner no longer wants the lock, and no other
     * code would release it.
     */
    private synchronized void enter() {
        mine = true;
        if (closed) {
            unlock();
            throw ErrorCode.NOT_OWNER.exception("this lock provider was closed while it waited for the lock");
        }
    }

    private HoodieTableMetaClient metaClient() {
        return HoodieTableMetaClient.builder()
                .setConf(storageConf.newInstance())
                .setBasePath(session.basePath())
                .build();
    }

    /**
     * In the non-blocking mode Hudi does not call the conflict strategy. The strategy's checks run
     * here instead, in each lock cycle.
     */
    private void checkCommits() {
        boolean good = false;
        try {
            HoodieTableMetaClient metaClient = metaClient(); // made under the lock: see CommitChecks
            CommitChecks.requireGuard(metaClient, session.basePath(), GuardedFileSystem.class);
            WriteOptions.requireMetadataTable(metaClient, props);
            CommitChecks.requireNoReplacedBucket(metaClient);
            CommitChecks.requireComputedOnce(props);
            CommitChecks.requireProgress(metaClient, props, session.inc(), "this commit");
            String schema = props.getString(HoodieWriteConfig.AVRO_SCHEMA_STRING.key(), "");
            CommitChecks.requireSchema(metaClient, props, schema, null);
            Set<String> begun = session.instants().pendingOf(client);
            String merging = props.getString(HoodieWriteConfig.WRITE_SCHEMA_OVERRIDE.key(), schema);
            for (String instant : begun) {
                ColumnsOfPrograms.require(metaClient, props, merging, instant, null);
            }
            SnapshotCheck.inNonBlockingMode(metaClient, props, session, begun);
            session.commitsChecked(begun);
            good = true;
        } finally {
            if (!good) {
                unlock();
            }
        }
    }

    /**
     * Never throws: an exception would make Hudi report a commit as failed although readers can
     * already see it.
     */
    @Override
    public synchronized void unlock() {
        if (!mine) {
            return;
        }
        mine = false;
        try {
            session.release();
        } catch (Exception e) { // what Scala throws is not declared
            System.err.println("the lock is kept until this incarnation is settled: " + e);
        }
    }

    @Override
    public synchronized void close() {
        closed = true;
        unlock();
    }

    /** Null while this provider does not hold the lock. */
    @Override
    public synchronized String getLock() {
        return mine ? props.getString(TABLE_ID, "") : null;
    }

    @Override
    public String getCurrentOwnerLockInfo() {
        String owner = session == null ? "" : session.lastOwner();
        return ErrorCode.LOCK_TIMEOUT.message(owner.isEmpty() ? "no owner at the last read" : "held by " + owner);
    }
}
