package io.hudioperator.support;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.hudioperator.contract.InstantTime;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.TableKeys;
import io.hudioperator.etcd.EtcdFacade;
import io.hudioperator.etcd.EtcdSettings;
import io.hudioperator.etcd.GrpcEtcdClient;
import io.hudioperator.etcd.Pause;
import io.hudioperator.protocol.TableStorage;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.exception.HoodieException;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;

/**
 * Many writers that each commit once per period, without data, to measure the load on the lock
 * service. A commit consists of two lock cycles, as in Hudi: the instant begins, the instant
 * completes. The argument is a JSON file; the measurements are one line of JSON on stdout.
 *
 * <p>{@code etcd}: each writer is a session with its own connection and heartbeat. {@code
 * zookeeper}: Hudi's own provider, which Hudi creates again, with a connection, for each lock
 * cycle.
 */
final class LockLoad {
    /** One lock cycle; returns the nanoseconds until the lock was acquired. */
    private interface Cycle {
        long run(boolean completes) throws Exception;
    }

    private final JsonNode job;
    private final List<Long> waits = Collections.synchronizedList(new ArrayList<>());
    private final List<Long> late = Collections.synchronizedList(new ArrayList<>());
    private final Map<String, Integer> errors = Collections.synchronizedMap(new HashMap<>());
    private final AtomicInteger commits = new AtomicInteger();
    private final AtomicInteger halts = new AtomicInteger();
    private volatile boolean measuring;
    private volatile boolean stopped;

    private LockLoad(JsonNode job) {
        this.job = job;
    }

    public static void main(String[] args) throws Exception {
        System.out.println(new LockLoad(Json.parse(Files.readString(Path.of(args[0])))).run());
        Runtime.getRuntime().halt(0); // sessions are not closed, because the server is stopped next
    }

    private ObjectNode run() throws Exception {
        int tables = job.get("tables").asInt();
        int writers = job.get("writers").asInt();
        CountDownLatch ready = new CountDownLatch(writers);
        CountDownLatch go = new CountDownLatch(1);
        Random random = new Random(job.path("seed").asLong(1));
        for (int i = 0; i < tables && isEtcd(); i++) {
            openTable(tableId(i));
        }
        for (int i = 0; i < writers; i++) {
            int number = i;
            double phase = random.nextDouble();
            Thread thread = new Thread(
                    null, () -> writer(number, tableId(number % tables), phase, ready, go), "writer-" + i, 256 << 10);
            thread.setDaemon(true);
            thread.start();
            if (i % 50 == 49) {
                Pause.millis(200); // do not open all connections at once
            }
        }
        ready.await();
        go.countDown();
        TimeUnit.SECONDS.sleep(job.get("warmUpSeconds").asInt());
        measuring = true;
        System.err.println("MEASURING");
        TimeUnit.SECONDS.sleep(job.get("seconds").asInt());
        measuring = false;
        System.err.println("MEASURED");
        stopped = true;
        return result();
    }

    private boolean isEtcd() {
        return "etcd".equals(job.get("service").asText());
    }

    private static String tableId(int number) {
        return String.format("%016x", 0xb00000 + number);
    }

    private EtcdSettings etcdSettings() {
        return EtcdSettings.of(Map.of("endpoints", job.get("endpoint").asText()), Map.of());
    }

    private void openTable(String tableId) {
        TableKeys keys = new TableKeys("/hudi", tableId);
        GrpcEtcdClient client = new GrpcEtcdClient(etcdSettings());
        EtcdFacade facade = new EtcdFacade(client, keys.prefix(), keys.tablePrefix(), keys.controlPrefix());
        facade.put(
                keys.gate(), "{\"state\":\"open\",\"mode\":\"PodTermination\",\"admitted\":[],\"protocolVersion\":1}");
        client.close();
    }

    private void writer(int number, String table, double phase, CountDownLatch ready, CountDownLatch go) {
        long period = TimeUnit.SECONDS.toNanos(job.get("periodSeconds").asInt());
        try {
            Cycle cycle = isEtcd() ? etcdCycle(number, table) : zookeeperCycle(table);
            ready.countDown();
            go.await();
            long next = System.nanoTime() + (long) (phase * period);
            while (!stopped) {
                TimeUnit.NANOSECONDS.sleep(Math.max(0, next - System.nanoTime()));
                commit(cycle, next);
                next += period;
            }
        } catch (Exception | LinkageError e) {
            error(e);
            ready.countDown();
        }
    }

    private void commit(Cycle cycle, long due) {
        boolean counted = measuring;
        try {
            long started = System.nanoTime() - due;
            long first = cycle.run(false);
            TimeUnit.MILLISECONDS.sleep(job.get("workMillis").asInt());
            long second = cycle.run(true);
            if (counted) {
                waits.add(first);
                waits.add(second);
                late.add(started);
                commits.incrementAndGet();
            }
        } catch (Exception | LinkageError e) {
            error(e);
        }
    }

    private void error(Throwable e) {
        String text = e.getClass().getSimpleName() + ": " + e.getMessage();
        errors.merge(text.substring(0, Math.min(120, text.length())), 1, Integer::sum);
    }

    private Cycle etcdCycle(int number, String table) {
        Map<String, String> settings =
                new HashMap<>(Map.of("tableId", table, "attempt", "load.w" + number, "podUID", "u" + number));
        settings.put("basePath", job.get("folder").asText() + "/" + table);
        settings.put("endpoints", job.get("endpoint").asText());
        TableKeys keys = new TableKeys("/hudi", table);
        GrpcEtcdClient client = new GrpcEtcdClient(etcdSettings());
        new EtcdFacade(client, keys.prefix(), keys.tablePrefix(), keys.controlPrefix())
                .put(keys.admit("load.w" + number), "{\"role\":\"writer\"}");
        Session session =
                OpenSessions.open(settings, Map.of(), client, etcdSettings(), (code, why) -> halts.incrementAndGet());
        TableStorage storage = new TableStorage(settings.get("basePath"), new Configuration());
        String[] instant = new String[1];
        return completes -> {
            long start = System.nanoTime();
            if (!session.acquire(TimeUnit.SECONDS.toNanos(120), storage)) {
                throw new HoodieException("not acquired within 120 s");
            }
            long waited = System.nanoTime() - start;
            hold(() -> {
                if (completes) {
                    session.conflictsChecked(instant[0]);
                    session.instants()
                            .beforeCompleted(instant[0], next(), "commit", () -> 1)
                            .completed();
                } else {
                    instant[0] = next();
                    session.instants().beforeRequested(instant[0], "commit");
                }
            });
            session.release();
            return waited;
        };
    }

    private static String next() {
        Pause.millis(2); // later than the times that the previous owner promised
        return InstantTime.now();
    }

    private interface Step {
        void run() throws Exception;
    }

    private void hold(Step step) throws Exception {
        long end = System.nanoTime()
                + TimeUnit.MILLISECONDS.toNanos(job.get("holdMillis").asInt());
        step.run();
        TimeUnit.NANOSECONDS.sleep(Math.max(0, end - System.nanoTime()));
    }

    private Cycle zookeeperCycle(String table) {
        String endpoint = job.get("endpoint").asText();
        TypedProperties props = new TypedProperties();
        props.setProperty("hoodie.write.lock.zookeeper.url", endpoint);
        props.setProperty("hoodie.write.lock.zookeeper.port", endpoint.substring(endpoint.lastIndexOf(':') + 1));
        props.setProperty("hoodie.write.lock.zookeeper.base_path", "/hudi");
        props.setProperty("hoodie.write.lock.zookeeper.lock_key", table);
        return completes -> {
            long start = System.nanoTime();
            ZookeeperBasedLockProvider provider = new ZookeeperBasedLockProvider(
                    new LockConfiguration(props), new HadoopStorageConfiguration(new Configuration(false)));
            try {
                if (!provider.tryLock(120, TimeUnit.SECONDS)) {
                    throw new HoodieException("not acquired within 120 s");
                }
                long waited = System.nanoTime() - start;
                hold(() -> next());
                provider.unlock();
                return waited;
            } finally {
                provider.close();
            }
        };
    }

    private ObjectNode result() {
        ObjectNode result = Json.object().put("commits", commits.get()).put("halts", halts.get());
        percentiles(result.putObject("waitMillis"), waits);
        percentiles(result.putObject("lateMillis"), late);
        ObjectNode said = result.putObject("errors");
        errors.forEach(said::put);
        return result;
    }

    private static void percentiles(ObjectNode node, List<Long> nanos) {
        List<Long> sorted;
        synchronized (nanos) {
            sorted = new ArrayList<>(nanos);
        }
        Collections.sort(sorted);
        for (int percent : new int[] {50, 95, 99, 100}) {
            node.put(
                    "p" + percent,
                    sorted.isEmpty()
                            ? 0
                            : sorted.get(Math.min(sorted.size() - 1, sorted.size() * percent / 100)) / 1e6);
        }
    }
}
