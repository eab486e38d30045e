package io.hudioperator.timeline;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.support.TestTable;
import io.hudioperator.testing.GuardedLocalFileSystem;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * No value of a row places a file outside the table or in Hudi's own folders (F39): in drivers,
 * which have a session, and in executors, which have none.
 */
class DataFilesTest {
    private static final String BASE = "9b3df2c0-1f7a-4a73-9d52-6f0c4d5a1e00-0_0-12-34_20260131120000000.parquet";
    private static final String LOG = ".9b3df2c0-1f7a-4a73-9d52-6f0c4d5a1e00-0_20260131120000000.log.1_0-12-34";
    private static final String[] OF_THE_TABLE = {BASE, LOG, ".hoodie_partition_metadata"};

    private final TestTable table = new TestTable();
    private GuardedLocalFileSystem fs;

    @BeforeEach
    void begin() throws IOException {
        fs = wrapper(table.basePath());
    }

    @AfterEach
    void close() {
        table.close();
    }

    private static GuardedLocalFileSystem wrapper(String tablePath) throws IOException {
        Configuration conf = new Configuration();
        conf.set(DataFiles.TABLE_PATH, tablePath);
        GuardedLocalFileSystem made = new GuardedLocalFileSystem();
        made.initialize(URI.create("file:///"), conf);
        return made;
    }

    private void create(String relative) throws IOException {
        fs.create(new Path(new Path(table.basePath()), relative), false).close();
    }

    private void refused(String relative) {
        assertCode(ErrorCode.BAD_DATA, assertThrows(TimelineRefusedException.class, () -> create(relative), relative));
        assertCode(
                ErrorCode.BAD_DATA,
                assertThrows(
                        TimelineRefusedException.class,
                        () -> fs.createFile(new Path(new Path(table.basePath()), relative))
                                .build(),
                        relative));
        assertFalse(Files.exists(table.folder.resolve(relative).normalize()), relative);
    }

    @Test
    void whatHudiWritesIsWritten() throws IOException {
        Stream.of(OF_THE_TABLE).map(name -> "p/" + name).forEach(this::created);
        created(BASE);
        created("2026/01/31/" + LOG);
        created(".hoodie/metadata/files/files-0000-0_0-1-2_00000000000000000.hfile");
        created(".hoodie/metadata/files/.files-0000-0_20260131120000000.log.1_0-1-2");
        created(".hoodie/metadata/files/.hoodie_partition_metadata");
        created(".hoodie/metadata/secondary_index_a_b/.secondary-index-a_b-0000-0_20260131120000000001.log.1_0-1-2");
        created(".hoodie/.temp/20260131120000000/p/" + BASE + ".marker.CREATE");
        created(".hoodie/metadata/.hoodie/.temp/20260131120000000/files/"
                + ".files-0000-0_20260131120000000.log.1_0-1-2.marker.APPEND");
    }

    private void created(String relative) {
        try {
            create(relative);
        } catch (IOException e) {
            throw new AssertionError(relative, e);
        }
    }

    @Test
    void nothingOfAWriteIsCreatedOutsideOfTheTable() {
        for (String name : OF_THE_TABLE) {
            refused("../" + name);
            refused("../victim/a/" + name);
            refused("a/../../victim/" + name);
        }
        refused(".hoodie/.temp/20260131120000000/../victim/a/" + BASE + ".marker.CREATE");
        refused("p/" + BASE + ".marker.CREATE");
    }

    @Test
    void noDataFileIsCreatedInHudisOwnFolders() {
        for (String folder : new String[] {
            ".hoodie",
            ".hoodie/timeline",
            ".hoodie/metadata/files",
            ".hoodie/metadata",
            ".hoodie/.temp/20260131120000000"
        }) {
            refused(folder + "/" + BASE);
            refused(folder + "/" + LOG);
        }
        refused(".hoodie/timeline/.hoodie_partition_metadata");
    }

    /**
     * An executor's configured table and a driver's session, for the same or for different tables:
     * each of these tables may be written.
     */
    @Test
    void aSessionsTableIsKnownWithoutTheSetting() throws IOException {
        table.session("ns.a");
        fs = wrapper(table.basePath() + "/another");
        created("p/" + BASE);
        created("another/p/" + BASE);
        refused("../" + BASE);
    }

    /**
     * Files that an RDD or a file format saves into the table's folder pass no statement check
     * (F78).
     */
    @Test
    void aWriterPutsNoFileOfItsOwnAmongTheData() throws IOException {
        String[] files = {
            "part-00000-9b3df2c0-1f7a-4a73-9d52-6f0c4d5a1e00-c000.snappy.parquet",
            "p/part-00000",
            "out/_temporary/0/part-00000",
            "p/_SUCCESS"
        };
        for (String relative : files) {
            created("before/" + relative); // an agent's probe of the store, say
        }
        table.session("ns.a");
        Path elsewhere = new Path(Files.createTempDirectory("plain-").toUri().toString(), "part-00000");
        fs.create(elsewhere, false).close();
        for (String relative : files) {
            Path path = new Path(new Path(table.basePath()), relative);
            assertCode(
                    ErrorCode.STATEMENT,
                    assertThrows(TimelineRefusedException.class, () -> create(relative), relative));
            assertCode(
                    ErrorCode.STATEMENT,
                    assertThrows(
                            TimelineRefusedException.class,
                            () -> fs.createFile(path).build(),
                            relative));
            assertCode(
                    ErrorCode.STATEMENT,
                    assertThrows(TimelineRefusedException.class, () -> fs.createNewFile(path), relative));
            assertCode(
                    ErrorCode.STATEMENT,
                    assertThrows(TimelineRefusedException.class, () -> fs.rename(elsewhere, path), relative));
            assertCode(
                    ErrorCode.STATEMENT,
                    assertThrows(
                            TimelineRefusedException.class, () -> fs.copyFromLocalFile(elsewhere, path), relative));
            assertFalse(Files.exists(table.folder.resolve(relative)), relative);
        }
        Path root = new Path(table.basePath());
        assertCode(
                ErrorCode.STATEMENT,
                assertThrows(TimelineRefusedException.class, () -> fs.copyFromLocalFile(elsewhere, root)));
        assertFalse(Files.exists(table.folder.resolve("part-00000")));
        created(BASE);
        created("p/.hoodie_partition_metadata");
        created(".hoodie/anything");
    }

    /** F100: `a` and then `a/b`, or the other way round. */
    @Test
    void noPartitionLiesInTheFolderOfAnother() throws IOException {
        created("a/.hoodie_partition_metadata");
        created("c/d/.hoodie_partition_metadata");
        created("c/e/.hoodie_partition_metadata");
        for (String relative : new String[] {
            "a/b/.hoodie_partition_metadata", "a/b/f/.hoodie_partition_metadata_0", "c/.hoodie_partition_metadata"
        }) {
            assertCode(
                    ErrorCode.BAD_DATA, assertThrows(TimelineRefusedException.class, () -> create(relative), relative));
        }
        created("ab/.hoodie_partition_metadata");
        created(".hoodie_partition_metadata"); // of a table without partitions
    }

    /**
     * F171: two writers look for other partitions before either has created its own. Both have
     * created theirs then, and at least one finds the other's before it writes a row.
     */
    @Test
    void partitionsThatAreCreatedAtOnceDoNotBothGetRows() throws IOException {
        Path above = new Path(new Path(table.basePath()), "a/.hoodie_partition_metadata");
        Path below = new Path(new Path(table.basePath()), "a/b/.hoodie_partition_metadata");
        DataFiles.require(above, fs);
        DataFiles.require(below, fs);
        for (Path claim : new Path[] {above, below}) {
            fs.getRawFileSystem().create(claim, false).close();
        }
        created("a/" + BASE); // in a process that is no writer: compaction of what is there goes on
        table.session("ns.a");
        for (String relative : new String[] {"a/b/" + BASE, "a/" + LOG, "a/b/" + BASE}) {
            assertCode(
                    ErrorCode.BAD_DATA, assertThrows(TimelineRefusedException.class, () -> create(relative), relative));
        }
    }

    /** Asked once in a process: the partition's own metadata keeps others away from then on. */
    @Test
    void aPartitionWithRowsKeepsOthersAway() throws IOException {
        table.session("ns.a");
        created("2026/.hoodie_partition_metadata");
        created("2026/" + BASE);
        fs.getRawFileSystem()
                .create(new Path(new Path(table.basePath()), "2026/01/.hoodie_partition_metadata"), false)
                .close(); // by somebody who looked before the partition was there
        created("2026/" + LOG);
        refused("2026/01/" + BASE);
    }

    @Test
    void otherFilesAreNotAskedAbout() throws IOException {
        java.nio.file.Path folder = Files.createTempDirectory("plain-");
        fs.create(
                        new Path(
                                folder.toUri().toString(),
                                "part-00000-9b3df2c0-1f7a-4a73-9d52-6f0c4d5a1e00-c000.snappy.parquet"),
                        false)
                .close();
    }
}
