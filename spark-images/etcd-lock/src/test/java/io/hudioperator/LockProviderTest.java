package io.hudioperator;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.etcd.Pause;
import io.hudioperator.session.Session;
import io.hudioperator.support.FaultyEtcd;
import io.hudioperator.support.TestTable;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.exception.HoodieException;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The lock provider under the cases of Hudi's own provider tests: closed while it waits, used after
 * that, released without holding the lock (F42).
 */
class LockProviderTest {
    private final TestTable table = new TestTable();
    private Session session;
    private EtcdLockProvider provider;

    @BeforeEach
    void begin() throws Exception {
        session = table.session("ns.a");
        table.create(HoodieTableType.COPY_ON_WRITE);
        provider = provider();
    }

    @AfterEach
    void close() {
        table.close();
    }

    private EtcdLockProvider provider() {
        Properties options = new Properties();
        options.setProperty("hoodie.base.path", table.folder.toString());
        options.setProperty("hoodie.write.lock.etcd.table_id", table.id);
        return new EtcdLockProvider(new LockConfiguration(options), HadoopFSUtils.getStorageConf(TestTable.conf(true)));
    }

    @Test
    void itNamesALockOnlyWhileItHasIt() {
        assertNull(provider.getLock());
        assertTrue(provider.tryLock(5, TimeUnit.SECONDS));
        assertEquals(table.id, provider.getLock());
        provider.unlock();
        assertNull(provider.getLock());
    }

    /** F561: readers see the commit, and nobody is told that it failed. */
    @Test
    void aReleaseThatFailsEndsTheIncarnation() {
        assertTrue(provider.tryLock(5, TimeUnit.SECONDS));
        table.faults(session).refuse(FaultyEtcd.deletes(table.keys.lock()));
        provider.unlock();
        assertNotNull(table.lock());
        assertEquals("FENCED", session.state());
        assertEquals(List.of(15), table.halts);
    }

    @Test
    void aClosedOneLocksNoMore() {
        assertTrue(provider.tryLock(5, TimeUnit.SECONDS));
        provider.close();
        assertNull(table.lock());
        assertCode(
                ErrorCode.NOT_OWNER, assertThrows(HoodieException.class, () -> provider.tryLock(5, TimeUnit.SECONDS)));
        assertNull(table.lock());
    }

    @Test
    void closingDoesNotWaitForAThreadThatWaitsForTheLock() throws Exception {
        EtcdLockProvider other = provider();
        assertTrue(other.tryLock(5, TimeUnit.SECONDS));
        CompletableFuture<Boolean> waiting =
                CompletableFuture.supplyAsync(() -> provider.tryLock(20, TimeUnit.SECONDS));
        Pause.millis(300);
        assertFalse(waiting.isDone());
        long start = System.nanoTime();
        provider.close();
        long millis = Duration.ofNanos(System.nanoTime() - start).toMillis();
        assertTrue(millis < 2000, () -> "close() took " + millis + " ms");
        assertTrue(session.holdsLock(), "the other provider keeps its lock");
        other.unlock();
        ExecutionException e = assertThrows(ExecutionException.class, () -> waiting.get(10, TimeUnit.SECONDS));
        assertCode(ErrorCode.NOT_OWNER, e.getCause());
        assertFalse(session.holdsLock(), "a lock acquired for a closed provider is released");
        assertNull(table.lock());
    }
}
