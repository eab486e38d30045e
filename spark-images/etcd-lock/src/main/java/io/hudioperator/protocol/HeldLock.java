package io.hudioperator.protocol;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InstantTime;
import io.hudioperator.contract.TimelineRefusedException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * One cycle of the lock, from acquire to release: its token, the largest time that this session has
 * promised, and its publications. No other process can move the clock while the token is ours, so
 * the last promise is the table's clock.
 */
public final class HeldLock {
    public final long token;
    /** The thread that acquired the lock. Other threads wait for their own cycle. */
    private final Thread thread = Thread.currentThread();

    private String lastPromised;
    private final List<Publication> publications = new ArrayList<>();
    private final List<String> unanswered = new ArrayList<>();
    private final Set<String> checked = new HashSet<>();
    private final boolean nonBlocking;
    private final boolean gateClosed;
    private final String restoring;
    private final long gateRevision;
    private final InsertRule insertConflicts;
    private boolean restores;
    private Object client;
    private boolean releasing;

    public HeldLock(long token, String clock, Gate gate) {
        this.token = token;
        this.lastPromised = clock;
        this.nonBlocking = gate.isNonBlocking();
        this.gateClosed = gate.isClosed();
        this.restoring = gate.isClosed() ? gate.restoring() : "";
        this.gateRevision = gate.revision;
        this.insertConflicts = gate.insertConflicts();
    }

    /** Whether the current thread acquired it. */
    public boolean isHere() {
        return thread == Thread.currentThread();
    }

    /**
     * The lock was acquired under a gate that lets writers commit without comparing each other's
     * file groups.
     */
    public boolean isNonBlocking() {
        return nonBlocking;
    }

    /**
     * The gate was closed when this lock was acquired. The operator opens it only after the agent
     * has reported.
     */
    public boolean isGateClosed() {
        return gateClosed;
    }

    /** The gate was closed for this restore when the lock was acquired. */
    public boolean isGateRestoring(String nonce) {
        return !nonce.isEmpty() && nonce.equals(restoring);
    }

    /** Revision of the gate under which the lock was acquired. */
    public long gateRevision() {
        return gateRevision;
    }

    /** The agent restores the table in this cycle and may remove completed instants. */
    public synchronized void restores() {
        restores = true;
    }

    public synchronized boolean mayRestore() {
        return restores;
    }

    /** The write client of Hudi that this cycle is for. */
    public synchronized void isFor(Object writeClient) {
        client = writeClient;
    }

    /** See {@link #isFor}; null when nobody has said it. */
    public synchronized Object client() {
        return client;
    }

    /** Whether this instant may be published as far as other writers are concerned (I9). */
    public synchronized boolean mayCommit(String instant) {
        return checked.contains(instant);
    }

    public synchronized String clock() {
        return lastPromised;
    }

    public synchronized void promised(String time) {
        lastPromised = InstantTime.max(lastPromised, time);
    }

    /**
     * Records that Hudi has asked the conflict strategy about this instant in this cycle or, in the
     * non-blocking mode, that the provider has made the strategy's other checks. Returns the gate's
     * rule for inserts.
     */
    public synchronized InsertRule conflictsChecked(String instant) {
        checked.add(instant);
        return insertConflicts;
    }

    public synchronized boolean hasPromised(String instant, String completion) {
        return publications.stream().anyMatch(p -> p.instant.equals(instant) && p.completion.equals(completion));
    }

    /** Whether a completed file of this instant was sent in this cycle, whatever its outcome. */
    public synchronized boolean hasPublished(String instant) {
        return publications.stream().anyMatch(p -> p.instant.equals(instant));
    }

    /** Adds a publication, or returns the one that the same instant has already begun. */
    public synchronized Publication publication(String instant, String completion, Publication.Listing listing)
            throws TimelineRefusedException {
        requireOpen();
        for (Publication p : publications) {
            if (p.instant.equals(instant) && p.completion.equals(completion)) {
                p.begin();
                return p;
            }
        }
        Publication added = new Publication(instant, completion, listing);
        publications.add(added);
        return added;
    }

    /**
     * Records that a file that completes no instant of the table is about to be sent. Returns false
     * when the lock is being released, because the release does not wait for this file.
     */
    public synchronized boolean sends(String file) {
        return !releasing && unanswered.add(file);
    }

    /**
     * The store has acknowledged the file. An earlier request for the same file that had no answer
     * still counts as unanswered.
     */
    public synchronized void answered(String file) {
        unanswered.remove(file);
    }

    /**
     * Files that have been, or may yet be, sent without an answer. They may land within the drain
     * (F37).
     */
    public synchronized List<String> unanswered() {
        return new ArrayList<>(unanswered);
    }

    public synchronized void requireOpen() throws TimelineRefusedException {
        if (releasing) {
            throw ErrorCode.TOKEN.refusal("the lock is being released");
        }
    }

    /** Nothing more is published under this token from now on. */
    public synchronized void beginRelease() {
        releasing = true;
    }

    public synchronized List<Publication> unknown() {
        return publications.stream()
                .filter(p -> p.outcome() == Publication.Outcome.UNKNOWN)
                .collect(Collectors.toList());
    }

    public String unknownInstants() {
        return unknown().stream().map(p -> p.instant).collect(Collectors.joining(","));
    }

    public synchronized List<String> completed() {
        return publications.stream()
                .filter(p -> p.outcome() == Publication.Outcome.COMPLETED)
                .map(p -> p.instant)
                .distinct()
                .collect(Collectors.toList());
    }
}
