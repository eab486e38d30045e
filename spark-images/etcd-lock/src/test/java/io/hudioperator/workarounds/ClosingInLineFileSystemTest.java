package io.hudioperator.workarounds;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hudioperator.GuardedFileSystem;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hudi.io.SeekableDataInputStream;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.HoodieStorageUtils;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;
import org.apache.hudi.storage.inline.InLineFSUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Blocks of log files, read as Hudi reads those of its metadata table. */
class ClosingInLineFileSystemTest {
    private static final byte[] FILE = {0, 1, 2, 3, 4, 5, 6, 7};

    @TempDir
    java.nio.file.Path folder;

    @Test
    void whatABlockIsReadFromIsClosedWithIt() throws Exception {
        Configuration conf = new Configuration();
        conf.set("fs.counted.impl", GuardedFileSystem.class.getName());
        conf.set("hudi.operator.guard.counted.delegate", Counted.class.getName());
        assertEquals(0, openAfterABlock(conf, "guarded"));
    }

    /**
     * When this test fails, Hudi closes what it opens, and {@link ClosingInLineFileSystem} can be
     * removed.
     */
    @Test
    void hudisOwnLeavesItOpen() throws Exception {
        Configuration conf = new Configuration();
        conf.set("fs.counted.impl", Counted.class.getName());
        assertEquals(1, openAfterABlock(conf, "stock"));
    }

    /**
     * Number of streams of a bucket that stay open after three bytes inside a file were read and
     * the stream was closed.
     */
    private int openAfterABlock(Configuration hadoop, String bucket) throws IOException {
        java.nio.file.Path local = Files.write(folder.resolve("file.log"), FILE);
        StorageConfiguration<Configuration> conf = new HadoopStorageConfiguration(hadoop);
        StoragePath file = new StoragePath("counted://" + bucket + local);
        HoodieStorage storage = HoodieStorageUtils.getStorage(file, conf);
        StoragePath block = InLineFSUtils.getInlineFilePath(file, "counted", 3, 4);
        int before = Counted.OPEN.get();
        byte[] read = new byte[3];
        try (SeekableDataInputStream stream =
                storage.newInstance(block, conf.getInline()).openSeekable(block, false)) {
            stream.seek(1);
            stream.readFully(read);
        }
        assertEquals("[4, 5, 6]", Arrays.toString(read));
        return Counted.OPEN.get() - before;
    }

    /** The local file system under another name, which counts its open streams. */
    public static final class Counted extends RawLocalFileSystem {
        static final AtomicInteger OPEN = new AtomicInteger();
        private URI uri;

        @Override
        public void initialize(URI name, Configuration conf) throws IOException {
            super.initialize(name, conf);
            uri = URI.create(name.getScheme() + "://" + name.getAuthority());
        }

        @Override
        public URI getUri() {
            return uri == null ? super.getUri() : uri;
        }

        @Override
        public FSDataInputStream open(Path path, int bufferSize) throws IOException {
            FSDataInputStream stream = super.open(path, bufferSize);
            OPEN.incrementAndGet();
            return new FSDataInputStream(stream) {
                @Override
                public void close() throws IOException {
                    OPEN.decrementAndGet();
                    super.close();
                }
            };
        }
    }
}
