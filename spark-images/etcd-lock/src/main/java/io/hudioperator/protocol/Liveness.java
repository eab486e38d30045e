package io.hudioperator.protocol;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.ProtocolData;
import io.hudioperator.etcd.EtcdClient;
import io.hudioperator.etcd.EtcdException;
import io.hudioperator.etcd.KeyValue;
import io.hudioperator.etcd.Pause;
import io.hudioperator.etcd.Txn;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The lease, the {@code alive} key, and the heartbeat that keeps both. A lease says who is alive;
 * it never frees a lock by itself. Losing it has no consequence unless the incarnation was fenced
 * for it: the heartbeat takes a new lease, puts {@code alive} again, and continues.
 */
public final class Liveness implements Heartbeats.Heart, SilenceOfAgents.Member {
    private static final long RETRY_MILLIS = 100;

    public enum State {
        LIVE,
        LOST,
        FENCED,
        CLOSED
    }

    /**
     * Ends the JVM. Safety does not depend on it: a worker thread may continue for a while
     * (measured).
     */
    public interface Halt {
        void halt(int exitCode, String why);
    }

    static final int EXIT_FENCED = ProtocolData.exitCode("Fenced");
    public static final int EXIT_SILENT = ProtocolData.exitCode("HeartbeatLost");

    private final EtcdClient etcd;
    private final Identity me;
    private final Halt halt;
    private final Silence silence;
    private final SilenceOfAgents beside;
    private final AtomicLong puts = new AtomicLong();
    private final AtomicLong aliveRevision = new AtomicLong();
    private final Set<String> waiting = ConcurrentHashMap.newKeySet();
    private volatile Durations durations;
    private volatile Registration registration;
    private volatile long lease;
    private volatile boolean leaseLost;
    private volatile State ended;
    private volatile boolean leaving;
    private volatile boolean passedOver; // others had answers before the last beat was sent

    public Liveness(EtcdClient etcd, Identity me, Durations durations, Silence silence, Halt halt) {
        this.etcd = etcd;
        this.me = me;
        this.durations = durations;
        this.silence = silence;
        this.halt = halt;
        this.beside = me.isAgent() ? SilenceOfAgents.OF_PROCESS : SilenceOfAgents.alone();
    }

    /** Registers, with a new lease for each attempt, and starts the heartbeat. */
    public void start(Registration registration) {
        this.registration = registration;
        register();
        beside.joined(this);
        Heartbeats.OF_PROCESS.begin(this);
    }

    private void register() {
        while (true) {
            long granted = 0;
            try {
                long sent = silence.now();
                granted = etcd.grantLease(durations.lease);
                aliveRevision.set(registration.register(nextValue(), granted));
                lease = granted;
                silence.acknowledged(sent);
                return;
            } catch (EtcdException e) {
                revoke(granted);
                if (e.outcome() != EtcdException.Outcome.UNKNOWN && e.outcome() != EtcdException.Outcome.LEASE_GONE) {
                    throw e.code().exception("etcd refused the registration: " + e.getMessage(), e);
                }
                giveUpWhenSilent("register", e);
                Pause.millis(RETRY_MILLIS);
            } catch (RuntimeException e) {
                revoke(granted);
                throw e;
            }
        }
    }

    /** Resolves the unknown outcome: etcd rejects a late request that names a revoked lease. */
    private void revoke(long which) {
        while (which != 0) {
            try {
                etcd.revoke(which);
                return;
            } catch (EtcdException e) {
                if (e.outcome() != EtcdException.Outcome.UNKNOWN) {
                    return;
                }
                giveUpWhenSilent("revoke", e);
                Pause.millis(RETRY_MILLIS);
            }
        }
    }

    private void giveUpWhenSilent(String what, EtcdException e) {
        if (silentTooLong()) {
            throw ErrorCode.ETCD_SILENT.exception("no answer to " + what + ": " + e.getMessage(), e);
        }
    }

    @Override
    public boolean silentTooLong() {
        return silence.longerThan(durations.silence);
    }

    @Override
    public Silence silence() {
        return silence;
    }

    // ---- state, for other classes

    public State state() {
        State end = ended;
        if (end != null) {
            return end;
        }
        return leaseLost || silence.longerThanTwoThirdsOf(durations.lease) ? State.LOST : State.LIVE;
    }

    public void durations(Durations read) {
        durations = read;
    }

    public Durations durations() {
        return durations;
    }

    long lease() {
        return lease;
    }

    /** Revision of this session's last {@code alive}. */
    long aliveRevision() {
        return aliveRevision.get();
    }

    String nextValue() {
        return Json.object().put("inc", me.inc).put("n", puts.incrementAndGet()).toString();
    }

    void alivePut(long revision) {
        aliveRevision.accumulateAndGet(revision, Math::max);
    }

    void waits(String ticket) {
        waiting.add(ticket);
    }

    void waitsNoMore(String ticket) {
        waiting.remove(ticket);
    }

    /** Gives up a place in the queue. The heartbeat repeats this when it has no answer. */
    void leave(String ticket) {
        registration.leave(ticket);
    }

    /**
     * Puts {@code alive} on the current lease. Afterwards no request that was sent before can
     * acquire or enqueue.
     */
    void putAlive() {
        try {
            long revision = registration.keepalive(nextValue(), lease);
            if (revision < 0) {
                gone("registration gone or fenced");
            } else {
                alivePut(revision);
            }
        } catch (EtcdException e) {
            if (e.outcome() == EtcdException.Outcome.LEASE_GONE) {
                leaseLost = true; // alive is gone with it; the heartbeat takes another lease
            } else {
                throw e.code().exception("etcd refused keepalive: " + e.getMessage(), e);
            }
        }
    }

    /**
     * Ends this incarnation, and a writer's JVM with it. An agent's JVM has one incarnation for
     * each of its tables: it hands over in an orderly way, so that one fenced incarnation does not
     * end the work of the others (F48).
     */
    void fenced(String why) {
        ends(EXIT_FENCED, why);
    }

    /**
     * A clean exit begins: from now on the heartbeat tolerates that the registration is missing. A
     * fence still ends this incarnation (I2).
     */
    public void leaves() {
        leaving = true;
    }

    /**
     * The lock may be this incarnation's in etcd, and nothing in this process will release it. With
     * a heartbeat nobody would suspect it before the lock has been held for too long: it ends as a
     * fenced one does (F561). An etcd that was set back ends the JVM, no matter which thread sees
     * it first (F587).
     */
    public void keepsLock(String why) {
        if (!haltsIfSetBack()) {
            ends(silentTooLong() ? EXIT_SILENT : EXIT_FENCED, why);
        }
    }

    private void ends(int exitCode, String why) {
        if (endsNow() && !me.isAgent()) {
            halt.halt(exitCode, why);
        }
    }

    /** It may have lost a fence or a lock that it had acknowledged (I1, I2). */
    private boolean haltsIfSetBack() {
        String told = etcd.setBack();
        if (told.isEmpty()) {
            return false;
        }
        if (endsNow()) {
            halt.halt(EXIT_SILENT, told);
        }
        return true;
    }

    /** Whether it had not ended before. */
    private synchronized boolean endsNow() {
        if (ended != null) {
            return false;
        }
        ended = State.FENCED;
        beside.left(this);
        return true;
    }

    private void gone(String why) {
        if (!leaving) {
            fenced(why);
        }
    }

    /**
     * Called after a clean exit. Revokes the lease too, so that no late request of ours can
     * succeed.
     */
    public void close() {
        ended = State.CLOSED;
        beside.left(this);
        revoke(lease);
    }

    // ---- heartbeat

    @Override
    public long beat() {
        if (ended != null) {
            return Heartbeats.NONE;
        }
        passedOver = beside.anotherIsAnswered(silence);
        silence.beats();
        try {
            renewAndRead();
            return Heartbeats.spread(durations.keepAlive * 1000L);
        } catch (EtcdException | RuntimeException e) {
            return missed(e);
        }
    }

    @Override
    public long missed(Throwable why) {
        if (haltsIfSetBack()) {
            return Heartbeats.NONE;
        }
        silence.unanswered();
        if (ended != null || !silentTooLong()) {
            return RETRY_MILLIS;
        }
        String told = "etcd has not answered for " + durations.silence + " s: " + why.getMessage();
        if (beside.allSilent()) {
            halt.halt(EXIT_SILENT, told);
            return Heartbeats.NONE;
        }
        if (passedOver) { // and the beat that was sent then had no answer either
            ends(EXIT_SILENT, told);
            return Heartbeats.NONE;
        }
        return RETRY_MILLIS;
    }

    private void renewAndRead() throws EtcdException {
        long sent = silence.now();
        if (leaseLost || etcd.keepAlive(lease) <= 0) {
            leaseLost = true;
            renewLease();
        }
        Txn.Result self = registration.readSelf();
        if (ended != null) {
            return;
        }
        if (self.one(0) != null) {
            fenced("fenced by the operator: " + Registration.reason(self.one(0)));
            return;
        }
        if (self.one(1) == null) {
            gone("the registration is gone");
            return;
        }
        KeyValue alive = self.one(2);
        if (alive == null) {
            putAlive();
        } else {
            alivePut(alive.modRevision());
        }
        silence.acknowledged(sent);
        for (KeyValue ticket : self.reads.get(3)) { // a ticket without a waiter delays each hand-over by 500 ms (F16)
            String name = ticket.key().substring(ticket.key().lastIndexOf('/') + 1);
            if (!waiting.contains(name)) {
                registration.leave(name);
            }
        }
    }

    private void renewLease() throws EtcdException {
        long granted = etcd.grantLease(durations.lease);
        long revision = registration.keepalive(nextValue(), granted);
        if (revision < 0) {
            gone("lease lost, and fenced or settled in the meantime");
            return;
        }
        lease = granted;
        alivePut(revision);
        leaseLost = false;
    }
}
