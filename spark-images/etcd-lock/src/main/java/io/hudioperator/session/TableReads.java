package io.hudioperator.session;

import io.hudioperator.contract.InstantTime;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.exception.HoodieException;
import org.apache.hudi.storage.StorageConfiguration;

/**
 * Tracks what the threads of this process have read of a table, and on which read each of its
 * writes is based. A write is compared with what was committed since the oldest read, by any
 * thread, that came after the last write of the write's own thread (for a thread that has not
 * written yet: after the last write of the process). If there is no such read, the write is based
 * on the reads of that last write, because rows may be handed from thread to thread and kept (F40,
 * F59, F88).
 *
 * <p>What a statement reads itself ({@code UPDATE}, {@code MERGE INTO}, the rows of a frame that is
 * saved) counts for that statement in addition. It replaces nothing that the program has read
 * before, because a value in the statement may come from such a read (F88). The same holds for
 * lookups of the runtime in the table for a write (F424), and for a query that was made and not
 * executed (F441). Rows that such a statement also gives to its program count for later writes,
 * beside the program's earlier reads (F449).
 */
public final class TableReads {
    private static final int MAX_WRITES = 10_000;
    private static final int MAX_READS = 1_000;

    /** The state of the table when rows were read. */
    public static final class Base {
        /** Completion time: the rows contain what completed up to it. */
        public final String completion;
        /** Requested time: what completes later was requested at this time or later. */
        public final String floor;
        /**
         * Requested times of writes that were not completed, or were not seen as completed; they
         * may have completed before {@link #completion}.
         */
        final Set<String> pending;

        public Base(String completion, String floor, Set<String> pending) {
            this.completion = completion;
            this.floor = floor;
            this.pending = pending;
        }

        /** The base of rows that were read when this was the timeline. */
        public static Base of(HoodieTimeline all) {
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
                    oldestPending =
                            oldestPending == null || requested.compareTo(oldestPending) < 0 ? requested : oldestPending;
                } else if (instant.getCompletionTime() != null) {
                    completion = InstantTime.max(completion, instant.getCompletionTime());
                }
            }
            return new Base(completion, oldestPending == null ? newest : oldestPending, pending);
        }

        /** The base of rows that were made from rows of both; null counts for none. */
        public Base and(Base other) {
            if (other == null) {
                return this;
            }
            Set<String> both = new HashSet<>(pending);
            both.addAll(other.pending);
            return new Base(
                    completion.compareTo(other.completion) < 0 ? completion : other.completion,
                    floor.compareTo(other.floor) < 0 ? floor : other.floor,
                    both);
        }

        /** The base of rows that were made from rows of both, each of which may be null. */
        public static Base both(Base one, Base other) {
            return one == null ? other : one.and(other);
        }

        /** Whether rows that were read at this base may lack what this commit added. */
        public boolean lacks(HoodieInstant completed) {
            return completed.getCompletionTime() != null
                    && (completed.getCompletionTime().compareTo(completion) > 0
                            || pending.contains(completed.requestedTime()));
        }
    }

    /** One write of this process. */
    public static final class Write {
        public final String instant;
        /** Null when nothing was read that the write could be based on. */
        public final Base base;
        /**
         * Reads of its thread since the previous write, a part of {@link #base}, with the reads of
         * its statement; null when there are none.
         */
        public final Base own;
        /**
         * Reads that only find the versions of the records that this delete names; null when there
         * are none. {@link #base} and {@link #own} are without them.
         */
        public final Base found;

        private final long thread;
        private volatile String read = "";

        private Write(String instant, long thread, Base base, Base own, Base found) {
            this.instant = instant;
            this.thread = thread;
            this.base = base;
            this.own = own;
            this.found = found;
        }

        /** Names the read that this write is based on; empty when its writer does not name one. */
        public void madeFrom(String name) {
            read = name;
        }

        /**
         * Whether this write knows the earlier one without having read it: both are based on the
         * same named read or, when one of them names no read, both are of the same thread.
         */
        private boolean follows(Write earlier) {
            return read.isEmpty() || earlier.read.isEmpty() ? thread == earlier.thread : read.equals(earlier.read);
        }
    }

    /** One read: its position in the order of reads and writes of this process, and its thread. */
    private static final class Read {
        private final long number;
        private final long thread;
        /** Whether rows were read; otherwise a query was made that was not executed. */
        private final boolean rows;

        private Base base;

        private Read(long number, long thread, boolean rows, Base base) {
            this.number = number;
            this.thread = thread;
            this.rows = rows;
            this.base = base;
        }
    }

    private static final class OfThread {
        /** Id of the thread; 0 for the process. */
        private final long id;
        /** Name of this thread in those that work for it; null when none does. */
        private String scope;
        /** Number of the thread's last write; 0 when there is none. */
        private long wrote;
        /** Reads that the write was based on, without its own statement's reads. */
        private Base given;
        /** Reads of the current statement. */
        private Base statement;
        /** Whether the current statement writes this table. */
        private boolean ownStatement = true;
        /** Whether what is read now is looked up for the next write. */
        private boolean looksUp;
        /** Whether that is for a delete. */
        private boolean deletes;
        /** Lookups for the next write. */
        private Base lookedUp;
        /** Reads of the next write, a delete, that find the records to delete. */
        private Base found;
        /** Whether a batch of the runtime is being written: its writes are tries of one write. */
        private boolean inBatch;
        /** Whether the next try of the batch is being made. */
        private boolean tries;
        /** Whether a function of the program is asked for its rows. */
        private boolean asks;
        /** Reads for that try. */
        private Base asked;
        /** The rows of the table that the function has read in the last try. */
        private Base askedRows;
        /** Reads that statements of this thread gave to the program since its last write. */
        private Base handed;
        /** The last that statements gave to the program before its last write. */
        private Base lastHanded;
        /** Reads of this thread while it worked for another one, since its last write. */
        private Base forAnother;

        private OfThread(long id) {
            this.id = id;
        }

        private boolean isInScope() {
            return looksUp || inBatch || tries || asks;
        }
    }

    private final Map<Long, OfThread> threads = new HashMap<>();
    /** The threads for which others may work now, by {@link OfThread#scope}. */
    private final Map<String, OfThread> scopes = new HashMap<>();

    private final TreeMap<String, Write> writes = new TreeMap<>();
    private final ArrayDeque<Read> reads = new ArrayDeque<>();
    private final OfThread newest = new OfThread(0);
    private long number;
    private volatile boolean hadCommits;

    /**
     * Called before this process reads anything: records whether the table has commits. If that
     * cannot be determined, the answer is no (F63).
     */
    public void begin(StorageConfiguration<?> conf, String basePath) {
        try {
            HoodieTableMetaClient table = HoodieTableMetaClient.builder()
                    .setConf(conf.newInstance())
                    .setBasePath(basePath)
                    .build();
            hadCommits = table.getCommitsTimeline()
                    .filterCompletedInstants()
                    .getInstantsAsStream()
                    .anyMatch(each -> !InstantTime.BEGINNING.equals(each.requestedTime()));
        } catch (HoodieException e) { // there is no table yet, or it cannot be read now
            hadCommits = false;
        }
    }

    /**
     * Whether a relation that belongs to some table without commits may be of this table; such a
     * relation does not say which table it is.
     */
    public boolean mayHaveBeenEmpty() {
        return !hadCommits;
    }

    /** This thread has received rows of the table. */
    public synchronized void read(Base base) {
        note(base, true);
    }

    /**
     * This thread has made a query of the table. Its next write may be that query, so this counts
     * for that write; but no rows are in the program's hands that would replace older ones (F441).
     */
    public synchronized void queried(Base base) {
        note(base, false);
    }

    private void note(Base base, boolean rows) {
        OfThread mine = forWhom();
        OfThread reader = ofThisThread();
        if (mine != reader) { // it may also write by itself
            reader.forAnother = base.and(reader.forAnother);
        }
        if (mine.looksUp && mine.deletes) {
            mine.found = base.and(mine.found);
            return;
        } else if (mine.looksUp) {
            mine.lookedUp = base.and(mine.lookedUp);
            return;
        } else if (mine.tries) {
            mine.asked = base.and(mine.asked);
            mine.askedRows = mine.asks && rows ? base.and(mine.askedRows) : mine.askedRows;
            return;
        }
        for (Read one : reads) {
            // no write is between the two
            if (one.thread == mine.id && one.rows == rows && one.number > newest.wrote) {
                one.base = base.and(one.base);
                return;
            }
        }
        add(mine, rows, base);
    }

    private void add(OfThread reader, boolean rows, Base base) {
        reads.add(new Read(++number, reader.id, rows, base));
        if (reads.size() > MAX_READS) { // the two oldest count as one, at the later one's place
            Read oldest = reads.poll();
            Read next = reads.poll();
            reads.addFirst(new Read(next.number, next.thread, oldest.rows || next.rows, oldest.base.and(next.base)));
        }
    }

    /**
     * Until {@link #batchEnds}, the writes of this thread are tries of one write: the program's
     * earlier reads count for each of them (F442).
     */
    public synchronized void batchBegins() {
        OfThread mine = ofThisThread();
        mine.inBatch = true;
        bound(mine);
    }

    /** The batch was written, or given up. */
    public synchronized void batchEnds() {
        OfThread mine = ofThisThread();
        Base read = Base.both(since(mine, true), mine.askedRows);
        Base carried = read == null ? before(mine).lastHanded : null;
        consume(mine, read == null ? before(mine).given : read, carried);
        mine.inBatch = false;
        mine.asked = null;
        mine.askedRows = null;
        bound(mine);
    }

    /**
     * Until {@link #tryEnds}, what this thread reads is read for one try of its batch. The next try
     * reads again.
     */
    public synchronized void tryBegins() {
        OfThread mine = ofThisThread();
        mine.tries = true;
        mine.asked = null;
        mine.askedRows = null;
        bound(mine);
    }

    /** The try was written, or refused. */
    public synchronized void tryEnds() {
        OfThread mine = ofThisThread();
        mine.tries = false;
        bound(mine);
    }

    /**
     * Until {@link #askEnds}, a function of the program makes the rows of this try. It may keep
     * rows that it reads.
     */
    public synchronized void askBegins() {
        OfThread mine = ofThisThread();
        mine.asks = true;
        bound(mine);
    }

    /** The rows of this try are made. */
    public synchronized void askEnds() {
        OfThread mine = ofThisThread();
        mine.asks = false;
        bound(mine);
    }

    /**
     * This thread begins a statement that writes. Reads of an earlier one that failed before its
     * write began are not in this one's rows (F379).
     *
     * @param own whether it writes this table
     */
    public synchronized void statementBegins(boolean own) {
        OfThread mine = ofThisThread();
        mine.statement = null;
        mine.ownStatement = own;
        if (!mine.looksUp) {
            mine.found = null;
        }
    }

    /**
     * A statement that writes has read rows of the table in this thread. One that writes another
     * table takes them there, and the program can write what it finds there into this table: these
     * rows are in the program's hands, as if it had read them itself (F402).
     */
    public synchronized void readByStatement(Base base) {
        OfThread mine = ofThisThread();
        if (mine.ownStatement) {
            mine.statement = base.and(mine.statement);
        } else {
            read(base);
        }
    }

    /**
     * A statement that begins in this thread gives rows of the table to its program as well: from
     * its write on they count as if the program had read them, in addition to what it has read
     * before (F449).
     */
    public synchronized void handed(Base base) {
        OfThread mine = ofThisThread();
        mine.handed = base.and(mine.handed);
    }

    /**
     * A delete has read rows of the table to find the versions of the records that it names. The
     * choice of these records does not come from there (F425).
     */
    public synchronized void readByDelete(Base base) {
        OfThread mine = ofThisThread();
        mine.found = base.and(mine.found);
    }

    /**
     * Until {@link #lookUpEnds}, what this thread reads is looked up by the runtime for its next
     * write, and nothing of it is in the program's hands: it counts for that write, in addition to
     * what the program has read, and replaces nothing of that (F424).
     *
     * @param deletes whether that write is a delete, so that the look-up only finds the versions of
     *     the records that it names
     */
    public synchronized void lookUpBegins(boolean deletes) {
        OfThread mine = ofThisThread();
        mine.looksUp = true;
        mine.deletes = deletes;
        mine.lookedUp = null;
        mine.found = null;
        bound(mine);
    }

    /** The write for which this thread has looked something up is over. */
    public synchronized void lookUpEnds() {
        OfThread mine = ofThisThread();
        mine.looksUp = false;
        mine.lookedUp = null;
        mine.found = null;
        bound(mine);
    }

    /** The oldest read that counts for a write of this thread, of rows or of queries. */
    private Base since(OfThread mine, boolean rows) {
        Base found = null;
        for (Read one : reads) {
            if (one.rows == rows && one.number > (one.thread == mine.id ? mine.wrote : before(mine).wrote)) {
                found = one.base.and(found);
            }
        }
        return found;
    }

    /** The last write of this thread; of the process while there is none. */
    private OfThread before(OfThread mine) {
        return mine.wrote == 0 ? newest : mine;
    }

    /**
     * Reads so far do not count for the next write if it reads again.
     *
     * @param carried what statements gave to the program before: it stays until they give something
     *     again, as what actions gave stays until the next one (F446)
     */
    private void consume(OfThread mine, Base given, Base carried) {
        Base lastHanded = mine.handed == null ? carried : mine.handed;
        if (mine.handed != null) { // other threads may get it from this one
            add(mine, true, mine.handed);
            mine.handed = null;
        }
        number++;
        for (OfThread one : new OfThread[] {mine, newest}) {
            one.wrote = number;
            one.given = given;
            one.lastHanded = lastHanded;
        }
    }

    private OfThread ofThisThread() {
        return threads.computeIfAbsent(Thread.currentThread().getId(), OfThread::new);
    }

    /**
     * The thread of the program for which this one reads: itself, or the one that has begun a
     * look-up, a try or a batch, and runs the query of which this one, a thread of Spark, plans a
     * subquery (F450).
     */
    private OfThread forWhom() {
        OfThread other = scopes.get(LocalScope.get());
        return other == null ? ofThisThread() : other;
    }

    /** Tells the threads that Spark takes for queries of this one for whom they work. */
    private void bound(OfThread mine) {
        if (mine.isInScope() && mine.scope == null) {
            mine.scope = mine.id + "-" + ++number;
            scopes.put(mine.scope, mine);
            LocalScope.set(mine.scope);
        } else if (!mine.isInScope() && mine.scope != null) {
            scopes.remove(mine.scope);
            mine.scope = null;
            LocalScope.set(null);
        }
    }

    /** The instant is not of this process. */
    public synchronized void forget(String instant) {
        writes.remove(instant);
    }

    /** This thread begins a write. */
    public synchronized void begun(String instant) {
        OfThread mine = ofThisThread();
        Base statement = Base.both(Base.both(mine.statement, mine.lookedUp), mine.asked);
        statement = Base.both(statement, mine.forAnother);
        Base own = statement;
        for (Read one : reads) {
            if (one.thread == mine.id && one.number > mine.wrote) {
                own = one.base.and(own);
            }
        }
        Base read = since(mine, true);
        Base given = read == null ? before(mine).given : read;
        Base carried = read == null ? before(mine).lastHanded : null;
        Base base = Base.both(Base.both(statement, given), since(mine, false));
        base = Base.both(base, carried);
        Base found = mine.found;
        mine.statement = null;
        mine.found = null;
        mine.asked = null;
        mine.forAnother = null;
        if (!mine.inBatch) {
            consume(mine, given, carried);
        }
        writes.put(instant, new Write(instant, mine.id, base, own, found));
        if (writes.size() > MAX_WRITES) {
            writes.pollFirstEntry(); // is then treated as a write of another process
        }
    }

    /**
     * The write of this process with that instant. For an instant of another process, returns a
     * write that knows of no read.
     */
    public synchronized Write write(String instant) {
        Write found = writes.get(instant);
        return found == null ? new Write(instant, Thread.currentThread().getId(), null, null, null) : found;
    }

    /**
     * Whether the write knows the commit with that instant although the commit completed after the
     * read.
     */
    public synchronized boolean knows(Write write, String instant) {
        Write other = writes.get(instant);
        return other != null && write.follows(other);
    }
}
