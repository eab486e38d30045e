package io.hudioperator.session;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InstantTime;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.protocol.HeldLock;
import io.hudioperator.protocol.Identity;
import io.hudioperator.protocol.InstantProtocol;
import io.hudioperator.protocol.Liveness;
import io.hudioperator.protocol.Publication;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.function.Supplier;

/**
 * The instants of one session: which of them it may begin, complete, give up, claim or remove, and
 * when. The storage wrapper asks before each change of the timeline. The runtime says which
 * instants it gives up or takes over.
 */
public final class OwnInstants {
    private static final Set<String> INGESTION = Set.of("commit", "deltacommit", "replacecommit");
    private static final String REPLACE = "replacecommit";
    private static final Set<String> REPLACES = Set.of(REPLACE, "clustering");
    private static final String RESTORE = "restore";
    private static final int MAX_COMPLETED = 100_000;
    private static final Set<String> DESTRUCTIVE = Set.of("rollback", RESTORE);

    private final String tableId;
    private final Identity me;
    private final Liveness liveness;
    private final InstantProtocol protocol;
    private final Supplier<HeldLock> held;
    private final TableReads reads;
    /**
     * Held while an instant is given up, and while one is cleared for publication. The two exclude
     * each other.
     */
    private final Object decision = new Object();

    private final Set<String> pending = ConcurrentHashMap.newKeySet();
    /** The instants that each of Hudi's write clients has begun. */
    private final Map<Object, Set<String>> ofClients = Collections.synchronizedMap(new WeakHashMap<>());

    /** With the revision of the closed gate behind which each one was begun. */
    private final Map<String, Long> savepoints = new ConcurrentHashMap<>();

    private final Set<String> givenUp = ConcurrentHashMap.newKeySet();
    /** The newest that a program has completed. */
    private final ConcurrentSkipListSet<String> completed = new ConcurrentSkipListSet<>();
    /** Whether no instant may begin any more. */
    private volatile boolean over;

    private final LostExecutors lostExecutors = new LostExecutors();
    private final LeftWrites left;

    /** @param held the lock that this process holds now, or null */
    OwnInstants(
            String tableId,
            Identity me,
            Liveness liveness,
            InstantProtocol protocol,
            Supplier<HeldLock> held,
            TableReads reads) {
        this.tableId = tableId;
        this.me = me;
        this.liveness = liveness;
        this.protocol = protocol;
        this.held = held;
        this.reads = reads;
        this.left = new LeftWrites(pending::contains, instant -> untouched(instant) && abandon(instant), liveness);
    }

    private HeldLock requireLock(String what) throws TimelineRefusedException {
        HeldLock lock = held.get();
        if (liveness.state() == Liveness.State.FENCED) { // I2
            throw ErrorCode.FENCED.refusal("incarnation " + me.inc + " is fenced: " + what);
        }
        if (lock == null) {
            throw ErrorCode.NOT_OWNER.refusal("the lock of table " + tableId + " is not held: " + what);
        }
        return lock;
    }

    public boolean ownsPending(String instant) {
        return pending.contains(instant) && liveness.state() != Liveness.State.FENCED;
    }

    /** Instants that this process has begun or claimed, and neither completed nor given up. */
    public Set<String> pending() {
        return Collections.unmodifiableSet(pending);
    }

    /**
     * Those of {@link #pending} that this write client of Hudi has begun, in the order of time.
     * Only a cycle of the lock that is for this client completes one of them.
     */
    public SortedSet<String> pendingOf(Object client) {
        SortedSet<String> found = new TreeSet<>(ofClients.getOrDefault(client, Set.of()));
        found.removeIf(instant -> !ownsPending(instant));
        return found;
    }

    /** This process has declared that it will not complete the instant. */
    public boolean hasGivenUp(String instant) {
        return givenUp.contains(instant);
    }

    /** Not in the middle of a declaration, which other threads make, too ({@link LeftWrites}). */
    boolean gaveUp() {
        synchronized (decision) {
            return !givenUp.isEmpty();
        }
    }

    /** The instants that this process has declared that it will not complete. */
    Set<String> givenUp() {
        return Collections.unmodifiableSet(givenUp);
    }

    /**
     * Called before {@code <t>.<action>.requested} is created: the record and the clock come first
     * (F12, I10).
     */
    public void beforeRequested(String instant, String action) throws TimelineRefusedException {
        if (over) { // F626
            throw ErrorCode.NOT_OWNER.refusal(
                    "the program has ended, and what it has left running may not begin a" + " write: " + instant);
        }
        if (me.isWriter() && DESTRUCTIVE.contains(action)) { // I7: only the table's agent decides what is rolled back
            throw ErrorCode.NOT_OWNER.refusal("a writer may not create a " + action + ": " + instant);
        }
        HeldLock lock = requireLock("create " + instant + "." + action + ".requested");
        requireTask(lock, instant, action);
        synchronized (lock) {
            lock.requireOpen();
            if (pending.contains(instant)) {
                protocol.requireHeld(lock.token); // already recorded: Hudi writes the file again
                return;
            }
            if (!InstantTime.isAfter(instant, lock.clock())) { // I10
                throw ErrorCode.CLOCK_NOT_PAST.refusal(
                        "instant " + instant + " is not past the table's clock " + lock.clock());
            }
            lostExecutors.begins(instant);
            protocol.recordInstant(lock.token, instant, action, RESTORE.equals(action) ? lock.gateRevision() : 0);
            lock.promised(instant);
            reads.begun(instant);
            if (lock.client() != null) {
                ofClients
                        .computeIfAbsent(lock.client(), client -> ConcurrentHashMap.newKeySet())
                        .add(instant);
            }
            pending.add(instant);
            left.begun(instant);
        }
    }

    /**
     * Called before Hudi keeps a completed commit by a savepoint, which has the commit's own time.
     * The agent records the instant once more, under a lock that was acquired behind the closed
     * gate. It completes the savepoint behind that very gate only: behind another one writers have
     * committed meanwhile (F435). The clock does not move before the savepoint's completion time
     * (I10).
     */
    void beginSavepoint(String instant) throws TimelineRefusedException {
        String what = "begin the savepoint of " + instant;
        HeldLock lock = requireLock(what);
        if (me.isWriter() || !lock.isGateClosed()) {
            throw ErrorCode.NOT_OWNER.refusal("only the agent, behind the closed gate, may " + what);
        }
        synchronized (lock) {
            lock.requireOpen();
            protocol.recordInstant(lock.token, instant, InstantProtocol.SAVEPOINT, 0);
            savepoints.put(instant, lock.gateRevision());
            owns(instant);
        }
    }

    /** Adds an instant that was recorded or claimed without a task that runs already. */
    private void owns(String instant) {
        lostExecutors.begins(instant);
        givenUp.remove(instant);
        pending.add(instant);
    }

    /**
     * Called before Hudi undoes completed commits. Only for the agent, under a lock that was
     * acquired while the gate was closed for this restore; the gate must still be closed for it
     * (F8).
     */
    void beginRestore(String nonce) throws TimelineRefusedException {
        HeldLock lock = requireLock("begin restore " + nonce);
        if (me.isWriter() || !lock.isGateRestoring(nonce)) {
            throw ErrorCode.NOT_OWNER.refusal(
                    "only the agent, behind a gate that is closed for this restore, may begin restore " + nonce);
        }
        lock.restores();
    }

    private static void requireTask(HeldLock lock, String instant, String action) throws TimelineRefusedException {
        if (RESTORE.equals(action) && !lock.mayRestore()) { // I8
            throw ErrorCode.NOT_OWNER.refusal("only the table's agent may restore it, and only on request: " + instant);
        }
        if (REPLACES.contains(action) && lock.isNonBlocking()) { // F423
            throw ErrorCode.STATEMENT.refusal("instant " + instant + " replaces file groups of a table of mode "
                    + "NonBlocking: a bucket keeps its file id in this mode, so rows that are written to it later "
                    + "would be invisible; use DELETE FROM, and an upsert");
        }
    }

    /**
     * Called before a completed file is removed: no writer may remove an acknowledged commit (I8).
     */
    public void beforeCompletedRemoved(String what) throws TimelineRefusedException {
        requireHeldNow(what);
        if (me.isWriter()) {
            throw ErrorCode.NOT_OWNER.refusal("a writer may not remove a completed instant: " + what);
        }
    }

    /**
     * Called before a pending file of an instant that is not this session's own is written or
     * removed. Only the table's agent decides what becomes of instants that others have begun (I7).
     */
    public void beforePendingOfOthers(String what) throws TimelineRefusedException {
        requireHeldNow(what);
        if (me.isWriter()) {
            throw ErrorCode.NOT_OWNER.refusal("a writer may not change a pending instant that is not its own: " + what);
        }
    }

    /**
     * Called before the beginning of the timeline is put, which is no instant of anybody (F630).
     * Only the table's agent knows whether anything was ever committed.
     */
    public void beforeBeginning(String what) throws TimelineRefusedException {
        requireHeldNow(what);
        if (me.isWriter()) {
            throw ErrorCode.NOT_OWNER.refusal("only the table's agent begins its timeline: " + what);
        }
    }

    /**
     * Whether the inflight file of a savepoint may be written; only after {@link #beginSavepoint}.
     */
    public boolean ownsSavepoint(String instant) {
        return savepoints.containsKey(instant) && ownsPending(instant);
    }

    /**
     * Called before the completed file is created or renamed, and again before its bytes are sent.
     */
    public Publication beforeCompleted(String instant, String completion, String action, Publication.Listing listing)
            throws TimelineRefusedException {
        HeldLock lock = requireLock("complete " + instant);
        synchronized (decision) {
            return publication(lock, instant, completion, action, listing);
        }
    }

    private Publication publication(
            HeldLock lock, String instant, String completion, String action, Publication.Listing listing)
            throws TimelineRefusedException {
        requireTask(lock, instant, action);
        synchronized (lock) {
            lock.requireOpen();
            if (savepoints.containsKey(instant) != InstantProtocol.SAVEPOINT.equals(action)) {
                // a savepoint has the time of a completed commit (I3)
                throw ErrorCode.NOT_OWNER.refusal("instant " + instant + " is not recorded for a " + action);
            }
            // a clustering replaces file groups that writers change
            boolean competes = me.isWriter() ? INGESTION.contains(action) : REPLACE.equals(action);
            if (competes && !lock.mayCommit(instant)) { // I9
                throw ErrorCode.OPTION.refusal("instant " + instant
                        + " was not checked for conflicts under this lock: hoodie.write.concurrency.mode and "
                        + "hoodie.write.lock.conflict.resolution.strategy are owned by the operator");
            }
            boolean promised = lock.hasPromised(instant, completion);
            if (!promised && !InstantTime.isAfter(completion, lock.clock())) { // I10
                throw ErrorCode.CLOCK_NOT_PAST.refusal("completion time " + completion + " of " + instant
                        + " is not past the table's clock " + lock.clock());
            }
            protocol.publish(lock.token, instant, completion, savepoints.getOrDefault(instant, 0L));
            lock.promised(completion);
            return lock.publication(instant, completion, listing);
        }
    }

    /** For every other change: requires the lock, as etcd sees it now. */
    public void requireHeldNow(String what) throws TimelineRefusedException {
        protocol.requireHeld(requireLock(what).token);
    }

    /** Requires the lock as this session sees it. This is enough where a later check follows. */
    public void requireHeldHere(String what) throws TimelineRefusedException {
        requireLock(what);
    }

    /**
     * Declares that the instant will never be completed. Only the owner's statement allows its
     * rollback. Returns false when the instant is not ours to abandon, or when its completed file
     * was sent under the lock that is held now: only the release finds out what became of that file
     * (F1, I3).
     */
    boolean abandon(String instant) {
        synchronized (decision) { // nothing is sent between this check and the declaration
            HeldLock lock = held.get();
            if (lock != null && lock.hasPublished(instant)) {
                return false;
            }
            boolean abandoned = protocol.abandon(instant);
            pending.remove(instant);
            givenUp.add(instant);
            return abandoned;
        }
    }

    /**
     * Makes this session the only executor of a table service's instant. Returns false when it
     * belongs to an incarnation that is not settled.
     */
    boolean claim(String instant, String previousOwnerInc) {
        boolean claimed = protocol.claim(instant, previousOwnerInc);
        if (claimed) {
            owns(instant); // tasks of its earlier executor are another driver's
        }
        return claimed;
    }

    private boolean untouched(String instant) {
        return !lostExecutors.untouched(List.of(instant)).isEmpty();
    }

    /** See {@link LostExecutors#forgettable}. */
    List<String> forgettable(List<String> completed) {
        return lostExecutors.forgettable(completed);
    }

    /** From now on no instant may begin. Those that have begun are not changed. */
    void end() {
        over = true;
    }

    /**
     * Called before the lock is acquired. After {@link #end} it is for instants only that have
     * begun. A thread that a program has left running would otherwise have it again and again, and
     * while it has it, this session cannot leave (F626).
     */
    void requireLockNeeded() {
        if (over && pending.isEmpty()) {
            throw ErrorCode.NOT_OWNER.exception(
                    "the program has ended, and what it has left running may not begin a write");
        }
    }

    /** The instants that the program of this driver has completed. */
    Set<String> completed() {
        return Collections.unmodifiableSet(completed);
    }

    /** Writes of a program that are left pending. */
    LeftWrites left() {
        return left;
    }

    /**
     * These instants are completed, and the lock under which they were completed is released.
     *
     * @param forgotten those whose records are gone, with some that earlier releases had kept
     */
    void released(List<String> released, List<String> forgotten) {
        lostExecutors.forget(forgotten);
        left.forget(released);
        if (left.isWatching()) {
            completed.addAll(released);
            while (completed.size() > MAX_COMPLETED) {
                completed.pollFirst();
            }
        }
        pending.removeAll(released);
        savepoints.keySet().removeAll(released);
    }
}
