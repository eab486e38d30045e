package io.hudioperator.timeline;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;

/**
 * Checks again when the stream is closed, because on object stores that is when the request is
 * sent. {@code close()} returns or throws only after the store's client has answered, even if the
 * caller is interrupted (F31).
 */
final class GuardedOutputStream extends FSDataOutputStream {
    /** The check; throws to refuse. */
    interface Check {
        void run() throws IOException;
    }

    private final FSDataOutputStream inner;
    private final Check beforeClose;
    private final Runnable answered;
    private boolean closed;

    /** @param answered called when the store has acknowledged the file */
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
        Uninterrupted.run(() -> {
            // when refused, the inner stream stays open and an object store never gets the
            // request
            beforeClose.run();
            inner.close();
            return null;
        });
        answered.run();
    }
}
