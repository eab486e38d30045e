package io.hudioperator.timeline;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;

/**
 * Asks once more when the stream is closed: on object stores that is when the request goes out. {@code close()} returns or throws when the
 * store's client has really answered, whoever interrupts the caller (F31).
 */
final class GuardedOutputStream extends FSDataOutputStream {
  /** The question; throws to refuse. */
  interface Check {
    void run() throws IOException;
  }

  private final FSDataOutputStream inner;
  private final Check beforeClose;
  private final Runnable answered;
  private boolean closed;

  /** {@code answered} is run when the store has said that the file is there. */
  GuardedOutputStream(FSDataOutputStream inner, Check beforeClose, Runnable answered) throws IOException {
    super(inner, null, inner.getPos());
    this.inner = inner;
    this.beforeClose = beforeClose;
    this.answered = answered;
  }

  @Override
  public void close() throws IOException {
    if (closed) {
      return;
    }
    closed = true;
    Uninterrupted.run(
        () -> {
          beforeClose.run(); // refused: the inner stream stays open, so an object store is never asked
          inner.close();
          return null;
        });
    answered.run();
  }
}
