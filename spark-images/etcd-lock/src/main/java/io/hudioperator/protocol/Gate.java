package io.hudioperator.protocol;

import com.fasterxml.jackson.databind.JsonNode;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.ProtocolData;
import io.hudioperator.etcd.KeyValue;
import org.apache.hudi.common.table.HoodieTableConfig;

/** The operator's word on who may acquire, and under which rules. */
public final class Gate {
  final long revision;
  private final JsonNode value;

  private Gate(KeyValue kv) {
    revision = kv.modRevision();
    value = Json.parse(kv.value());
  }

  /** Throws when the gate is missing or does not admit this incarnation; it is not waited for. */
  static Gate admitting(KeyValue kv, Identity me, String tableId) {
    if (kv == null) {
      throw ErrorCode.NO_GATE.exception("table " + tableId + " has no gate in etcd");
    }
    Gate gate = new Gate(kv);
    int version = gate.value.path("protocolVersion").asInt(ProtocolData.protocolVersion());
    if (version != ProtocolData.protocolVersion()) {
      throw ErrorCode.NOT_ADMITTED.exception("the gate asks for protocol version " + version + ", this is " + ProtocolData.protocolVersion());
    }
    requireHudi(gate.value, hudiVersion());
    if (!gate.admits(me)) {
      throw ErrorCode.NOT_ADMITTED.exception("the gate of table " + tableId + " is " + gate.state() + " and does not admit attempt " + me.attempt);
    }
    return gate;
  }

  /**
   * Throws when the table is pinned to another release of Hudi than this process has: two releases never write to one table at a time. A gate
   * without the word is of an operator that did not know it.
   */
  public static void requireHudi(JsonNode gate, String found) {
    String wanted = Json.text(gate, "hudiVersion");
    if (!wanted.isEmpty() && !wanted.equals(found)) {
      throw ErrorCode.HUDI_VERSION.exception(
          "the table is pinned to Hudi " + wanted + " (spec.hudiVersion), this image has Hudi " + found + ": change the image, or both together");
    }
  }

  /** The release of Hudi on the class path, as its jar says it. */
  public static String hudiVersion() {
    String version = HoodieTableConfig.class.getPackage().getImplementationVersion();
    return version == null ? "unknown" : version;
  }

  private String state() {
    return Json.text(value, "state");
  }

  private boolean admits(Identity me) {
    switch (state()) {
      case "open":
        return true;
      case "closed":
        if (me.isAgent()) {
          return true;
        }
        for (JsonNode admitted : value.path("admitted")) {
          if (admitted.asText().equals(me.attempt)) {
            return true;
          }
        }
        return false;
      default: // frozen, or something this version does not know
        return false;
    }
  }

  /** Nobody but the agent and who is named may acquire: what concerns all writers is done behind it. */
  boolean isClosed() {
    return "closed".equals(state());
  }

  /** Nonce of the restore that the closed gate is held for; empty = none. */
  String restoring() {
    return Json.text(value, "restoring");
  }

  /** What other providers do: the lock vanishes with the lease. Unsafe by design, for comparison. */
  boolean isLeaseOnly() {
    return "LeaseOnly".equals(Json.text(value, "mode"));
  }

  /** Commits of several writers to one file group stand side by side; Hudi asks for conflicts of bulk inserts only. */
  boolean isNonBlocking() {
    return "NonBlocking".equals(Json.text(value, "concurrency"));
  }

  /** What two commits of which neither has seen the other may not both insert. */
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
