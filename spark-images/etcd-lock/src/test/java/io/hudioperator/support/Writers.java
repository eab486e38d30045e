package io.hudioperator.support;

import io.hudioperator.contract.InstantTime;
import io.hudioperator.etcd.Pause;
import io.hudioperator.protocol.Publication;
import io.hudioperator.protocol.TableStorage;
import io.hudioperator.session.Session;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.exception.HoodieException;

/**
 * Writers without Spark: sessions that send heartbeats and, in one lock cycle after another, put an
 * instant without data on the table's timeline, each step checked as the storage wrapper checks it.
 */
public final class Writers implements AutoCloseable {
    private static final long WAIT_SECONDS = 120;
    private static final long AFTER_ERROR_MILLIS = 200;

    /** One writer and what it has done so far. */
    public static final class Writer {
        public final String name;
        public final Session session;
        volatile int acquired;
        volatile int commits;
        volatile String lastError = "";
        private Thread thread;

        Writer(String name, Session session) {
            this.name = name;
            this.session = session;
        }
    }

    public final List<Writer> writers = new CopyOnWriteArrayList<>();
    public final AtomicInteger together = new AtomicInteger();
    private final AtomicInteger inside = new AtomicInteger();
    private final Path timeline;
    private final String basePath;
    private final long pauseMillis;
    private volatile boolean stopped;

    /** @param pauseMillis pause between two commits of one writer */
    public Writers(Path table, long pauseMillis) {
        this.timeline = table.resolve(".hoodie/timeline");
        this.basePath = table.toUri().toString();
        this.pauseMillis = pauseMillis;
    }

    public Writer start(String name, Session session) {
        Writer writer = new Writer(name, session);
        writers.add(writer);
        writer.thread = new Thread(() -> run(writer), "writer-" + name);
        writer.thread.setDaemon(true);
        writer.thread.start();
        return writer;
    }

    private void run(Writer writer) {
        TableStorage storage = new TableStorage(basePath, new Configuration());
        while (!stopped && !List.of("FENCED", "CLOSED").contains(writer.session.state())) {
            try {
                commit(writer, storage);
                TimeUnit.MILLISECONDS.sleep(pauseMillis);
            } catch (HoodieException | IOException e) {
                writer.lastError = String.valueOf(e.getMessage());
                Pause.millis(AFTER_ERROR_MILLIS);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private void commit(Writer writer, TableStorage storage) throws IOException, InterruptedException {
        Session session = writer.session;
        if (!session.acquire(TimeUnit.SECONDS.toNanos(WAIT_SECONDS), storage)) {
            throw new HoodieException("time over");
        }
        writer.acquired++;
        if (inside.incrementAndGet() != 1) {
            together.incrementAndGet();
        }
        try {
            // times have milliseconds: this one is later than those of the previous owner
            TimeUnit.MILLISECONDS.sleep(2);
            String instant = InstantTime.now();
            session.instants().beforeRequested(instant, "commit");
            create(instant + ".commit.requested");
            session.conflictsChecked(instant);
            TimeUnit.MILLISECONDS.sleep(2);
            String completion = InstantTime.now();
            String name = instant + "_" + completion + ".commit";
            Publication publication = session.instants()
                    .beforeCompleted(
                            instant, completion, "commit", () -> Files.exists(timeline.resolve(name)) ? 1 : -1);
            create(name);
            publication.completed();
            writer.commits++;
        } finally {
            inside.decrementAndGet();
            session.release();
        }
    }

    private void create(String name) throws IOException {
        try {
            Files.createFile(timeline.resolve(name));
        } catch (FileAlreadyExistsException e) {
            throw new AssertionError("two owners of one instant: " + name, e);
        }
    }

    int commits() {
        return writers.stream().mapToInt(w -> w.commits).sum();
    }

    public int acquired() {
        return writers.stream().mapToInt(w -> w.acquired).sum();
    }

    /** Whether every writer has committed at least once since then. */
    public boolean allCommittedSince(List<Integer> before) {
        for (int i = 0; i < before.size(); i++) {
            if (writers.get(i).commits <= before.get(i)) {
                return false;
            }
        }
        return true;
    }

    public List<Integer> commitsOfEach() {
        return writers.stream().map(w -> w.commits).collect(java.util.stream.Collectors.toList());
    }

    /** Starts no new cycles, and waits for those in progress. */
    @Override
    public void close() {
        stopped = true;
        for (Writer writer : writers) {
            try {
                writer.thread.interrupt();
                writer.thread.join(TimeUnit.SECONDS.toMillis(20));
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
