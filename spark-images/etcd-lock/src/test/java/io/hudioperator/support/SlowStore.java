package io.hudioperator.support;

import io.hudioperator.GuardedFileSystem;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * Behaves like an object store: nothing is visible before {@code close()}, which sends the file.
 * Requests for selected names get no answer: the request dies, or it stays on the wire and lands
 * when {@link #land} is called.
 */
public final class SlowStore extends RawLocalFileSystem {
    public static final List<String> DIES = new ArrayList<>();
    public static final List<String> STAYS_ON_THE_WIRE = new ArrayList<>();
    public static final Map<Path, byte[]> ON_THE_WIRE = new LinkedHashMap<>();
    /**
     * Names that a thread of the store's client sends; an interrupt of the caller is answered with
     * success, as in S3A.
     */
    public static final List<String> ANSWERS_INTERRUPTS = new ArrayList<>();

    public static boolean listingFails;
    /** With an exception that is not declared, as clients of stores throw them. */
    public static boolean listingBreaks;

    @Override
    public void initialize(URI uri, Configuration conf) throws IOException {
        super.initialize(URI.create("file:///"), conf);
        setConf(conf);
    }

    public static Path path(TestTable table, String name) {
        return new Path("slow:" + table.folder + "/.hoodie/timeline/" + name);
    }

    /** A new wrapped file system, as Hadoop creates one for {@code fs.slow.impl}. */
    public static GuardedFileSystem guarded() throws IOException {
        Configuration conf = new Configuration();
        conf.set("hudi.operator.guard.slow.delegate", Slow.class.getName());
        GuardedFileSystem fs = new GuardedFileSystem();
        fs.initialize(URI.create("slow:///"), conf);
        return fs;
    }

    public static void land() throws IOException {
        for (Map.Entry<Path, byte[]> request : ON_THE_WIRE.entrySet()) {
            Files.write(java.nio.file.Path.of(request.getKey().toUri().getPath()), request.getValue());
        }
        synchronized (ON_THE_WIRE) {
            ON_THE_WIRE.clear();
            ON_THE_WIRE.notifyAll();
        }
    }

    public static void reset() {
        listingFails = false;
        listingBreaks = false;
        DIES.clear();
        STAYS_ON_THE_WIRE.clear();
        ANSWERS_INTERRUPTS.clear();
        ON_THE_WIRE.clear();
    }

    /** The scheme {@code slow} on top of the raw local file system. */
    public static final class Slow extends FilterFileSystem {
        public Slow() {
            super(new SlowStore());
        }

        @Override
        public void initialize(URI name, Configuration conf) throws IOException {
            fs.initialize(name, conf);
            setConf(conf);
        }

        @Override
        public Configuration getConf() {
            return fs.getConf();
        }

        @Override
        public URI getUri() {
            return URI.create("slow:///");
        }

        @Override
        protected void checkPath(Path path) {
            // accepts every path: paths of this scheme are local paths
        }

        private static Path local(Path path) {
            return new Path("file", null, path.toUri().getPath());
        }

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
            return new FSDataOutputStream(new Request(local(path), fs), null);
        }

        @Override
        public org.apache.hadoop.fs.FileStatus[] listStatus(Path path) throws IOException {
            if (Thread.currentThread().isInterrupted()) { // S3A, too, asks the store nothing then
                throw new InterruptedIOException("interrupted");
            }
            if (listingFails) {
                throw new IOException("the store does not answer");
            }
            if (listingBreaks) {
                throw new IllegalStateException("the connection pool is shut down");
            }
            return fs.listStatus(local(path));
        }

        @Override
        public org.apache.hadoop.fs.FileStatus getFileStatus(Path path) throws IOException {
            return fs.getFileStatus(local(path));
        }

        @Override
        public boolean delete(Path path, boolean recursive) throws IOException {
            return fs.delete(local(path), recursive);
        }
    }

    private static final class Request extends ByteArrayOutputStream {
        private final Path path;
        private final org.apache.hadoop.fs.FileSystem store;

        Request(Path path, org.apache.hadoop.fs.FileSystem store) {
            this.path = path;
            this.store = store;
        }

        @Override
        public void close() throws IOException {
            if (DIES.remove(path.getName())) {
                throw new IOException("no answer: the request died");
            }
            if (STAYS_ON_THE_WIRE.remove(path.getName())) {
                ON_THE_WIRE.put(path, toByteArray());
                throw new IOException("no answer: the request is on the wire");
            }
            if (ANSWERS_INTERRUPTS.remove(path.getName())) {
                untilLanded();
                return;
            }
            try (OutputStream out = store.create(path, false)) {
                writeTo(out);
            }
        }

        private void untilLanded() {
            synchronized (ON_THE_WIRE) {
                ON_THE_WIRE.put(path, toByteArray());
                try {
                    while (ON_THE_WIRE.containsKey(path)) {
                        ON_THE_WIRE.wait();
                    }
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt(); // and the caller is told of a success
                }
            }
        }
    }
}
