package io.hudioperator.protocol;

import java.io.IOException;

/**
 * One completed file on its way to the store. Its outcome is unknown from before the create or
 * rename until the store acknowledges the file. While it is unknown, the lock is not released (F1).
 * No exception counts as a definite refusal: a store's client retries by itself, and the refusal
 * may belong to its second request while the first is still on the wire.
 */
public final class Publication {
    public enum Outcome {
        UNKNOWN,
        COMPLETED,
        ABSENT
    }

    /** Looks up the file in a fresh listing of its directory. */
    public interface Listing {
        /** Length of the file in bytes; negative when it is not listed. */
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

    /** Another request for the same file is about to be sent. */
    void begin() {
        outcome = Outcome.UNKNOWN;
    }

    /** That many bytes are about to be sent. */
    public void sends(long bytes) {
        length = bytes;
    }

    public void completed() {
        outcome = Outcome.COMPLETED;
    }

    /**
     * Call this only after the drain: a request on the wire has landed or died by then. An
     * incomplete file decides nothing (F34, I4).
     */
    public void look() throws IOException {
        long found = listing.length();
        if (found == 0 || found > 0 && length >= 0 && found != length) {
            throw new IOException("the completed file of " + instant + " has " + found + " bytes"
                    + (length < 0 ? "" : " of " + length));
        }
        outcome = found > 0 ? Outcome.COMPLETED : Outcome.ABSENT;
    }
}
