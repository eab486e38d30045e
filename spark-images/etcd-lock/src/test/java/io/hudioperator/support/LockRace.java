package io.hudioperator.support;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.hudioperator.contract.InstantTime;
import io.hudioperator.contract.Json;
import io.hudioperator.etcd.EtcdSettings;
import io.hudioperator.etcd.GrpcEtcdClient;
import io.hudioperator.etcd.Pause;
import io.hudioperator.protocol.TableStorage;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.exception.HoodieException;

/**
 * Writers that take the lock of one table over and over, by turns through the gateway and directly.
 * Gates and admissions are there. The argument is a JSON file; the measurements are one line of
 * JSON on stdout: the opening of each session, and each phase.
 */
final class LockRace {
    private final JsonNode job;
    private final ObjectNode result = Json.object();
    private final AtomicInteger halts = new AtomicInteger();

    private LockRace(JsonNode job) {
        this.job = job;
    }

    public static void main(String[] args) throws Exception {
        System.out.println(new LockRace(Json.parse(Files.readString(Path.of(args[0])))).run());
        Runtime.getRuntime().halt(0);
    }

    /** One way to etcd, with its contenders of one size. */
    private final class Way {
        final JsonNode how;
        final String name;
        final List<Session> sessions = new ArrayList<>();
        final List<Long> openings = new ArrayList<>();
        final TableStorage storage;
        final String table;
        volatile boolean stopped;

        Way(JsonNode how, int contenders) {
            this.how = how;
            this.name = how.get("name").asText();
            this.table = how.get("tables").get(String.valueOf(contenders)).asText();
            this.storage = new TableStorage(job.get("folder").asText() + "/" + table, new Configuration());
        }

        /** From nothing to a session that is registered and has a heartbeat. */
        void open(int contenders, int number) {
            String pod = name + "-" + contenders + "-" + number;
            Map<String, String> settings = new HashMap<>();
            how.get("settings")
                    .fields()
                    .forEachRemaining(
                            s -> settings.put(s.getKey(), s.getValue().asText().replace("POD", pod)));
            settings.put("tableId", table);
            settings.put("basePath", job.get("folder").asText() + "/" + table);
            settings.put("namespace", "load");
            settings.put("podName", pod);
            settings.put("podUID", "uid-" + pod);
            settings.put("attempt", "load." + pod);
            long start = System.nanoTime();
            EtcdSettings etcd = EtcdSettings.of(settings, Map.of());
            sessions.add(OpenSessions.open(
                    settings, Map.of(), new GrpcEtcdClient(etcd), etcd, (code, why) -> halts.incrementAndGet()));
            openings.add(System.nanoTime() - start);
        }
    }

    /** What one contender has seen. */
    private static final class Seen {
        final List<Long> cycles = new ArrayList<>();
        final List<Long> holds = new ArrayList<>();
        String error = "";
    }

    private ObjectNode run() throws Exception {
        ArrayNode phases = result.putArray("phases");
        ArrayNode openings = result.putArray("openings");
        for (JsonNode size : job.get("contenders")) {
            int contenders = size.asInt();
            List<Way> ways = new ArrayList<>();
            job.get("ways").forEach(how -> ways.add(new Way(how, contenders)));
            for (int i = 0; i < contenders; i++) {
                for (Way way : i % 2 == 0 ? ways : reversed(ways)) {
                    way.open(contenders, i);
                }
            }
            for (Way way : ways) {
                ObjectNode said = openings.addObject().put("way", way.name).put("contenders", contenders);
                percentiles(said.putObject("millis"), way.openings);
            }
            for (int repeat = 0; repeat < job.get("repeats").asInt(); repeat++) {
                for (Way way : repeat % 2 == 0 ? ways : reversed(ways)) {
                    phases.add(phase(way, contenders, repeat));
                }
            }
            for (Way way : ways) {
                way.sessions.forEach(Session::close);
            }
        }
        result.put("halts", halts.get());
        return result;
    }

    private static List<Way> reversed(List<Way> ways) {
        List<Way> turned = new ArrayList<>(ways);
        Collections.reverse(turned);
        return turned;
    }

    private ObjectNode phase(Way way, int contenders, int repeat) throws Exception {
        way.stopped = false;
        List<Seen> seen = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        long from = System.nanoTime()
                + TimeUnit.SECONDS.toNanos(job.get("warmUpSeconds").asInt());
        for (Session session : way.sessions) {
            Seen own = new Seen();
            seen.add(own);
            Thread thread = new Thread(null, () -> race(way, session, from, own), "contender", 256 << 10);
            thread.start();
            threads.add(thread);
        }
        TimeUnit.NANOSECONDS.sleep(from - System.nanoTime());
        Map<String, Double> before = processorSeconds();
        TimeUnit.SECONDS.sleep(job.get("seconds").asInt());
        double measured = (System.nanoTime() - from) / 1e9;
        Map<String, Double> after = processorSeconds();
        way.stopped = true;
        for (Thread thread : threads) {
            thread.join();
        }
        List<Long> cycles = new ArrayList<>();
        List<Long> holds = new ArrayList<>();
        ObjectNode said =
                Json.object().put("way", way.name).put("contenders", contenders).put("repeat", repeat);
        for (Seen own : seen) {
            cycles.addAll(own.cycles);
            holds.addAll(own.holds);
            if (!own.error.isEmpty()) {
                said.put("error", own.error);
            }
        }
        said.put("cycles", cycles.size()).put("seconds", measured);
        percentiles(said.putObject("cycleMillis"), cycles);
        percentiles(said.putObject("heldMillis"), holds);
        ObjectNode used = said.putObject("processorSeconds");
        after.forEach((name, value) -> used.put(name, value - before.get(name)));
        return said;
    }

    private void race(Way way, Session session, long from, Seen own) {
        long end = from + TimeUnit.SECONDS.toNanos(job.get("seconds").asInt());
        try {
            while (!way.stopped) {
                String[] instant = new String[1];
                cycle(way, session, from, end, own, () -> {
                    instant[0] = next();
                    session.instants().beforeRequested(instant[0], "commit");
                });
                cycle(way, session, from, end, own, () -> {
                    session.conflictsChecked(instant[0]);
                    session.instants()
                            .beforeCompleted(instant[0], next(), "commit", () -> 1)
                            .completed();
                });
            }
        } catch (Exception | LinkageError e) {
            own.error = e.getClass().getSimpleName() + ": " + e.getMessage();
        }
    }

    private interface Step {
        void run() throws Exception;
    }

    private static void cycle(Way way, Session session, long from, long end, Seen own, Step step) throws Exception {
        long start = System.nanoTime();
        if (!session.acquire(TimeUnit.SECONDS.toNanos(120), way.storage)) {
            throw new HoodieException("not acquired within 120 s");
        }
        long acquired = System.nanoTime();
        step.run();
        session.release();
        long released = System.nanoTime();
        if (released >= from && released <= end) {
            own.cycles.add(released - start);
            own.holds.add(released - acquired);
        }
    }

    private static String next() {
        Pause.millis(2); // later than the times that the previous owner promised
        return InstantTime.now();
    }

    private Map<String, Double> processorSeconds() throws IOException {
        Map<String, Double> used = new HashMap<>();
        for (var pids = job.get("pids").fields(); pids.hasNext(); ) {
            var pid = pids.next();
            String stat = Files.readString(Path.of("/proc/" + pid.getValue().asInt() + "/stat"));
            String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
            used.put(pid.getKey(), (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) / 100.0);
        }
        return used;
    }

    private static void percentiles(ObjectNode node, List<Long> nanos) {
        List<Long> sorted = new ArrayList<>(nanos);
        Collections.sort(sorted);
        for (int percent : new int[] {50, 99, 100}) {
            int at = Math.min(sorted.size() - 1, sorted.size() * percent / 100);
            node.put("p" + percent, sorted.isEmpty() ? 0 : sorted.get(at) / 1e6);
        }
    }
}
