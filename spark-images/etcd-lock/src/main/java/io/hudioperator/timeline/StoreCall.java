package io.hudioperator.timeline;

import java.io.IOException;

/** The call to the wrapped file system, made once the change is allowed. */
public interface StoreCall<T> {
    T run() throws IOException;
}
