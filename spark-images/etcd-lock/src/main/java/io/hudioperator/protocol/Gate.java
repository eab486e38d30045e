package io.hudioperator.protocol;

import com.fasterxml.jackson.databind.JsonNode;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.ProtocolData;
import io.hudioperator.contract.Words.Concurrency;
import io.hudioperator.contract.Words.FencingMode;
import io.hudioperator.contract.Words.GateState;
import io.hudioperator.etcd.KeyValue;
import org.apache.hudi.common.table.HoodieTableConfig;

/** The operator's decision on who may acquire the lock, and under which rules. */
public final class Gate {
    final long revision;
    private final JsonNode value;

    private Gate(KeyValue kv) {
        revision = kv.modRevision();
        value = Json.parse(kv.value());
    }

    /**
     * Throws when the gate is missing or does not admit this incarnation. Does not wait for the
     * gate to change.
     */
    static Gate admitting(KeyValue kv, Identity me, String tableId) {
        if (kv == null) {
            throw ErrorCode.NO_GATE.exception("table " + tableId + " has no gate in etcd");
        }
        Gate gate = new Gate(kv);
        int version = gate.value.path("protocolVersion").asInt(ProtocolData.protocolVersion());
        if (version != ProtocolData.protocolVersion()) {
            throw ErrorCode.NOT_ADMITTED.exception("the gate requires protocol version " + version
                    + ", this process has " + ProtocolData.protocolVersion());
        }
        requireHudi(gate.value, hudiVersion());
        if (!gate.admits(me)) {
            throw ErrorCode.NOT_ADMITTED.exception("the gate of table " + tableId + " is " + gate.state()
                    + " and does not admit attempt " + me.attempt);
        }
        return gate;
    }

    /**
     * Throws when the table is pinned to a Hudi release other than this process's: two releases
     * never write to one table at the same time. A gate without the field was written by an
     * operator that did not know it.
     */
    public static void requireHudi(JsonNode gate, String found) {
        String wanted = Json.text(gate, "hudiVersion");
        if (!wanted.isEmpty() && !wanted.equals(found)) {
            throw ErrorCode.HUDI_VERSION.exception("the table is pinned to Hudi " + wanted
                    + " (spec.hudiVersion), this image has Hudi " + found + ": change the image, or both together");
        }
    }

    /** The Hudi release on the class path, as its jar reports it. */
    public static String hudiVersion() {
        String version = HoodieTableConfig.class.getPackage().getImplementationVersion();
        return version == null ? "unknown" : version;
    }

    private String state() {
        return Json.text(value, "state");
    }

    private boolean admits(Identity me) {
        if (GateState.OPEN.is(state())) {
            return true;
        }
        if (!isClosed()) { // frozen, or a state that this version does not know
            return false;
        }
        if (me.isAgent()) {
            return true;
        }
        for (JsonNode admitted : value.path("admitted")) {
            if (admitted.asText().equals(me.attempt)) {
                return true;
            }
        }
        return false;
    }

    /**
     * Only the agent and the attempts that the gate names may acquire. Operations that concern all
     * writers run behind a closed gate.
     */
    boolean isClosed() {
        return GateState.CLOSED.is(state());
    }

    /** Nonce of the restore for which the gate is closed; empty when there is none. */
    String restoring() {
        return Json.text(value, "restoring");
    }

    /**
     * Behaviour of other lock providers: the lock disappears with the lease. Unsafe by design, for
     * comparison.
     */
    boolean isLeaseOnly() {
        return FencingMode.LEASE_ONLY.is(Json.text(value, "mode"));
    }

    /**
     * Commits of several writers to one file group may coexist. Hudi then checks only bulk inserts
     * for conflicts.
     */
    boolean isNonBlocking() {
        return Concurrency.NON_BLOCKING.is(Json.text(value, "concurrency"));
    }

    /** Rule for conflicts between inserts of two commits, neither of which has seen the other. */
    InsertRule insertConflicts() {
        return InsertRule.of(Json.text(value, "insertConflicts"));
    }

    public String authority() {
        return Json.text(value, "authority");
    }

    public JsonNode json() {
        return value;
    }
}
