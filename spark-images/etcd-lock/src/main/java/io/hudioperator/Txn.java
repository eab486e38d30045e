package io.hudioperator;

import java.util.ArrayList;
import java.util.List;

/** A transaction of etcd: compares (all must hold), what happens then, what happens otherwise. */
final class Txn {
  enum Target {
    VERSION,
    CREATE,
    MOD,
    VALUE
  }

  static final class Compare {
    final Target target;
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

  enum Kind {
    GET,
    RANGE,
    PUT,
    DELETE
  }

  static final class Op {
    final Kind kind;
    final String key;
    final String value;
    final long lease;

    private Op(Kind kind, String key, String value, long lease) {
      this.kind = kind;
      this.key = key;
      this.value = value;
      this.lease = lease;
    }

    static Op get(String key) {
      return new Op(Kind.GET, key, null, 0);
    }

    /** Every key that begins with the prefix. */
    static Op range(String prefix) {
      return new Op(Kind.RANGE, prefix, null, 0);
    }

    static Op put(String key, String value, long lease) {
      return new Op(Kind.PUT, key, value, lease);
    }

    static Op delete(String key) {
      return new Op(Kind.DELETE, key, null, 0);
    }
  }

  /** The answer. {@code reads} has one list for each get or range of the branch that ran, in order. */
  static final class Result {
    final boolean succeeded;
    final long revision;
    final List<List<KeyValue>> reads;

    Result(boolean succeeded, long revision, List<List<KeyValue>> reads) {
      this.succeeded = succeeded;
      this.revision = revision;
      this.reads = reads;
    }

    /** The value read by the n-th get; null when the key does not exist. */
    KeyValue one(int n) {
      List<KeyValue> found = reads.get(n);
      return found.isEmpty() ? null : found.get(0);
    }
  }

  final List<Compare> compares = new ArrayList<>();
  final List<Op> then = new ArrayList<>();
  final List<Op> otherwise = new ArrayList<>();

  static Txn when() {
    return new Txn();
  }

  Txn absent(String key) {
    compares.add(new Compare(Target.VERSION, key, false, 0, null));
    return this;
  }

  Txn exists(String key) {
    compares.add(new Compare(Target.VERSION, key, true, 0, null));
    return this;
  }

  Txn createRevision(String key, long revision) {
    compares.add(new Compare(Target.CREATE, key, false, revision, null));
    return this;
  }

  /** Revision 0 = the key does not exist. */
  Txn modRevision(String key, long revision) {
    compares.add(new Compare(Target.MOD, key, false, revision, null));
    return this;
  }

  Txn value(String key, String value) {
    compares.add(new Compare(Target.VALUE, key, false, 0, value));
    return this;
  }

  Txn then(Op op) {
    then.add(op);
    return this;
  }

  Txn otherwise(Op op) {
    otherwise.add(op);
    return this;
  }
}
