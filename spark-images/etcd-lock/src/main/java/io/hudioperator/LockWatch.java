package io.hudioperator;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * What a waiter watches: the lock and the ticket before its own. Only a reason to look again is taken from it, never a fact (I11), and
 * it is not trusted to be complete: the waiter reads again every few seconds.
 */
final class LockWatch implements EtcdClient.WatchListener, AutoCloseable {
  /** A lock that nobody takes for this long is free for anybody: the first in the queue may be paused. */
  static final long FREE_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  private static final long CREATED_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final String lockKey;
  private final String predecessorKey;
  private final Set<String> older;
  private final EtcdClient.Watch stream;
  private boolean created;
  private boolean broken;
  private boolean predecessorGone;
  private long lockRevision;
  private long freeSince = -1;
  private int overtakes;

  /** {@code predecessorKey} null = first in the queue. */
  LockWatch(EtcdClient etcd, String lockKey, String predecessorKey, Set<String> older) {
    this.lockKey = lockKey;
    this.predecessorKey = predecessorKey;
    this.older = older;
    List<String> watched = new ArrayList<>();
    watched.add(lockKey);
    if (predecessorKey != null) {
      watched.add(predecessorKey);
    }
    this.stream = etcd.watch(watched, this);
  }

  synchronized boolean serves(String wantedPredecessorKey) {
    return !broken && Objects.equals(predecessorKey, wantedPredecessorKey);
  }

  /** False = it could not be created in time. */
  synchronized boolean awaitCreated() throws InterruptedException {
    long end = System.nanoTime() + CREATED_NANOS;
    for (long left = CREATED_NANOS; !created && !broken && left > 0; left = end - System.nanoTime()) {
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return created && !broken;
  }

  /** What a later read says about the lock; ignored when an event is newer. */
  synchronized void read(LockProtocol.View view) {
    if (view.revision > lockRevision) {
      lockRevision = view.revision;
      free(view.lock == null);
    }
  }

  private void free(boolean free) {
    if (!free) {
      freeSince = -1;
    } else if (freeSince < 0) {
      freeSince = System.nanoTime();
    }
  }

  /** Has the lock been free for so long that it may be taken out of turn? */
  synchronized boolean freeForAnybody() {
    return freeSince >= 0 && System.nanoTime() - freeSince >= FREE_NANOS;
  }

  /** Waits until it is worth to read again, at most {@code nanos}. */
  synchronized void await(long nanos) throws InterruptedException {
    long end = System.nanoTime() + nanos;
    while (!broken && !predecessorGone && overtakes == 0 && !(predecessorKey == null && freeSince >= 0)) {
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

  /** How often the lock went to somebody younger since this was asked last. */
  synchronized int takeOvertakes() {
    int seen = overtakes;
    overtakes = 0;
    return seen;
  }

  @Override
  public synchronized void created() {
    created = true;
    notifyAll();
  }

  @Override
  public synchronized void put(KeyValue kv) {
    if (kv.key().equals(lockKey)) {
      lockRevision = Math.max(lockRevision, kv.modRevision());
      free(false);
      JsonNode owner = Json.parse(kv.value());
      if (!older.contains(Json.text(owner, "inc") + "-" + Json.text(owner, "nonce"))) {
        overtakes++;
        notifyAll();
      }
    }
  }

  @Override
  public synchronized void deleted(String key, long revision) {
    if (key.equals(lockKey)) {
      if (revision > lockRevision) {
        lockRevision = revision;
        free(true);
        notifyAll();
      }
    } else {
      predecessorGone = true;
      notifyAll();
    }
  }

  @Override
  public synchronized void lost(String why) {
    broken = true;
    notifyAll();
  }

  @Override
  public void close() {
    stream.close();
  }
}
