package io.hudioperator.timeline;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.GuardedAbstractFileSystem;
import io.hudioperator.HudiOperatorPlugin;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.support.TestTable;
import io.hudioperator.testing.GuardedLocalFileSystem;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.util.EnumSet;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Options.CreateOpts;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsPermission;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/**
 * What nobody may delete or move, whether or not this JVM has a session for the table (F33): an
 * executor has none.
 */
class FolderRulesTest {
    private final TestTable table = new TestTable();
    private final GuardedLocalFileSystem fs = new GuardedLocalFileSystem();

    @BeforeEach
    void begin() throws IOException {
        fs.initialize(URI.create("file:///"), new Configuration());
        Files.createDirectories(table.folder.resolve("a/b"));
        Files.createFile(table.folder.resolve("a/b/f.parquet"));
        Files.createFile(table.folder.resolve(".hoodie/hoodie.properties"));
        Files.createDirectories(table.folder.resolve(".hoodie/.temp/20260101000000000/a"));
    }

    @AfterEach
    void close() {
        table.close();
    }

    private Path path(String name) {
        return new Path(table.folder.resolve(name).toUri());
    }

    private boolean exists(String name) {
        return Files.exists(table.folder.resolve(name));
    }

    private static void refused(Executable change) {
        assertCode(ErrorCode.NOT_OWNER, assertThrows(TimelineRefusedException.class, change));
    }

    private void nothingOfTheTableGoes() {
        refused(() -> fs.delete(path(".hoodie"), true));
        refused(() -> fs.delete(path(".hoodie"), false));
        refused(() -> fs.delete(path("."), true));
        refused(() -> fs.rename(path(".hoodie"), path("moved")));
        refused(() -> fs.rename(path("a"), path(".hoodie")));
        refused(() -> fs.rename(
                path("."),
                new Path(table.folder.resolveSibling("moved-" + table.id).toUri())));
        refused(() -> fs.delete(path(".hoodie/metadata"), true));
        refused(() -> fs.delete(path(".hoodie/metadata/.hoodie"), true));
        assertTrue(exists(".hoodie/timeline") && exists(".hoodie/metadata/.hoodie/timeline"));
    }

    @Test
    void withoutASession() throws IOException {
        nothingOfTheTableGoes();
        refused(() -> fs.delete(new Path(table.folder.getParent().toUri()), true)); // F502: DROP DATABASE
        assertTrue(fs.delete(path(".hoodie/.temp/20260101000000000"), true)); // tasks delete markers
        assertTrue(fs.delete(path("a"), true)); // an agent's executor cleans a partition that was dropped
    }

    @Test
    void asAWriter() throws IOException {
        table.session("ns.a");
        nothingOfTheTableGoes();
        refused(() -> fs.delete(path("a"), true));
        refused(() -> fs.delete(path("a/b"), true));
        assertTrue(fs.delete(path("a/b/f.parquet"), true));
        assertTrue(fs.delete(path("a/b"), false)); // empty
        assertFalse(fs.delete(path("gone"), true));
        assertTrue(fs.delete(path(".hoodie/.temp/20260101000000000"), true));
    }

    @Test
    void asAnExecutorOfAWriter() throws IOException {
        Map<String, String> told = Map.of("table", table.basePath());
        new HudiOperatorPlugin().executorPlugin().init(null, told);
        nothingOfTheTableGoes();
        refused(() -> fs.delete(path("a"), true));
        refused(() -> fs.delete(new Path(table.folder.getParent().toUri()), true));
        assertTrue(fs.delete(path("a/b/f.parquet"), false));
        assertTrue(fs.delete(path(".hoodie/.temp/20260101000000000"), true));
    }

    /**
     * A job's folder for temporary files, whose files are refused, would hide the partition from
     * readers that list folders (F214).
     */
    @Test
    void aWriterMakesNoEmptyFolder() throws IOException {
        assertTrue(fs.mkdirs(path("a/of-nobody")) && exists("a/of-nobody"));
        table.session("ns.a");
        assertTrue(fs.mkdirs(path("a/lines/_temporary/0")));
        assertTrue(fs.mkdirs(path("c"), FsPermission.getDirDefault()));
        assertFalse(exists("a/lines") || exists("c"));
        assertTrue(fs.mkdirs(path(".hoodie/.temp/20260101000000001")));
        assertTrue(exists(".hoodie/.temp/20260101000000001"));
    }

    @Test
    void anExecutorMakesNoEmptyFolder() throws IOException {
        new HudiOperatorPlugin().executorPlugin().init(null, Map.of("table", table.basePath()));
        assertTrue(fs.mkdirs(path("a/lines/_temporary/0")));
        assertFalse(exists("a/lines"));
        Path elsewhere =
                new Path(table.folder.resolveSibling("elsewhere-" + table.id).toUri());
        assertTrue(fs.mkdirs(elsewhere) && fs.delete(elsewhere, false));
    }

    @Test
    void asAnAgent() throws IOException {
        table.session("ns.agent", Map.of("role", "agent"));
        assertTrue(fs.delete(path("a"), true)); // a partition that was dropped, after its files were cleaned
        refused(() -> fs.delete(path(".hoodie"), true));
        refused(() -> fs.delete(path("."), true));
    }

    /** Attempts of tasks delete their folders while the job deletes the one above (F508). */
    @Test
    void aFolderThatVanishesWhileItIsListedIsNoError() throws IOException {
        Files.createDirectories(table.folder.resolve("../out-" + table.id + "/_temporary/0"));
        Files.createFile(table.folder.resolve("../out-" + table.id + "/part-0.csv"));
        Path out = new Path(table.folder.resolveSibling("out-" + table.id).toUri());
        int[] failures = {2};
        FilterFileSystem vanishing = new FilterFileSystem(new LocalFileSystem()) {
            @Override
            public RemoteIterator<LocatedFileStatus> listFiles(Path folder, boolean recursive) throws IOException {
                if (failures[0]-- > 0) {
                    throw new FileNotFoundException("gone");
                }
                return super.listFiles(folder, recursive);
            }
        };
        vanishing.initialize(URI.create("file:///"), new Configuration());
        FolderRules.beforeDelete(out, true, vanishing);
        failures[0] = 2;
        Path above = new Path(table.folder.getParent().toUri());
        refused(() -> FolderRules.beforeDelete(above, true, vanishing));
        failures[0] = 99;
        assertThrows(FileNotFoundException.class, () -> FolderRules.beforeDelete(above, true, vanishing));
        assertTrue(fs.delete(out, true));
        FolderRules.beforeDelete(out, true, vanishing); // is gone
    }

    /** F280: Spark keeps the checkpoints of streams by Hadoop's other interface. */
    @Test
    void aFileContextHasTheSameRules() throws IOException {
        Configuration conf = new Configuration();
        conf.set("fs.file.impl", GuardedLocalFileSystem.class.getName());
        conf.set("fs.AbstractFileSystem.file.impl", GuardedAbstractFileSystem.class.getName());
        table.session("ns.a");
        FileContext files = FileContext.getFileContext(URI.create("file:///"), conf);
        FsPermission all = FsPermission.getDirDefault();
        EnumSet<CreateFlag> anew = EnumSet.of(CreateFlag.CREATE);
        assertCode(
                ErrorCode.STATEMENT,
                assertThrows(
                        TimelineRefusedException.class, () -> files.mkdir(path("_checkpoint/offsets"), all, true)));
        assertCode(
                ErrorCode.STATEMENT,
                assertThrows(
                        TimelineRefusedException.class,
                        () -> files.create(path("_checkpoint/metadata"), anew, CreateOpts.createParent())));
        assertFalse(exists("_checkpoint"));
        refused(() -> files.delete(path("a"), true));
        refused(() -> files.rename(path(".hoodie"), path("moved")));
        assertTrue(exists("a/b/f.parquet") && exists(".hoodie/timeline"));
        String outside = "../outside-" + table.id;
        files.mkdir(path(outside), all, true);
        files.create(path(outside + "/metadata"), anew).close();
        files.rename(path(outside + "/metadata"), path(outside + "/renamed"));
        assertTrue(exists(outside + "/renamed"));
        assertTrue(files.delete(path(outside), true));
    }

    @Test
    void aFileContextWithoutTheWrapperIsRefused() {
        Configuration conf = new Configuration();
        conf.set("fs.AbstractFileSystem.file.impl", GuardedAbstractFileSystem.class.getName());
        assertThrows(
                Exception.class,
                () -> FileContext.getFileContext(URI.create("file:///"), conf)
                        .mkdir(path("x"), FsPermission.getDirDefault(), true));
        assertFalse(exists("x"));
    }
}
