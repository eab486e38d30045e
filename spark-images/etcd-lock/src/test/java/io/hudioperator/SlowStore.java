package io.hudioperator;

import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * Behaves as an object store: nothing is there before {@code close()}, which sends it. The chosen names do not answer: the request dies, or
 * it stays on the wire and lands when {@link #land} is called.
 */
public final class SlowStore extends RawLocalFileSystem {
  static final List<String> DIES = new ArrayList<>();
  static final List<String> STAYS_ON_THE_WIRE = new ArrayList<>();
  static final List<Path> ON_THE_WIRE = new ArrayList<>();
  static boolean listingFails;

  @Override
  public void initialize(URI uri, Configuration conf) throws IOException {
    super.initialize(URI.create("file:///"), conf);
    setConf(conf);
  }

  static Path path(TestTable table, String name) {
    return new Path("slow:" + table.folder + "/.hoodie/timeline/" + name);
  }

  /** A wrapped file system of its own, as Hadoop makes one for {@code fs.slow.impl}. */
  static GuardedFileSystem guarded() throws IOException {
    Configuration conf = new Configuration();
    conf.set("hudi.operator.guard.slow.delegate", Slow.class.getName());
    GuardedFileSystem fs = new GuardedFileSystem();
    fs.initialize(URI.create("slow:///"), conf);
    return fs;
  }

  static void land() throws IOException {
    for (Path path : ON_THE_WIRE) {
      new RawLocalFileSystem().pathToFile(path).createNewFile();
    }
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
      // paths of this scheme are local paths below it
    }

    private static Path local(Path path) {
      return new Path("file", null, path.toUri().getPath());
    }

    @Override
    public FSDataOutputStream create(
        Path path, FsPermission permission, boolean overwrite, int bufferSize, short replication, long blockSize, Progressable progress)
        throws IOException {
      return new FSDataOutputStream(new Request(local(path), fs), null);
    }

    @Override
    public org.apache.hadoop.fs.FileStatus[] listStatus(Path path) throws IOException {
      if (listingFails) {
        throw new IOException("the store does not answer");
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

  private static final class Request extends OutputStream {
    private final Path path;
    private final org.apache.hadoop.fs.FileSystem store;

    Request(Path path, org.apache.hadoop.fs.FileSystem store) {
      this.path = path;
      this.store = store;
    }

    @Override
    public void write(int b) {
      // the content does not matter
    }

    @Override
    public void close() throws IOException {
      if (DIES.remove(path.getName())) {
        throw new IOException("no answer: the request died");
      }
      if (STAYS_ON_THE_WIRE.remove(path.getName())) {
        ON_THE_WIRE.add(path);
        throw new IOException("no answer: the request is on the wire");
      }
      store.create(path, false).close();
    }
  }
}
