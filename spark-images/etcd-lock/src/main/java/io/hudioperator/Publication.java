package io.hudioperator;

import java.io.IOException;

/**
 * One completed file on its way to the store. Its outcome is unknown from before the create or rename until the store has said that it is
 * there; as long as it is, the lock is not released (F1). No exception counts as a definite refusal: a store's client retries by itself,
 * and the refusal may be about its second request while the first is still on the wire.
 */
final class Publication {
  enum Outcome {
    UNKNOWN,
    COMPLETED,
    ABSENT
  }

  /** Looks for the file in a fresh listing of its directory. */
  interface Listing {
    boolean exists() throws IOException;
  }

  final String instant;
  final String completion;
  private final Listing listing;
  private volatile Outcome outcome = Outcome.UNKNOWN;

  Publication(String instant, String completion, Listing listing) {
    this.instant = instant;
    this.completion = completion;
    this.listing = listing;
  }

  Outcome outcome() {
    return outcome;
  }

  /** Another request for the same file is about to go out. */
  void begin() {
    outcome = Outcome.UNKNOWN;
  }

  void completed() {
    outcome = Outcome.COMPLETED;
  }

  /** Only after the drain: a request on the wire has landed or died by then. */
  void look() throws IOException {
    outcome = listing.exists() ? Outcome.COMPLETED : Outcome.ABSENT;
  }
}
