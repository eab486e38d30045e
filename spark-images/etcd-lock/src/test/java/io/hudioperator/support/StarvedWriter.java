package io.hudioperator.support;

import com.fasterxml.jackson.databind.JsonNode;
import io.hudioperator.Sessions;
import io.hudioperator.contract.Json;
import io.hudioperator.etcd.Pause;
import io.hudioperator.session.Session;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * A healthy writer that needs more CPU time than it gets: a session, and threads that never finish.
 * The argument is a JSON file with {@code settings} of the session and {@code threads}. A halt
 * really ends the JVM.
 */
final class StarvedWriter {
    private static volatile long sink;

    private StarvedWriter() {}

    public static void main(String[] args) throws Exception {
        JsonNode job = Json.parse(Files.readString(Path.of(args[0])));
        Map<String, String> settings = new HashMap<>();
        job.get("settings")
                .fields()
                .forEachRemaining(
                        field -> settings.put(field.getKey(), field.getValue().asText()));
        Session session = Sessions.open(settings);
        System.out.println(session.inc());
        for (int i = 0; i < job.get("threads").asInt(); i++) {
            Thread thread = new Thread(StarvedWriter::compute, "task-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        while (true) {
            Pause.millis(1000);
        }
    }

    private static void compute() {
        while (true) {
            long sum = 0;
            for (byte b : new byte[4096]) { // also creates garbage to collect
                sum += 31 * sum + b;
            }
            sink = sum;
        }
    }
}
