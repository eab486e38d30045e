package io.hudioperator.support;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.hudioperator.contract.Json;
import io.hudioperator.etcd.EtcdSettings;
import io.hudioperator.etcd.GrpcEtcdClient;
import io.hudioperator.etcd.Pause;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * {@link Writers} as a process, for tests that are not written in Java. The argument is a JSON file
 * with {@code folder}, {@code pauseMillis} and {@code writers} (name → settings of the session).
 * Several times per second it prints what each writer has done. A writer that would halt its JVM is
 * told with the exit code and the reason; only that writer ends.
 */
final class WriterProcess {
    private static final long REPORT_MILLIS = 100;

    private WriterProcess() {}

    private static final class Halted {
        private final int code;
        private final String why;

        Halted(int code, String why) {
            this.code = code;
            this.why = why;
        }
    }

    public static void main(String[] args) throws Exception {
        JsonNode job = Json.parse(Files.readString(Path.of(args[0])));
        Path folder = Path.of(job.get("folder").asText());
        Files.createDirectories(folder.resolve(".hoodie/timeline"));
        Map<String, Halted> halts = new ConcurrentHashMap<>();
        Writers writers = new Writers(folder, job.get("pauseMillis").asLong());
        job.get("writers")
                .fields()
                .forEachRemaining(
                        entry -> writers.start(entry.getKey(), open(entry.getKey(), entry.getValue(), folder, halts)));
        while (true) {
            System.out.println(report(writers, halts));
            Pause.millis(REPORT_MILLIS);
        }
    }

    private static Session open(String name, JsonNode given, Path folder, Map<String, Halted> halts) {
        Map<String, String> settings =
                new HashMap<>(Map.of("basePath", folder.toUri().toString()));
        given.fields()
                .forEachRemaining(
                        field -> settings.put(field.getKey(), field.getValue().asText()));
        EtcdSettings etcd = EtcdSettings.of(settings, Map.of());
        return OpenSessions.open(
                settings,
                Map.of(),
                new GrpcEtcdClient(etcd),
                etcd,
                (code, why) -> halts.put(name, new Halted(code, why)));
    }

    private static ObjectNode report(Writers writers, Map<String, Halted> halts) {
        ObjectNode report = Json.object().put("ms", System.currentTimeMillis()).put("together", writers.together.get());
        ArrayNode list = report.putArray("writers");
        for (Writers.Writer writer : writers.writers) {
            ObjectNode one = list.addObject()
                    .put("name", writer.name)
                    .put("inc", writer.session.inc())
                    .put("state", writer.session.state());
            one.put("acquired", writer.acquired).put("commits", writer.commits).put("error", writer.lastError);
            if (halts.containsKey(writer.name)) {
                one.put("halted", halts.get(writer.name).code).put("haltedFor", halts.get(writer.name).why);
            }
        }
        return report;
    }
}
