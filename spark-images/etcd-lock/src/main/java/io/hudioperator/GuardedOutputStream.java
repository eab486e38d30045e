package io.hudioperator;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;

/** Asks once more when the stream is closed: on object stores that is when the request goes out. */
final class GuardedOutputStream extends FSDataOutputStream {
  /** The question; throws to refuse. */
  interface Check {
    void run() throws IOException;
  }

  private final FSDataOutputStream inner;
  private final Check beforeClose;
  private final Publication publication;
  private boolean closed;

  /** {@code publication} null = the file completes no instant. */
  GuardedOutputStream(FSDataOutputStream inner, Check beforeClose, Publication publication) throws IOException {
    super(inner, null, inner.getPos());
    this.inner = inner;
    this.beforeClose = beforeClose;
    this.publication = publication;
  }

  @Override
  public void close() throws IOException {
    if (closed) {
      return;
    }
    closed = true;
    beforeClose.run(); // refused: the inner stream stays open, so an object store is never asked
    inner.close();
    if (publication != null) {
      publication.completed();
    }
  }
}
