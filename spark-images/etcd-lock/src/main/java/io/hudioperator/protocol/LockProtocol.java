package io.hudioperator.protocol;

import io.hudioperator.contract.Json;
import io.hudioperator.contract.ProtocolLog;
import io.hudioperator.contract.TableKeys;
import io.hudioperator.etcd.EtcdClient;
import io.hudioperator.etcd.EtcdException;
import io.hudioperator.etcd.KeyValue;
import io.hudioperator.etcd.Txn;
import java.util.Collection;
import java.util.List;

/**
 * The transactions of the lock and its queue, each with a definite outcome. Names and compares are
 * those of protocol.json. The transactions of the registration are in {@link Registration}, those
 * of instants in {@link InstantProtocol}.
 *
 * <p>A call without an answer is repeated ({@link DefiniteTxn}) only where sending the request
 * twice has the effect of sending it once, even when the first one is executed long after the
 * second. An acquire is resolved instead of repeated: see {@link #resolve}.
 */
public final class LockProtocol {
    /** Keys on which a waiter bases its decision: one linearizable read. Absent keys are null. */
    static final class View {
        final long revision;
        final KeyValue gate;
        final KeyValue fence;
        final KeyValue alive;
        final KeyValue lock;
        final KeyValue clock;
        final List<KeyValue> queue;

        View(Txn.Result r) {
            revision = r.revision;
            gate = r.one(0);
            fence = r.one(1);
            alive = r.one(2);
            lock = r.one(3);
            clock = r.one(4);
            queue = r.reads.get(5);
        }
    }

    /** A lock that is ours, with the clock at the moment of the acquire. */
    public static final class Acquired {
        public final long token;
        private final KeyValue clock;

        Acquired(long token, KeyValue clock) {
            this.token = token;
            this.clock = clock;
        }

        /** Null when the table has none yet. Throws when it cannot be read; the lock is ours. */
        public String clock() {
            return TableClock.time(clock);
        }
    }

    private final EtcdClient etcd;
    private final TableKeys keys;
    private final Identity me;
    private final ProtocolLog log;
    private final DefiniteTxn definite;
    private volatile boolean acquireUnknown;

    public LockProtocol(EtcdClient etcd, TableKeys keys, Identity me, ProtocolLog log, DefiniteTxn definite) {
        this.etcd = etcd;
        this.keys = keys;
        this.me = me;
        this.log = log;
        this.definite = definite;
    }

    View view() {
        return new View(definite.of(
                "read",
                Txn.when()
                        .then(Txn.Op.get(keys.gate()))
                        .then(Txn.Op.get(keys.fence(me.inc)))
                        .then(Txn.Op.get(keys.alive(me.inc)))
                        .then(Txn.Op.get(keys.lock()))
                        .then(Txn.Op.get(keys.clock()))
                        .then(Txn.Op.range(keys.queue("")))));
    }

    /**
     * The table's clock, if nobody has the lock; otherwise null. An acquire that finds the same
     * clock shows that nothing was completed in between: each completion moves the clock, under the
     * lock.
     */
    public String clockWhileFree() {
        View view = view();
        return view.lock == null ? TableClock.time(view.clock) : null;
    }

    /**
     * Acquires the lock. Null means that the request definitely did not and never will acquire it;
     * the next {@link #view} shows why.
     *
     * @param lockLease 0, or the session's lease in mode LeaseOnly
     * @param ticket the waiter's place in the queue, deleted in the same transaction; null for
     *     none
     */
    Acquired acquire(Liveness liveness, long gateRevision, String lockValue, long lockLease, String ticket) {
        Txn txn = Txn.when()
                .absent(keys.lock()) // I1
                .absent(keys.fence(me.inc)) // I2
                // only my last heartbeat counts (F16)
                .modRevision(keys.alive(me.inc), liveness.aliveRevision())
                .modRevision(keys.gate(), gateRevision) // the gate that I read and that admits me (F8)
                .then(Txn.Op.put(keys.lock(), lockValue, lockLease))
                .then(Txn.Op.get(keys.clock()));
        if (ticket != null) {
            txn.then(Txn.Op.delete(keys.queue(ticket)));
        }
        String nonce = Json.text(Json.parse(lockValue), "nonce");
        try {
            Txn.Result r = etcd.txn(txn);
            ProtocolLog.Line line = log.line("acquire").with("nonce", nonce);
            if (!r.succeeded) {
                line.write(r.revision, false);
                return null;
            }
            line.with("token", r.revision).write(r.revision, true);
            return new Acquired(r.revision, r.one(0));
        } catch (EtcdException e) {
            log.line("acquire")
                    .with("nonce", nonce)
                    .with("detail", e.outcome() + " " + e.getMessage())
                    .write(0, false);
            switch (e.outcome()) {
                case UNKNOWN:
                    acquireUnknown = true; // stays true when this throws; a clean exit is then impossible (F15)
                    Acquired resolved = resolve(liveness, lockValue, nonce);
                    acquireUnknown = false;
                    return resolved;
                case LEASE_GONE: // LeaseOnly: the heartbeat will take another lease
                    return null;
                default:
                    throw DefiniteTxn.unexpected("acquire", e);
            }
        }
    }

    /**
     * Resolves an acquire without an answer: either the lock is mine, or {@code alive} is put
     * again, so that the lost request finds another revision than it compares, whenever it is
     * executed. Reading back is not enough: an acquire was executed 25 s after its time-out
     * (measured).
     */
    private Acquired resolve(Liveness liveness, String lockValue, String nonce) {
        Txn txn = Txn.when()
                .value(keys.lock(), lockValue)
                .then(Txn.Op.get(keys.lock()))
                .then(Txn.Op.get(keys.clock()))
                .otherwise(Txn.Op.put(keys.alive(me.inc), liveness.nextValue(), liveness.lease()));
        ProtocolLog.Line line = log.line("acquire-resolve").with("nonce", nonce);
        try {
            Txn.Result r = definite.repeat("acquire-resolve", txn);
            if (r.succeeded) {
                long token = r.one(0).createRevision();
                line.with("token", token).write(r.revision, true);
                return new Acquired(token, r.one(1));
            }
            line.write(r.revision, false);
            liveness.alivePut(r.revision);
            return null;
        } catch (EtcdException e) {
            if (e.outcome() != EtcdException.Outcome.LEASE_GONE) {
                throw DefiniteTxn.unexpected("acquire-resolve", e);
            }
            // The else branch was taken (a lease in the other branch is not checked) and its lease
            // is gone, and with it the alive key at the
            // revision that the lost acquire compares: it can never succeed.
            line.with("detail", "lease gone").write(0, false);
            return null;
        }
    }

    /** Whether there was an acquire whose outcome could not be determined. */
    public boolean acquireUnknown() {
        return acquireUnknown;
    }

    /**
     * Takes or updates a place in the queue. Returns false when the place was not taken (fenced, or
     * another heartbeat); the caller reads again.
     */
    boolean enqueue(Liveness liveness, String ticket, String value, boolean update) {
        Txn txn = Txn.when().absent(keys.fence(me.inc)).modRevision(keys.alive(me.inc), liveness.aliveRevision());
        if (update) {
            txn.exists(keys.queue(ticket));
        }
        txn.then(Txn.Op.put(keys.queue(ticket), value, liveness.lease()));
        try {
            Txn.Result r = etcd.txn(txn);
            log.line("enqueue").with("key", ticket).write(r.revision, r.succeeded);
            return r.succeeded;
        } catch (EtcdException e) {
            log.line("enqueue")
                    .with("key", ticket)
                    .with("detail", e.outcome().name())
                    .write(0, false);
            if (e.outcome() == EtcdException.Outcome.UNKNOWN) {
                liveness.putAlive(); // a late ticket would block every other waiter
            } else if (e.outcome() != EtcdException.Outcome.LEASE_GONE) {
                throw DefiniteTxn.unexpected("enqueue", e);
            }
            return false;
        }
    }

    /**
     * Releases the lock and deletes the records of the instants that were completed under this
     * token. A failed compare means that the lock is no longer ours; in both cases the cycle is
     * over.
     */
    public void release(long token, Collection<String> completed) {
        Txn txn = Txn.when().createRevision(keys.lock(), token).then(Txn.Op.delete(keys.lock()));
        completed.forEach(t -> txn.then(Txn.Op.delete(keys.instant(t))));
        Txn.Result r = definite.of("release", txn);
        log.line("release")
                .with("token", token)
                .with("detail", String.join(",", completed))
                .write(r.revision, r.succeeded);
    }
}
