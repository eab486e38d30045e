package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.session.Session;
import io.hudioperator.support.TestTable;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A real name node and data node. On this store a completed file becomes visible by a rename. */
@Tag("extra")
class HdfsTest extends StoreContract {
    @TempDir
    static java.nio.file.Path folder;

    private static MiniDFSCluster cluster;

    @BeforeAll
    static void start() throws IOException {
        cluster = new MiniDFSCluster.Builder(new Configuration(), folder.toFile())
                .numDataNodes(1)
                .build();
    }

    @AfterAll
    static void stop() {
        cluster.shutdown();
    }

    @Override
    String root() {
        return "hdfs://localhost:" + cluster.getNameNodePort();
    }

    @Override
    String delegate() {
        return DistributedFileSystem.class.getName();
    }

    @Override
    Configuration client() {
        return new Configuration();
    }

    /** The reason why Hudi renames on HDFS. */
    @Test
    void aFileIsThereBeforeItIsClosed() throws IOException {
        List<String> missing = new StoreProbe(guarded(), new Path(base), false).missing();
        assertEquals("not visible before close: a file is there before it was closed", missing.get(0));
    }

    /** The completed file is in the store under its temporary name, and stays there. */
    @Test
    void withoutTheLockNothingIsRenamed() throws Exception {
        Session session = session();
        create();
        assertTrue(acquire(session));
        String time = TestTable.time(0);
        TestTable.write(guarded(), timeline(time + ".commit.requested"), new byte[0]);
        session.conflictsChecked(time);
        String completed = time + "_" + TestTable.time(1) + ".commit";
        TestTable.write(guarded(), timeline(completed + ".tmp"), TestTable.COMPLETED);
        session.release();
        TestTable.assertCode(
                ErrorCode.NOT_OWNER,
                assertThrows(
                        IOException.class, () -> guarded().rename(timeline(completed + ".tmp"), timeline(completed))));
        assertFalse(guarded().exists(timeline(completed)));
    }

    /**
     * A dead process's requests that the name node executes later find nothing to rename or close.
     */
    @Test
    void whatIsDeliveredLateFindsNothing() throws Exception {
        create();
        try (FileSystem late = another();
                FileSystem sweeper = another()) {
            Path temporary = timeline(COMPLETED + ".tmp");
            Path data = new Path(base, "p/data.parquet");
            TestTable.write(late, temporary, TestTable.COMPLETED);
            FSDataOutputStream open = late.create(data, false);
            open.write(1);
            open.hflush();
            assertTrue(sweeper.delete(temporary, false));
            assertTrue(sweeper.delete(data, false), "a file that is open for writing can be deleted");
            assertFalse(late.rename(temporary, timeline(COMPLETED)));
            assertThrows(IOException.class, open::close);
            assertFalse(sweeper.exists(data));
        }
    }

    @Test
    void theSecondWriterOfANameIsRefused() throws Exception {
        create();
        try (FileSystem one = another();
                FileSystem other = another()) {
            FSDataOutputStream open = one.create(timeline(COMPLETED), false);
            assertThrows(IOException.class, () -> other.create(timeline(COMPLETED), false));
            open.close();
            assertThrows(FileAlreadyExistsException.class, () -> other.create(timeline(COMPLETED), false));
            TestTable.write(other, timeline("second.tmp"), TestTable.COMPLETED);
            assertFalse(other.rename(timeline("second.tmp"), timeline(COMPLETED)), "no rename replaces a file");
        }
    }
}
