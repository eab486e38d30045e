package io.hudioperator.workarounds;

import static org.apache.hudi.hadoop.fs.HadoopFSUtils.convertToStoragePath;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.hadoop.fs.inline.HadoopInLineFSUtils;
import org.apache.hudi.hadoop.fs.inline.InLineFileSystem;
import org.apache.hudi.hadoop.fs.inline.InLineFsDataInputStream;
import org.apache.hudi.storage.StoragePath;

/**
 * Hudi's file system for blocks inside log files, with streams that close the stream they read
 * from. Hudi 1.2.0's streams do not: each read of a log file of the metadata table leaks a
 * connection to the object store, until a long-lived writer, reader or agent has none left and
 * hangs. Hudi names the class in the configuration of each call, so this class is put into Hadoop's
 * file system cache, where Hadoop looks first.
 */
public class ClosingInLineFileSystem extends InLineFileSystem {

    /**
     * From now on serves blocks of files of this authority (a bucket) in this JVM. Does nothing
     * when Hudi is not on the class path.
     */
    public static void serve(String authority, Configuration conf) throws IOException {
        try {
            Configuration inline = new Configuration(conf);
            inline.set("fs." + SCHEME + ".impl", ClosingInLineFileSystem.class.getName());
            inline.setClassLoader(ClosingInLineFileSystem.class.getClassLoader());
            FileSystem.get(URI.create(SCHEME + "://" + (authority == null ? "" : authority) + "/"), inline);
        } catch (NoClassDefFoundError e) {
            System.err.println("Hudi is not on the class path: " + e.getMessage());
        }
    }

    @Override
    public FSDataInputStream open(Path path, int bufferSize) throws IOException {
        Path outer = HadoopInLineFSUtils.getOuterFilePathFromInlinePath(path);
        FSDataInputStream stream = outer.getFileSystem(getConf()).open(outer, bufferSize);
        try {
            return new Block(convertToStoragePath(path), stream);
        } catch (IOException | RuntimeException e) {
            stream.close();
            throw e;
        }
    }

    private static final class Block extends InLineFsDataInputStream {
        private final FSDataInputStream outer;

        Block(StoragePath path, FSDataInputStream outer) throws IOException {
            super(HadoopInLineFSUtils.startOffset(path), outer, HadoopInLineFSUtils.length(path));
            this.outer = outer;
        }

        @Override
        public void close() throws IOException {
            outer.close();
        }
    }
}
