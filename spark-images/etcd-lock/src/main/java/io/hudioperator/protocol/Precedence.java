package io.hudioperator.protocol;

import io.hudioperator.contract.Json;
import io.hudioperator.contract.TableKeys;
import io.hudioperator.etcd.KeyValue;
import io.hudioperator.etcd.Txn;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Order of writers that change the same file groups. Fairness only; safety does not depend on it.
 */
public final class Precedence {
    private final TableKeys keys;
    private final List<List<KeyValue>> reads;

    /** From one read of {@code writer/}, {@code alive/} and {@code instant/}, in this order. */
    Precedence(TableKeys keys, Txn.Result read) {
        this.keys = keys;
        this.reads = read.reads;
    }

    /** Pending instants of living incarnations with a priority higher than this one. */
    public Set<String> pendingAhead(int priority) {
        Set<String> ahead = new HashSet<>();
        for (KeyValue kv : reads.get(0)) {
            if (Json.parse(kv.value()).path("priority").asInt(0) > priority) {
                ahead.add(rest(kv, keys.writer("")));
            }
        }
        Set<String> alive = new HashSet<>();
        reads.get(1).forEach(kv -> alive.add(rest(kv, keys.alive(""))));
        ahead.retainAll(alive);
        Set<String> instants = new HashSet<>();
        for (KeyValue kv : reads.get(2)) {
            InstantRecord record = new InstantRecord(kv);
            if (record.isPending() && ahead.contains(record.executor())) {
                instants.add(rest(kv, keys.instant("")));
            }
        }
        return instants;
    }

    private static String rest(KeyValue kv, String prefix) {
        return kv.key().substring(prefix.length());
    }
}
