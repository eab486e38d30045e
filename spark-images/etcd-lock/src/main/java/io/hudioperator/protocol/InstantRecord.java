package io.hudioperator.protocol;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.Words.InstantState;
import io.hudioperator.etcd.KeyValue;

/**
 * The value of {@code instant/<t>}: the owner of the instant, its action on the table, and whether
 * it may still be published.
 */
final class InstantRecord {
    private final ObjectNode json;

    InstantRecord(KeyValue kv) {
        this.json = (ObjectNode) Json.parse(kv.value());
    }

    /**
     * The only incarnation that may execute and publish the instant: the one that claimed it,
     * otherwise its owner.
     */
    String executor() {
        String claimed = Json.text(json, "claimedBy");
        return claimed.isEmpty() ? Json.text(json, "inc") : claimed;
    }

    /** Hudi's action: commit, deltacommit, compaction and so on. */
    String action() {
        return Json.text(json, "action");
    }

    boolean isPending() {
        return InstantState.PENDING.is(Json.text(json, "state"));
    }

    boolean isAbandoned() {
        return InstantState.ABANDONED.is(Json.text(json, "state"));
    }

    /** The same value with another executor. */
    String claimedBy(String inc) {
        return json.deepCopy().put("claimedBy", inc).toString();
    }
}
