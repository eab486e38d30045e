package io.hudioperator;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.WeakHashMap;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.exception.HoodieException;
import org.apache.hudi.storage.StorageConfiguration;

/**
 * What the threads of this process have read of a table, and from which read each of its writes was made. A write is compared with what was
 * committed since the oldest read of its thread after the thread's write before it; without one, since the read that its last write had; a
 * thread that has read nothing may write what any other one has read (F40, F59).
 */
final class TableReads {
  private static final int MAX_WRITES = 10_000;
  private static final Map<Session, TableReads> ALL = Collections.synchronizedMap(new WeakHashMap<>());

  /** When rows were read. */
  static final class Base {
    /** Completion time: what completed up to then is in the rows. */
    final String completion;
    /** Requested time: what completes later was requested then or later. */
    final String floor;
    /** Requested times of writes that were not completed, or not seen to be: they may have completed before {@link #completion}. */
    final Set<String> pending;

    Base(String completion, String floor, Set<String> pending) {
      this.completion = completion;
      this.floor = floor;
      this.pending = pending;
    }

    /** Of rows that were read when this was the timeline. */
    static Base of(HoodieTimeline all) {
      HoodieTimeline commits = all.getCommitsTimeline();
      String completion = "0";
      String newest = "0";
      String oldestPending = null;
      Set<String> pending = new HashSet<>();
      for (HoodieInstant instant : commits.getInstants()) {
        String requested = instant.requestedTime();
        newest = InstantTime.max(newest, requested);
        if (!instant.isCompleted()) {
          pending.add(requested);
          oldestPending = oldestPending == null || requested.compareTo(oldestPending) < 0 ? requested : oldestPending;
        } else if (instant.getCompletionTime() != null) {
          completion = InstantTime.max(completion, instant.getCompletionTime());
        }
      }
      return new Base(completion, oldestPending == null ? newest : oldestPending, pending);
    }

    private Base and(Base other) {
      if (other == null) {
        return this;
      }
      Set<String> both = new HashSet<>(pending);
      both.addAll(other.pending);
      return new Base(
          completion.compareTo(other.completion) < 0 ? completion : other.completion, floor.compareTo(other.floor) < 0 ? floor : other.floor, both);
    }

    /** May rows that were read then lack what this commit has brought? */
    boolean lacks(HoodieInstant completed) {
      return completed.getCompletionTime() != null
          && (completed.getCompletionTime().compareTo(completion) > 0 || pending.contains(completed.requestedTime()));
    }
  }

  /** One write of this process. */
  static final class Write {
    final String instant;
    /** Null: nothing was read that it could be made from. */
    final Base base;
    private final long thread;
    private volatile String read = "";

    private Write(String instant, long thread, Base base) {
      this.instant = instant;
      this.thread = thread;
      this.base = base;
    }

    /** Its writer names the read that it is made from; empty: it does not. */
    void madeFrom(String name) {
      read = name;
    }

    /** What a write knows without having read it: what was written from the same read before, or, when one of the two is not named, by its thread. */
    private boolean follows(Write earlier) {
      return read.isEmpty() || earlier.read.isEmpty() ? thread == earlier.thread : read.equals(earlier.read);
    }
  }

  private static final class OfThread {
    private Base since;
    private Base given;

    private Base current() {
      return since == null ? given : since;
    }
  }

  private final Map<Long, OfThread> threads = new HashMap<>();
  private final TreeMap<String, Write> writes = new TreeMap<>();
  private volatile boolean hadCommits;

  static TableReads of(Session session) {
    return ALL.computeIfAbsent(session, k -> new TableReads());
  }

  /** Before this process reads anything: has the table commits? What cannot be told counts as no (F63). */
  void begin(StorageConfiguration<?> conf, String basePath) {
    try {
      HoodieTableMetaClient table = HoodieTableMetaClient.builder().setConf(conf.newInstance()).setBasePath(basePath).build();
      hadCommits = !table.getCommitsTimeline().filterCompletedInstants().empty();
    } catch (HoodieException e) { // there is no table yet, or it cannot be read now
      hadCommits = false;
    }
  }

  /** May a relation of a table without commits, which does not say of which one, be of this table? */
  boolean mayHaveBeenEmpty() {
    return !hadCommits;
  }

  /** This thread has got rows of the table. */
  synchronized void read(Base base) {
    OfThread mine = threads.computeIfAbsent(Thread.currentThread().getId(), k -> new OfThread());
    mine.since = base.and(mine.since);
  }

  /** That instant is not of this process. */
  synchronized void forget(String instant) {
    writes.remove(instant);
  }

  /** This thread begins a write. */
  synchronized void begun(String instant) {
    long thread = Thread.currentThread().getId();
    OfThread mine = threads.get(thread);
    Base base = mine == null ? ofAnybody() : mine.current();
    if (mine != null) {
      mine.given = base;
      mine.since = null;
    }
    writes.put(instant, new Write(instant, thread, base));
    if (writes.size() > MAX_WRITES) {
      writes.pollFirstEntry(); // is then taken for a write of somebody else
    }
  }

  private Base ofAnybody() {
    Base oldest = null;
    for (OfThread one : threads.values()) {
      oldest = one.current().and(oldest);
    }
    return oldest;
  }

  /** The write of this process with that instant; one that nothing is known of when it is not of this process. */
  synchronized Write write(String instant) {
    Write found = writes.get(instant);
    return found == null ? new Write(instant, Thread.currentThread().getId(), null) : found;
  }

  /** The newest write of this thread. */
  synchronized Write newest() {
    long thread = Thread.currentThread().getId();
    return writes.descendingMap().values().stream().filter(w -> w.thread == thread).findFirst().orElseGet(() -> write(""));
  }

  /** Is the commit with that instant one that the write knows, although it completed after the read? */
  synchronized boolean knows(Write write, String instant) {
    Write other = writes.get(instant);
    return other != null && write.follows(other);
  }
}
