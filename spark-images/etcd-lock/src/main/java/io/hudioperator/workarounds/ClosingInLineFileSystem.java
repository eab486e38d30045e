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
 * Hudi's file system for blocks inside log files, with streams that close what they read from. Those of Hudi 1.2.0 do not: each look into a log
 * file of the metadata table keeps a connection to the object store for ever, until a writer, reader or agent that lives long stands still
 * without any. Hudi names the class in the configuration of each call; so ours goes where Hadoop looks first, its cache.
 */
public class ClosingInLineFileSystem extends InLineFileSystem {

  /** Serves blocks of files of this authority (a bucket) from now on, in this JVM; without Hudi on the class path there is nothing to serve. */
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
