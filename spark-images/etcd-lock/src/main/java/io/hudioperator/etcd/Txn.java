package io.hudioperator.etcd;

import java.util.ArrayList;
import java.util.List;

/**
 * A transaction of etcd: compares (all must hold), the operations to run if they do, and the
 * operations to run otherwise.
 */
public final class Txn {
    public enum Target {
        VERSION,
        CREATE,
        MOD,
        VALUE
    }

    public static final class Compare {
        public final Target target;
        final String key;
        final boolean greater;
        final long number;
        final String value;

        private Compare(Target target, String key, boolean greater, long number, String value) {
            this.target = target;
            this.key = key;
            this.greater = greater;
            this.number = number;
            this.value = value;
        }
    }

    public enum Kind {
        GET,
        RANGE,
        PUT,
        DELETE
    }

    public static final class Op {
        public final Kind kind;
        public final String key;
        final String value;
        final long lease;

        private Op(Kind kind, String key, String value, long lease) {
            this.kind = kind;
            this.key = key;
            this.value = value;
            this.lease = lease;
        }

        public static Op get(String key) {
            return new Op(Kind.GET, key, null, 0);
        }

        /** Every key with the prefix. */
        public static Op range(String prefix) {
            return new Op(Kind.RANGE, prefix, null, 0);
        }

        public static Op put(String key, String value, long lease) {
            return new Op(Kind.PUT, key, value, lease);
        }

        public static Op delete(String key) {
            return new Op(Kind.DELETE, key, null, 0);
        }
    }

    /**
     * The answer. {@code reads} has one list for each get or range of the branch that ran, in
     * order.
     */
    public static final class Result {
        public final boolean succeeded;
        public final long revision;
        public final List<List<KeyValue>> reads;

        Result(boolean succeeded, long revision, List<List<KeyValue>> reads) {
            this.succeeded = succeeded;
            this.revision = revision;
            this.reads = reads;
        }

        /** The value that the n-th get read; null when the key does not exist. */
        public KeyValue one(int n) {
            List<KeyValue> found = reads.get(n);
            return found.isEmpty() ? null : found.get(0);
        }
    }

    public final List<Compare> compares = new ArrayList<>();
    public final List<Op> then = new ArrayList<>();
    public final List<Op> otherwise = new ArrayList<>();

    public static Txn when() {
        return new Txn();
    }

    public Txn absent(String key) {
        compares.add(new Compare(Target.VERSION, key, false, 0, null));
        return this;
    }

    public Txn exists(String key) {
        compares.add(new Compare(Target.VERSION, key, true, 0, null));
        return this;
    }

    public Txn createRevision(String key, long revision) {
        compares.add(new Compare(Target.CREATE, key, false, revision, null));
        return this;
    }

    /** @param revision the expected revision; 0 when the key must not exist */
    public Txn modRevision(String key, long revision) {
        compares.add(new Compare(Target.MOD, key, false, revision, null));
        return this;
    }

    public Txn value(String key, String value) {
        compares.add(new Compare(Target.VALUE, key, false, 0, value));
        return this;
    }

    public Txn then(Op op) {
        then.add(op);
        return this;
    }

    public Txn otherwise(Op op) {
        otherwise.add(op);
        return this;
    }
}
