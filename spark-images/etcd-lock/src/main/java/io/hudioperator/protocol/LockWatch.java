package io.hudioperator.protocol;

import com.fasterxml.jackson.databind.JsonNode;
import io.hudioperator.contract.Json;
import io.hudioperator.etcd.EtcdClient;
import io.hudioperator.etcd.KeyValue;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * Watch of a waiter, on the lock and on the ticket before its own. An event is only a reason to
 * read again, never a fact (I11). The watch is not assumed to be complete: the waiter also reads
 * again every few seconds.
 */
final class LockWatch implements AutoCloseable {
    /**
     * A lock that stays free for this long may be taken by any waiter, because the first one in the
     * queue may be paused.
     */
    static final long FREE_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    private static final long CREATED_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final EtcdClient etcd;
    private final String lockKey;
    private final Set<String> older;
    private final Stream lock;
    private Stream predecessor;
    private long lockRevision;
    private long freeSince = -1;
    private long countedUpTo;
    private int overtakes;

    /**
     * {@code older}: tickets that take precedence over this one in any case. Only locks acquired
     * after {@code revision} are counted.
     */
    LockWatch(EtcdClient etcd, String lockKey, Set<String> older, long revision) {
        this.etcd = etcd;
        this.lockKey = lockKey;
        this.older = older;
        this.countedUpTo = revision;
        this.lock = new Stream(lockKey);
    }

    /**
     * Follows the ticket before this one; null when this one is first. Returns whether it is
     * another ticket than before, so that one more read is due.
     */
    synchronized boolean follow(String predecessorKey) {
        if (Objects.equals(predecessorKey, predecessor == null ? null : predecessor.key)) {
            return false;
        }
        if (predecessor != null) {
            predecessor.close();
        }
        predecessor = predecessorKey == null ? null : new Stream(predecessorKey);
        return true;
    }

    /** False when a watch could not be created in time, or broke; the caller creates another. */
    synchronized boolean awaitCreated() throws InterruptedException {
        long end = System.nanoTime() + CREATED_NANOS;
        long left = CREATED_NANOS;
        while (!created() && !broken() && left > 0) {
            TimeUnit.NANOSECONDS.timedWait(this, left);
            left = end - System.nanoTime();
        }
        return created() && !broken();
    }

    private boolean created() {
        return lock.created && (predecessor == null || predecessor.created);
    }

    private boolean broken() {
        return lock.broken || (predecessor != null && predecessor.broken);
    }

    /** Takes over the state of the lock from a later read; ignored when an event is newer. */
    synchronized void read(LockProtocol.View view) {
        if (view.revision > lockRevision) {
            lockRevision = view.revision;
            free(view.lock == null);
            if (view.lock != null) {
                count(view.lock);
            }
        }
    }

    private void free(boolean free) {
        if (!free) {
            freeSince = -1;
        } else if (freeSince < 0) {
            freeSince = System.nanoTime();
        }
    }

    private void count(KeyValue kv) {
        JsonNode owner = Json.parse(kv.value());
        String ticket = Json.text(owner, "inc") + "-" + Json.text(owner, "nonce");
        if (kv.createRevision() > countedUpTo) {
            countedUpTo = kv.createRevision();
            if (!older.contains(ticket)) {
                overtakes++;
            }
        }
    }

    /** Whether the lock has been free for so long that it may be taken out of turn. */
    synchronized boolean freeForAnybody() {
        return freeSince >= 0 && System.nanoTime() - freeSince >= FREE_NANOS;
    }

    /** Waits until there is a reason to read again, at most {@code nanos}. */
    synchronized void await(long nanos) throws InterruptedException {
        long end = System.nanoTime() + nanos;
        while (!broken() && overtakes == 0 && !isMyTurn()) {
            long left = end - System.nanoTime();
            if (freeSince >= 0) {
                left = Math.min(left, freeSince + FREE_NANOS - System.nanoTime());
            }
            if (left <= 0) {
                return;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
    }

    private boolean isMyTurn() {
        return predecessor == null ? freeSince >= 0 : predecessor.gone;
    }

    /** Number of times that a younger ticket has got the lock since the last call. */
    synchronized int takeOvertakes() {
        int seen = overtakes;
        overtakes = 0;
        return seen;
    }

    @Override
    public synchronized void close() {
        lock.close();
        if (predecessor != null) {
            predecessor.close();
        }
    }

    /** The watch of one key. */
    private final class Stream implements EtcdClient.WatchListener {
        private final String key;
        private final EtcdClient.Watch watch;
        private boolean created;
        private boolean broken;
        private boolean gone;

        Stream(String key) {
            this.key = key;
            this.watch = etcd.watch(List.of(key), this);
        }

        private void event(Runnable change) {
            synchronized (LockWatch.this) {
                change.run();
                LockWatch.this.notifyAll();
            }
        }

        @Override
        public void created() {
            event(() -> created = true);
        }

        @Override
        public void put(KeyValue kv) {
            event(() -> {
                if (key.equals(lockKey) && kv.modRevision() > lockRevision) {
                    lockRevision = kv.modRevision();
                    free(false);
                    count(kv);
                }
            });
        }

        @Override
        public void deleted(String deletedKey, long revision) {
            event(() -> {
                if (!key.equals(lockKey)) {
                    gone = true;
                } else if (revision > lockRevision) {
                    lockRevision = revision;
                    free(true);
                }
            });
        }

        @Override
        public void lost(String why) {
            event(() -> broken = true);
        }

        void close() {
            watch.close();
        }
    }
}
