package io.hudioperator.protocol;

import java.io.IOException;

/**
 * One completed file on its way to the store. Its outcome is unknown from before the create or rename until the store has said that it is
 * there; as long as it is, the lock is not released (F1). No exception counts as a definite refusal: a store's client retries by itself,
 * and the refusal may be about its second request while the first is still on the wire.
 */
public final class Publication {
  public enum Outcome {
    UNKNOWN,
    COMPLETED,
    ABSENT
  }

  /** Looks for the file in a fresh listing of its directory. */
  public interface Listing {
    /** Its length in bytes; negative: it is not there. */
    long length() throws IOException;
  }

  public final String instant;
  final String completion;
  private final Listing listing;
  private volatile Outcome outcome = Outcome.UNKNOWN;
  private volatile long length = -1;

  Publication(String instant, String completion, Listing listing) {
    this.instant = instant;
    this.completion = completion;
    this.listing = listing;
  }

  public Outcome outcome() {
    return outcome;
  }

  /** Another request for the same file is about to go out. */
  void begin() {
    outcome = Outcome.UNKNOWN;
  }

  /** That many bytes are about to go out. */
  public void sends(long bytes) {
    length = bytes;
  }

  public void completed() {
    outcome = Outcome.COMPLETED;
  }

  /** Only after the drain: a request on the wire has landed or died by then. A file that is not whole decides nothing (F34, I4). */
  public void look() throws IOException {
    long found = listing.length();
    if (found == 0 || found > 0 && length >= 0 && found != length) {
      throw new IOException("the completed file of " + instant + " has " + found + " bytes" + (length < 0 ? "" : " of " + length));
    }
    outcome = found > 0 ? Outcome.COMPLETED : Outcome.ABSENT;
  }
}
