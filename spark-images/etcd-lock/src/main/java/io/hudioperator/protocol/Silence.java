package io.hudioperator.protocol;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Duration of etcd's silence, counted from the <em>send</em> time of the last acknowledged call, on
 * the monotonic clock: the answer may have been on its way for the whole rpc timeout.
 */
public final class Silence {
    private final LongSupplier nanoTime;
    private volatile long lastAckSend;
    private volatile long lastBeat;
    private volatile Long firstUnanswered; // heartbeat since the last acknowledged one; null: none

    public Silence(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
        this.lastAckSend = nanoTime.getAsLong();
    }

    long now() {
        return nanoTime.getAsLong();
    }

    void acknowledged(long sentAt) {
        if (sentAt - lastAckSend > 0) {
            lastAckSend = sentAt;
        }
        firstUnanswered = null;
    }

    /** A heartbeat is about to be sent. */
    void beats() {
        lastBeat = now();
    }

    /** The last heartbeat had no answer. */
    void unanswered() {
        if (firstUnanswered == null) {
            firstUnanswered = lastBeat;
        }
    }

    /**
     * Whether another one has an answer to what it sent after the first heartbeat of this one that
     * had none.
     */
    boolean isPassedOverFor(Silence other) {
        Long first = firstUnanswered;
        return first != null && other.lastAckSend - first > 0;
    }

    boolean longerThan(long seconds) {
        return nanoTime.getAsLong() - lastAckSend > TimeUnit.SECONDS.toNanos(seconds);
    }

    /**
     * Two thirds of the lease: with the whole lease, a process outlived its lease by some 100 ms
     * (measured).
     */
    boolean longerThanTwoThirdsOf(long seconds) {
        return nanoTime.getAsLong() - lastAckSend > TimeUnit.SECONDS.toNanos(seconds) * 2 / 3;
    }
}
