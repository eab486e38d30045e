package io.hudioperator.timeline;

import java.io.IOException;

/** The store's part of a change: what is asked of the wrapped file system once the change is allowed. */
public interface StoreCall<T> {
  T run() throws IOException;
}
