package io.hudioperator.contract;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;

/**
 * protocol.json, the data file that the operator, the agent and this module share: key names,
 * states and phases, fields of records, error and exit codes, default durations.
 */
public final class ProtocolData {
    private static final JsonNode DATA = load();

    private ProtocolData() {}

    private static JsonNode load() {
        try (InputStream in = ProtocolData.class.getResourceAsStream("protocol.json")) {
            if (in == null) {
                throw new IllegalStateException("io/hudioperator/contract/protocol.json is not on the class path");
            }
            return Json.read(in);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static JsonNode data() {
        return DATA;
    }

    public static int protocolVersion() {
        return DATA.get("protocolVersion").asInt();
    }

    public static String defaultPrefix() {
        return DATA.get("prefix").asText();
    }

    public static int duration(String name) {
        return DATA.get("durations").get(name).asInt();
    }

    /**
     * The exit code of a process that fails for this reason ({@code Fenced}, {@code HeartbeatLost},
     * …).
     */
    public static int exitCode(String failureClass) {
        return DATA.get("exitCodes").get(failureClass).asInt();
    }

    /** Path of a key below {@code P/<range>/T/}, with its {@code <placeholder>}. */
    static String keyPath(String name) {
        return DATA.get("keys").get(name).get("path").asText();
    }

    static String keyRange(String name) {
        return DATA.get("keys").get(name).get("range").asText();
    }
}
