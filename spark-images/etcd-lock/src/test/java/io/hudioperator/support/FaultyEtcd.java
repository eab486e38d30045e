package io.hudioperator.support;

import io.hudioperator.etcd.EtcdClient;
import io.hudioperator.etcd.EtcdException;
import io.hudioperator.etcd.Txn;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;

/**
 * Passes calls to a real etcd and breaks selected ones: the answer is lost after execution, or the
 * request is held on the wire, reported as unanswered, and executed later. An action can run
 * between two calls.
 */
public final class FaultyEtcd implements EtcdClient {
    private final EtcdClient real;
    private final List<Txn> onTheWire = new ArrayList<>();
    private final Set<Long> leases = ConcurrentHashMap.newKeySet();
    private Predicate<Txn> loseAnswer = t -> false;
    private Predicate<Txn> hold = t -> false;
    private Predicate<Txn> before = t -> false;
    private Predicate<Txn> refuse = t -> false;
    private EtcdException.Outcome refusal = EtcdException.Outcome.DENIED;
    private Runnable action;
    private volatile boolean setBack;

    public FaultyEtcd(EtcdClient real) {
        this.real = real;
    }

    /** The next matching transaction is executed and its answer is lost. */
    public synchronized void loseAnswerOf(Predicate<Txn> which) {
        loseAnswer = which;
    }

    /** Every matching transaction is denied. */
    public synchronized void refuse(Predicate<Txn> which) {
        refuse(which, EtcdException.Outcome.DENIED);
    }

    /** Every matching transaction is refused with that outcome; what is SET_BACK stays so. */
    public synchronized void refuse(Predicate<Txn> which, EtcdException.Outcome with) {
        refuse = which;
        refusal = with;
    }

    /** The next matching transaction stays on the wire until {@link #deliver}. */
    public synchronized void hold(Predicate<Txn> which) {
        hold = which;
    }

    /** Runs once, directly before the next matching transaction. */
    public synchronized void before(Predicate<Txn> which, Runnable run) {
        before = which;
        action = run;
    }

    /**
     * Executes the held transactions now, through another connection. Returns whether at least one
     * succeeded.
     */
    public synchronized boolean deliver(EtcdClient through) throws EtcdException {
        boolean succeeded = false;
        for (Txn txn : onTheWire) {
            try {
                succeeded |= through.txn(txn).succeeded;
            } catch (EtcdException e) {
                if (e.outcome() == EtcdException.Outcome.UNKNOWN) {
                    throw e;
                }
            }
        }
        onTheWire.clear();
        return succeeded;
    }

    public synchronized boolean holdsSomething() {
        return !onTheWire.isEmpty();
    }

    public static Predicate<Txn> puts(String key) {
        return t -> t.then.stream().anyMatch(op -> op.kind == Txn.Kind.PUT && op.key.equals(key));
    }

    public static Predicate<Txn> deletes(String key) {
        return t -> t.then.stream().anyMatch(op -> op.kind == Txn.Kind.DELETE && op.key.equals(key));
    }

    @Override
    public Txn.Result txn(Txn txn) throws EtcdException {
        Runnable first = null;
        boolean lose = false;
        synchronized (this) {
            if (before.test(txn)) {
                first = action;
                before = t -> false;
            }
            if (refuse.test(txn)) {
                setBack |= refusal == EtcdException.Outcome.SET_BACK;
                throw new EtcdException(refusal, "denied", null);
            }
            if (hold.test(txn)) {
                hold = t -> false;
                onTheWire.add(txn);
                throw new EtcdException(EtcdException.Outcome.UNKNOWN, "held", null);
            }
            if (loseAnswer.test(txn)) {
                loseAnswer = t -> false;
                lose = true;
            }
        }
        if (first != null) {
            first.run();
        }
        Txn.Result r = real.txn(txn);
        if (lose) {
            throw new EtcdException(EtcdException.Outcome.UNKNOWN, "answer lost", null);
        }
        return r;
    }

    /** What was granted and not revoked. */
    public Set<Long> leases() {
        return Set.copyOf(leases);
    }

    @Override
    public long grantLease(long ttlSeconds) throws EtcdException {
        long granted = real.grantLease(ttlSeconds);
        leases.add(granted);
        return granted;
    }

    @Override
    public long keepAlive(long lease) throws EtcdException {
        return real.keepAlive(lease);
    }

    @Override
    public void revoke(long lease) throws EtcdException {
        real.revoke(lease);
        leases.remove(lease);
    }

    @Override
    public Watch watch(List<String> keys, WatchListener listener) {
        return real.watch(keys, listener);
    }

    @Override
    public String setBack() {
        return setBack ? "set back" : real.setBack();
    }

    @Override
    public String clusterId() {
        return real.clusterId();
    }

    @Override
    public void close() {
        real.close();
    }
}
