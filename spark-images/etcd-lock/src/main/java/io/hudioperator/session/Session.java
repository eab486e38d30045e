package io.hudioperator.session;

import com.fasterxml.jackson.databind.JsonNode;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InstantTime;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.ProtocolLog;
import io.hudioperator.contract.TableKeys;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.etcd.EtcdClient;
import io.hudioperator.etcd.EtcdFacade;
import io.hudioperator.etcd.EtcdSettings;
import io.hudioperator.etcd.KeyValue;
import io.hudioperator.etcd.Pause;
import io.hudioperator.protocol.Acquisition;
import io.hudioperator.protocol.DefiniteTxn;
import io.hudioperator.protocol.Durations;
import io.hudioperator.protocol.Gate;
import io.hudioperator.protocol.HeldLock;
import io.hudioperator.protocol.Identity;
import io.hudioperator.protocol.InsertRule;
import io.hudioperator.protocol.InstantProtocol;
import io.hudioperator.protocol.Liveness;
import io.hudioperator.protocol.LockProtocol;
import io.hudioperator.protocol.Publication;
import io.hudioperator.protocol.Registration;
import io.hudioperator.protocol.Silence;
import io.hudioperator.protocol.TableStorage;
import io.hudioperator.protocol.WallClock;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.hudi.exception.HoodieException;
import org.apache.spark.SparkContext;

/**
 * One incarnation at one table: its registration, its heartbeat, the lock while it is held, and its
 * own instants. There is one session for each table in a JVM; threads of the JVM use the lock one
 * after the other.
 */
public final class Session {
    private static final long POLL_MILLIS = 20;
    private static final long RELIST_MILLIS = 1000;

    private final Map<String, String> settings;
    private final Consumer<Session> whenClosed;
    private final Identity me;
    private final TableKeys keys;
    private final String tableId;
    private final String basePath;
    private final EtcdClient etcd;
    private final Liveness liveness;
    private final Registration registration;
    private final LockProtocol protocol;
    private final InstantProtocol instantProtocol;
    private final OwnInstants instants;
    private final ProtocolLog log;
    private final EtcdFacade facade;
    private final Semaphore turn = new Semaphore(1, true);
    private volatile InsertRule insertRule = InsertRule.KEY; // the gate's rule at the last read
    private final TableReads reads = new TableReads();
    private volatile HeldLock held; // HeldLock.isHere: which thread of this process has it
    private volatile boolean acquiring;
    private volatile boolean authorityVerified;
    private volatile boolean timelineSeen;
    private volatile String lastConflict;
    private volatile int yieldsLeft;
    private volatile String lastOwner = "";
    private volatile long lastLockWait;

    /** @param whenClosed called after a clean exit */
    Session(
            Map<String, String> settings,
            Map<String, String> env,
            EtcdClient etcd,
            EtcdSettings etcdSettings,
            Liveness.Halt halt,
            Consumer<Session> whenClosed) {
        this.settings = Map.copyOf(settings);
        this.whenClosed = whenClosed;
        this.tableId = required("tableId");
        this.basePath = required("basePath");
        this.me = new Identity(settings, env);
        this.keys = new TableKeys(etcdSettings.prefix, tableId);
        this.etcd = etcd;
        this.log = new ProtocolLog(tableId, me.inc, me.role);
        this.facade = new EtcdFacade(etcd, keys.prefix(), keys.tablePrefix(), keys.controlPrefix());
        KeyValue gate = facade.get(keys.gate());
        JsonNode rules = Json.parse(gate == null ? "" : gate.value());
        Gate.requireHudi(rules, Gate.hudiVersion()); // before the registration
        Durations durations = Durations.of(settings, rules);
        Silence silence = new Silence(System::nanoTime);
        this.liveness = new Liveness(etcd, me, durations, silence, halt);
        DefiniteTxn definite = new DefiniteTxn(etcd, keys, log, liveness::silentTooLong);
        this.registration = new Registration(etcd, keys, me, log, definite);
        this.protocol = new LockProtocol(etcd, keys, me, log, definite);
        this.instantProtocol = new InstantProtocol(keys, me, log, definite);
        this.instants = new OwnInstants(tableId, me, liveness, instantProtocol, this::heldNow, reads);
    }

    private String required(String name) {
        String value = settings.get(name);
        if (value == null || value.isEmpty()) {
            throw ErrorCode.OPTION.exception("setting " + name + " is missing");
        }
        return value;
    }

    void start() {
        liveness.start(registration);
    }

    // ---- identity and state

    public String inc() {
        return me.inc;
    }

    public String attempt() {
        return me.attempt;
    }

    public String role() {
        return me.role;
    }

    public String appId() {
        return me.appId;
    }

    public String tableId() {
        return tableId;
    }

    public String basePath() {
        return basePath;
    }

    /** LIVE, LOST (etcd is silent or the lease is lost; returns to LIVE), FENCED or CLOSED. */
    public String state() {
        return liveness.state().name();
    }

    public EtcdFacade etcd() {
        return facade;
    }

    /** Adds the Spark application id to the registration; it is needed to prove executors dead. */
    public void setAppId(String appId) {
        me.appId = appId == null ? "" : appId;
        registration.update();
    }

    public boolean holdsLock() {
        return held != null;
    }

    /** See {@link WallClock#refused()}. */
    public String clockRefused() {
        return WallClock.refused();
    }

    /** Wait of the last acquire, in milliseconds. */
    public long lastLockWait() {
        return lastLockWait;
    }

    /**
     * Limit on yields of the next commits to writers of higher priority. The runtime sets it before
     * each write; the default is none.
     */
    public void mayYield(int times) {
        yieldsLeft = times;
    }

    /** Pending instants to which a commit of this session yields; empty when it may not yield. */
    public Set<String> pendingAhead() {
        return me.isWriter() && yieldsLeft > 0 ? instantProtocol.precedence().pendingAhead(me.priority) : Set.of();
    }

    /**
     * See {@link LostExecutors#recomputed()}. The runtime hands it back with the write of rows that
     * differ each time they are computed (F106).
     */
    public long recomputed() {
        return LostExecutors.recomputed();
    }

    /** JSON of the last commit that was refused because of a conflict; null when there was none. */
    public String lastConflict() {
        return lastConflict;
    }

    public void conflict(String json) {
        lastConflict = json;
    }

    /** Owner of the lock during the last wait for it. */
    public String lastOwner() {
        return lastOwner;
    }

    // ---- lock

    /**
     * Returns false only when time is up. Fenced, not admitted, no gate or clock behind: throws
     * HoodieException, which Hudi does not retry.
     */
    public boolean acquire(long nanos, TableStorage storage) throws InterruptedException {
        return acquire(nanos, storage, false);
    }

    /**
     * @param again after the lock was given back unused: the place in the queue is the first one
     */
    public boolean acquire(long nanos, TableStorage storage, boolean again) throws InterruptedException {
        long start = System.nanoTime();
        if (!turn.tryAcquire(nanos, TimeUnit.NANOSECONDS)) {
            lastOwner = "another thread of this process";
            return false;
        }
        try {
            instants.requireLockNeeded();
            acquiring = true;
            return acquireInTurn(nanos - (System.nanoTime() - start), storage, again);
        } finally {
            lastLockWait = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
            acquiring = false;
            if (held == null) {
                turn.release();
            }
        }
    }

    private boolean acquireInTurn(long nanos, TableStorage storage, boolean again) throws InterruptedException {
        try (Acquisition acquisition = new Acquisition(etcd, protocol, keys, me, liveness, again, this::gateRead)) {
            LockProtocol.Acquired lock = acquisition.run(nanos);
            lastOwner = acquisition.lastOwner() == null
                    ? ""
                    : acquisition.lastOwner().value();
            if (lock != null) {
                enter(lock, acquisition.gate(), storage);
            }
            return lock != null;
        }
    }

    /** Called at each step of an acquire, which may wait for long. */
    private void gateRead(Gate gate) {
        instants.requireLockNeeded();
        liveness.durations(Durations.of(settings, gate.json()));
    }

    /** Checks what must be true before the lock is used. If a check fails, the lock is released. */
    private void enter(LockProtocol.Acquired lock, Gate gate, TableStorage storage) throws InterruptedException {
        boolean entered = false;
        try {
            String clock = lock.clock() == null ? InstantTime.NONE : lock.clock();
            if (!timelineSeen || InstantTime.NONE.equals(clock)) {
                // an etcd that was restored to an older state has lost later times (I10)
                clock = InstantTime.max(clock, storage.latestTime());
                timelineSeen = true;
            }
            if (!InstantTime.NONE.equals(clock)) {
                WallClock.passes(clock, liveness.durations().maxClockSkew); // I10
            }
            WallClock.passesOwnTimes(liveness.durations().maxClockSkew);
            if (!authorityVerified && !gate.authority().isEmpty()) {
                authorityVerified = storage.verifyAuthority(tableId, etcd.clusterId(), keys.prefix(), gate.authority());
            }
            held = new HeldLock(lock.token, clock, gate);
            entered = true;
        } catch (IOException e) {
            throw new HoodieException("cannot read table " + basePath + ": " + e.getMessage(), e);
        } finally {
            if (!entered) {
                orEnds(() -> protocol.release(lock.token, List.of()));
            }
        }
    }

    /**
     * Releases the lock. While the outcome of a publication is unknown, it first waits for the
     * drain and lists the timeline: the file may still be on the wire although the store's client
     * has given up (F1, I1).
     */
    public void release() {
        HeldLock lock = held;
        if (lock == null) {
            return;
        }
        lock.beginRelease();
        orEnds(() -> {
            awaitAnswers(lock);
            List<String> completed = lock.completed();
            List<String> forgotten = instants.forgettable(completed);
            protocol.release(lock.token, forgotten);
            instants.released(completed, forgotten);
        });
        held = null;
        turn.release();
    }

    /**
     * Without a definite answer the lock may still be ours, and this process must not take it
     * again. Everybody would wait for it until it has been held for too long, so this incarnation
     * ends at once and is settled (F561).
     */
    private void orEnds(Runnable releasing) {
        try {
            releasing.run();
        } catch (Throwable e) { // NOPMD - an Error keeps the lock as well
            liveness.keepsLock("the lock of table " + tableId + " was not released: " + e.getMessage());
            throw e;
        }
    }

    private void awaitAnswers(HeldLock lock) {
        if (lock.unknown().isEmpty() && lock.unanswered().isEmpty()) {
            return;
        }
        log.line("drain")
                .with("token", lock.token)
                .with("detail", lock.unknownInstants())
                .write(0, true);
        lock.unanswered()
                .forEach(file -> System.err.println(
                        "waiting before the lock is released: the store has not acknowledged " + file));
        Pause.millis(liveness.durations().drain * 1000L); // the wait before release
        lookUntilKnown(lock);
    }

    private void lookUntilKnown(HeldLock lock) {
        while (!lock.unknown().isEmpty()) {
            for (Publication p : lock.unknown()) {
                try {
                    p.look();
                    log.line("drained")
                            .with("instant", p.instant)
                            .with("detail", p.outcome().name())
                            .write(0, true);
                } catch (IOException | RuntimeException e) { // never decide on a failed listing (I11)
                    log.line("drained")
                            .with("instant", p.instant)
                            .with("detail", "cannot list: " + e.getMessage())
                            .write(0, false);
                }
            }
            if (!lock.unknown().isEmpty()) {
                if (liveness.state() == Liveness.State.FENCED) {
                    throw ErrorCode.FENCED.exception(
                            "fenced while the outcome of a publication was unknown: the lock is kept, and settling"
                                    + " waits for the drain");
                }
                Pause.millis(RELIST_MILLIS);
            }
        }
    }

    /**
     * The lock that this process holds now, in any of its threads; null when it holds none. Its
     * release waits for requests that are sent under it.
     */
    public HeldLock heldNow() {
        return held;
    }

    /** See {@link LockProtocol#clockWhileFree()}. */
    public String clockWhileFree() {
        return protocol.clockWhileFree();
    }

    /** Reads of the table by the threads of this process. */
    public TableReads reads() {
        return reads;
    }

    // ---- instants

    /** The rules for this session's instants, which the storage wrapper asks. */
    public OwnInstants instants() {
        return instants;
    }

    /** False for an agent. */
    public boolean isWriter() {
        return me.isWriter();
    }

    /** The gate's last rule for inserts. */
    public InsertRule insertRule() {
        return insertRule;
    }

    /**
     * Hudi now checks this instant for conflicts, under the lock. Returns the rule of the table's
     * gate for inserts.
     */
    public InsertRule conflictsChecked(String instant) {
        HeldLock lock = held;
        insertRule = lock == null ? InsertRule.KEY : lock.conflictsChecked(instant);
        return insertRule;
    }

    /**
     * Says which of Hudi's write clients has acquired the lock that is held now. Hudi begins and
     * completes an instant with the same client, in two lock cycles.
     *
     * @param client compared by identity, and not kept alive
     */
    public void isFor(Object client) {
        HeldLock lock = held;
        if (lock != null) {
            lock.isFor(client);
        }
    }

    /**
     * A writer's lock cycle in the non-blocking mode: {@link #commitsChecked} is required before
     * anything is published.
     */
    public boolean isNonBlockingCommit() {
        HeldLock lock = held;
        return lock != null && lock.isNonBlocking() && me.isWriter();
    }

    /** {@code CommitChecks} hold for these instants under the lock that is held now. */
    public void commitsChecked(Set<String> begun) {
        HeldLock lock = held;
        if (lock != null) {
            begun.forEach(lock::conflictsChecked);
        }
    }

    // ---- for the runtime

    /**
     * Declares that the instant will never be completed. Only the owner's statement allows its
     * rollback. Returns false when the instant is not ours to abandon, or when its completed file
     * was sent under the lock that is held now: only the release finds out what became of that file
     * (F1, I3).
     */
    public boolean abandon(String instant) {
        return instants.abandon(instant);
    }

    /** Whether this process has declared of an instant that it will not complete it. */
    public boolean gaveUp() {
        return instants.gaveUp();
    }

    /**
     * From now on, an instant that a write leaves pending is given up once the write is over and
     * none of its tasks runs any more ({@link LeftWrites}). For the driver of a program; the
     * runtime gives up what it has begun by itself.
     */
    public void giveUpLeftWrites(SparkContext context) {
        instants.left().watch(context, "hudi-operator-left-writes-" + tableId);
    }

    /**
     * The program of this driver has ended: what it has left running begins no write any more. The
     * runtime counts its commits next, and a later one would be counted nowhere (F626).
     */
    public void programEnded() {
        instants.end();
    }

    /** The instants that the program of this driver has completed, once their lock was released. */
    public List<String> completedInstants() {
        return List.copyOf(instants.completed());
    }

    /**
     * Makes this session the only executor of a table service's instant. Returns false when it
     * belongs to an incarnation that is not settled.
     */
    public boolean claim(String instant, String previousOwnerInc) {
        return instants.claim(instant, previousOwnerInc);
    }

    /**
     * Call this before Hudi keeps a completed commit by a savepoint, which has the commit's own
     * time. The agent records the instant once more, under a lock that was acquired behind the
     * closed gate. The clock does not move before the savepoint's completion time (I10).
     */
    public void beginSavepoint(String instant) throws TimelineRefusedException {
        instants.beginSavepoint(instant);
    }

    /**
     * Call this before Hudi undoes completed commits. Only for the agent, under a lock that was
     * acquired while the gate was closed for this restore; the gate must still be closed for it
     * (F8).
     */
    public void beginRestore(String nonce) throws TimelineRefusedException {
        instants.beginRestore(nonce);
    }

    /**
     * The same as {@link #abandon}, for an own record whose instant is gone or completed according
     * to a fresh listing. The agent makes its own check and then removes the record.
     */
    public boolean forget(String instant) {
        return abandon(instant);
    }

    /** Pending instants that this session owns or has claimed, as recorded in etcd. */
    public List<String> pendingInstants() {
        return instantProtocol.pendingInstants();
    }

    /** The lock is held, or an acquire, a publication or a release has no definite outcome yet. */
    public boolean unresolved() {
        return held != null || acquiring || protocol.acquireUnknown();
    }

    /** Waits until nothing is unresolved. Returns whether that is the case. */
    public boolean awaitQuiet(long millis) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        while (unresolved()) {
            if (System.nanoTime() - end >= 0) {
                return false;
            }
            Pause.millis(POLL_MILLIS);
        }
        return true;
    }

    /**
     * Clean exit: when there is no lock, no unknown outcome and no Pending instant, removes the
     * registration and closes the connection to etcd. Otherwise returns false: the registration
     * stays, and the operator settles this incarnation.
     */
    public boolean close() {
        if (liveness.state() == Liveness.State.CLOSED) {
            return true;
        }
        if (liveness.state() == Liveness.State.FENCED || !turn.tryAcquire()) {
            return false;
        }
        try {
            if (protocol.acquireUnknown() || !instantProtocol.pendingInstants().isEmpty()) {
                return false;
            }
            if (instants.gaveUp() && LostExecutors.lost()) {
                return false; // its executor may still write for that instant (F4, F602)
            }
            liveness.leaves();
            if (!registration.cleanExit()) {
                return false;
            }
            liveness.close();
            whenClosed.accept(this);
            etcd.close();
            return true;
        } finally {
            turn.release();
        }
    }
}
