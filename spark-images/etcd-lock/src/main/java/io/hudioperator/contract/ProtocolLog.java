package io.hudioperator.contract;

import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Writes one machine-readable line to stderr for each protocol step, so that a history can be
 * checked against the model.
 */
public final class ProtocolLog {
    private final String table;
    private final String actor;
    private final String role;

    public ProtocolLog(String table, String actor, String role) {
        this.table = table;
        this.actor = actor;
        this.role = role;
    }

    public Line line(String action) {
        return new Line(action);
    }

    /** Set optional fields first, then call {@link #write}. */
    public final class Line {
        private final ObjectNode json = Json.object();

        private Line(String action) {
            json.put("v", 1)
                    .put("ts", System.currentTimeMillis())
                    .put("table", table)
                    .put("actor", actor)
                    .put("role", role);
            json.put("action", action);
        }

        public Line with(String field, String value) {
            json.put(field, value);
            return this;
        }

        public Line with(String field, long value) {
            json.put(field, value);
            return this;
        }

        /** @param revision revision of etcd's answer; 0 when the step has no answer */
        public void write(long revision, boolean ok) {
            json.put("rev", revision).put("ok", ok);
            System.err.println("PROTOCOL " + json);
        }
    }
}
