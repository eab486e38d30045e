package io.hudioperator.etcd;

import com.fasterxml.jackson.databind.node.ArrayNode;
import io.hudioperator.contract.Json;
import java.util.List;

/**
 * etcd for the Python side of a pod. Keys are relative to {@code P/tables/T/}, or absolute when
 * they begin with a slash. Calls are linearizable. A call without an answer is repeated a few
 * times, each time on the next endpoint.
 */
public final class EtcdFacade {
    private static final int TRIES = 4;

    private final EtcdClient etcd;
    private final String prefix;
    private final String tablePrefix;
    private final String controlPrefix;

    public EtcdFacade(EtcdClient etcd, String prefix, String tablePrefix, String controlPrefix) {
        this.etcd = etcd;
        this.prefix = prefix;
        this.tablePrefix = tablePrefix;
        this.controlPrefix = controlPrefix;
    }

    public String prefix() {
        return prefix;
    }

    public String tablePrefix() {
        return tablePrefix;
    }

    public String controlPrefix() {
        return controlPrefix;
    }

    /** Returns null when the key does not exist. */
    public KeyValue get(String key) {
        return call(Txn.when().then(Txn.Op.get(absolute(key)))).one(0);
    }

    /** Returns all keys with the prefix, sorted; at most 10 000. */
    public List<KeyValue> range(String keyPrefix) {
        return call(Txn.when().then(Txn.Op.range(absolute(keyPrefix)))).reads.get(0);
    }

    /**
     * {@link #range} as one string, for Python: each element of a list costs py4j several round
     * trips, and an agent reads its tables' keys every second. The string is JSON: {@code [[key,
     * value, modRevision], …]}.
     */
    public String rangeAsJson(String keyPrefix) {
        return addTo(Json.array(), range(keyPrefix)).toString();
    }

    /**
     * {@link #rangeAsJson} of several prefixes, one a line, which are read in one transaction: a
     * list of what that method returns, in their order.
     */
    public String rangesAsJson(String keyPrefixes) {
        Txn txn = Txn.when();
        keyPrefixes.lines().forEach(prefix -> txn.then(Txn.Op.range(absolute(prefix))));
        ArrayNode all = Json.array();
        call(txn).reads.forEach(found -> addTo(all.addArray(), found));
        return all.toString();
    }

    private static ArrayNode addTo(ArrayNode all, List<KeyValue> keys) {
        for (KeyValue found : keys) {
            all.addArray().add(found.key()).add(found.value()).add(found.modRevision());
        }
        return all;
    }

    /** Returns the revision of the put. */
    public long put(String key, String value) {
        return call(Txn.when().then(Txn.Op.put(absolute(key), value, 0))).revision;
    }

    /**
     * Puts the value if the key is still at that revision (0 = absent). Returns the new revision,
     * or -1 when the key is at another one. After a lost answer, the same value at another revision
     * counts as this put.
     */
    public long casPut(String key, String value, long expectedModRevision) {
        String k = absolute(key);
        Txn txn = Txn.when()
                .modRevision(k, expectedModRevision)
                .then(Txn.Op.put(k, value, 0))
                .otherwise(Txn.Op.get(k));
        boolean[] unanswered = new boolean[1];
        Txn.Result r = call(txn, unanswered);
        if (r.succeeded) {
            return r.revision;
        }
        KeyValue found = r.one(0);
        boolean landed = unanswered[0]
                && found != null
                && found.value().equals(value)
                && found.modRevision() > expectedModRevision;
        return landed ? found.modRevision() : -1;
    }

    /**
     * Deletes the key if it is at that revision (0 = any revision). Returns false when it is not.
     */
    public boolean delete(String key, long modRevision) {
        String k = absolute(key);
        Txn txn = Txn.when();
        if (modRevision != 0) {
            txn.modRevision(k, modRevision);
        }
        txn.then(Txn.Op.delete(k)).otherwise(Txn.Op.get(k));
        boolean[] unanswered = new boolean[1];
        Txn.Result r = call(txn, unanswered);
        return r.succeeded || (unanswered[0] && r.one(0) == null);
    }

    /** Only for a facade from {@code Sessions#etcd}; a session closes its own. */
    public void close() {
        etcd.close();
    }

    private String absolute(String key) {
        return key.startsWith("/") ? key : tablePrefix + key;
    }

    private Txn.Result call(Txn txn) {
        return call(txn, new boolean[1]);
    }

    private Txn.Result call(Txn txn, boolean[] unanswered) {
        for (int i = 1; ; i++) {
            try {
                return etcd.txn(txn);
            } catch (EtcdException e) {
                if (e.outcome() != EtcdException.Outcome.UNKNOWN || i == TRIES) {
                    throw e.code().exception(e.getMessage(), e);
                }
                unanswered[0] = true;
                Pause.millis(100);
            }
        }
    }
}
