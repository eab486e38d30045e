package io.hudioperator.protocol;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TableKeys;
import io.hudioperator.etcd.EtcdClient;
import io.hudioperator.etcd.KeyValue;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/**
 * One attempt to acquire the lock: gate, clock, queue, transaction, repeated until the lock is
 * ours, the attempt is refused, or time is up.
 */
public final class Acquisition implements AutoCloseable {
    private static final long REREAD_NANOS = TimeUnit.SECONDS.toNanos(3);
    private static final long LOST_MILLIS = 100;

    private final EtcdClient etcd;
    private final LockProtocol protocol;
    private final TableKeys keys;
    private final Identity me;
    private final Liveness liveness;
    private final java.util.function.Consumer<Gate> onGate;
    private final String nonce = UUID.randomUUID().toString();
    private final String ticket;
    private final long sinceMs = System.currentTimeMillis();
    private boolean enqueued;
    private int overtaken;
    private LockWatch watch;
    private Gate gate;
    private KeyValue lastOwner;

    /**
     * @param again whether this writer has just had its turn and given the lock back unused: it
     *     waits before all others, as one that was overtaken too often
     */
    public Acquisition(
            EtcdClient etcd,
            LockProtocol protocol,
            TableKeys keys,
            Identity me,
            Liveness liveness,
            boolean again,
            java.util.function.Consumer<Gate> onGate) {
        this.etcd = etcd;
        this.protocol = protocol;
        this.keys = keys;
        this.me = me;
        this.liveness = liveness;
        this.onGate = onGate;
        this.overtaken = again ? Queue.MAX_OVERTAKES : 0;
        this.ticket = me.inc + "-" + nonce;
    }

    /** The gate under which the lock was acquired. */
    public Gate gate() {
        return gate;
    }

    /** Owner of the lock at the last read; null when it was free. */
    public KeyValue lastOwner() {
        return lastOwner;
    }

    /**
     * Returns null when time is up. Throws HoodieException when waiting is pointless: fenced, no
     * gate, not admitted, clock behind.
     */
    public LockProtocol.Acquired run(long nanos) throws InterruptedException {
        long end = System.nanoTime() + nanos;
        boolean first = true;
        while (first || System.nanoTime() - end < 0) {
            first = false;
            if (Thread.interrupted()) {
                throw new InterruptedException();
            }
            if (liveness.state() == Liveness.State.LOST) {
                TimeUnit.MILLISECONDS.sleep(LOST_MILLIS);
                continue;
            }
            LockProtocol.Acquired acquired = step(end);
            if (acquired != null) {
                enqueued = false; // the transaction deleted the ticket
                return acquired;
            }
        }
        return null;
    }

    private LockProtocol.Acquired step(long end) throws InterruptedException {
        LockProtocol.View view = protocol.view();
        if (view.fence != null) {
            liveness.fenced("fenced by the operator: " + Registration.reason(view.fence));
        }
        if (view.fence != null || liveness.state() == Liveness.State.FENCED) { // I2
            throw ErrorCode.FENCED.exception("incarnation " + me.inc + " is fenced");
        }
        if (liveness.state() == Liveness.State.CLOSED) {
            throw ErrorCode.NOT_OWNER.exception("the session of incarnation " + me.inc + " is closed");
        }
        lastOwner = view.lock;
        gate = Gate.admitting(view.gate, me, keys.tablePrefix());
        onGate.accept(gate);
        if (view.clock != null) {
            // before queueing: a host with a slow clock must not hold the lock while it waits (F19)
            WallClock.passes(TableClock.time(view.clock), liveness.durations().maxClockSkew);
        }
        WallClock.passesOwnTimes(liveness.durations().maxClockSkew);
        if (view.alive == null || view.alive.modRevision() != liveness.aliveRevision()) {
            liveness.putAlive();
            return null;
        }
        Queue queue = new Queue(view.queue, keys.queue(""));
        enqueued = enqueued && queue.contains(ticket);
        if (watch != null) {
            watch.read(view);
        }
        boolean myTurn = enqueued ? queue.isFirst(ticket) : queue.isEmpty();
        if (view.lock == null && (myTurn || (watch != null && watch.freeForAnybody()))) {
            return protocol.acquire(
                    liveness,
                    gate.revision,
                    me.lockValue(nonce),
                    gate.isLeaseOnly() ? liveness.lease() : 0,
                    enqueued ? ticket : null);
        }
        if (!enqueued) {
            enqueue();
        } else {
            await(queue, view.revision, end);
        }
        return null;
    }

    private void enqueue() {
        liveness.waits(ticket);
        enqueued = protocol.enqueue(liveness, ticket, me.ticketValue(overtaken, sinceMs), false);
    }

    private void await(Queue queue, long revision, long end) throws InterruptedException {
        boolean another = watch == null;
        if (watch == null) {
            watch = new LockWatch(etcd, keys.lock(), queue.olderThan(ticket), revision);
        }
        String before = queue.predecessor(ticket);
        another |= watch.follow(before == null ? null : keys.queue(before));
        if (!watch.awaitCreated()) {
            closeWatch();
            TimeUnit.MILLISECONDS.sleep(LOST_MILLIS);
            return;
        }
        if (another) {
            return; // one more look closes the gap between the last read and the watch
        }
        watch.await(Math.min(REREAD_NANOS, end - System.nanoTime()));
        int seen = watch.takeOvertakes();
        if (seen > 0) {
            overtaken += seen;
            protocol.enqueue(liveness, ticket, me.ticketValue(overtaken, sinceMs), true);
        }
    }

    private void closeWatch() {
        if (watch != null) {
            watch.close();
            watch = null;
        }
    }

    @Override
    public void close() {
        closeWatch();
        if (enqueued) {
            liveness.leave(ticket);
        }
        liveness.waitsNoMore(ticket);
    }
}
