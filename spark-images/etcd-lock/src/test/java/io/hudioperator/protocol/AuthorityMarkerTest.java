package io.hudioperator.protocol;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.session.Session;
import io.hudioperator.support.TestTable;
import java.io.IOException;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;
import org.junit.jupiter.api.Test;

/**
 * The marker of the lock authority on stores where a file is visible as soon as it is created:
 * HDFS, and the local files used here.
 */
class AuthorityMarkerTest {

    /**
     * An empty marker would count as another authority's, and nobody could get this table's lock
     * any more (F66).
     */
    @Test
    void whoDiesWhileItWritesTheMarkerStopsNobody() throws IOException {
        try (TestTable table = new TestTable()) {
            Session session = table.session("ns.a");
            Configuration dying = new Configuration();
            dying.set("fs.file.impl", Dying.class.getName());
            dying.setBoolean("fs.file.impl.disable.cache", true);
            TableStorage storage = new TableStorage(table.basePath(), dying);
            assertThrows(Death.class, () -> storage.verifyAuthority(table.id, "cluster", "/hudi", TestTable.AUTHORITY));
            assertTrue(table.acquire(session));
            session.release();
            assertTrue(table.acquire(session), "its own marker is there");
            session.release();
            assertTrue(Files.size(table.folder.resolve(".hoodie/hudi-operator/" + table.id)) > 0);
        }
    }

    private static final class Death extends Error {}

    /** Its process dies after the file was created and before it was written. */
    public static final class Dying extends LocalFileSystem {
        @Override
        public FSDataOutputStream create(
                Path path,
                FsPermission permission,
                boolean overwrite,
                int bufferSize,
                short replication,
                long blockSize,
                Progressable progress)
                throws IOException {
            super.create(path, permission, overwrite, bufferSize, replication, blockSize, progress);
            throw new Death();
        }
    }
}
