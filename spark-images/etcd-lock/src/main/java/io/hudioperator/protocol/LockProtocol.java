package io.hudioperator.protocol;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.ProtocolLog;
import io.hudioperator.contract.TableKeys;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.etcd.EtcdClient;
import io.hudioperator.etcd.EtcdException;
import io.hudioperator.etcd.KeyValue;
import io.hudioperator.etcd.Txn;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.BooleanSupplier;

/**
 * Every transaction of the protocol, each in one place, each with a definite outcome. Names and compares are those of protocol.json.
 *
 * <p>A call without an answer is repeated ({@link DefiniteTxn}) only where the same request twice does the same as once, also when the
 * first one is executed long after the second. An acquire is not repeated but resolved: see {@link #resolve}.
 */
public final class LockProtocol {
  public static final String SAVEPOINT = "savepoint"; // the action

  /** What a waiter decides on: one linearizable read. Absent keys are null. */
  static final class View {
    final long revision;
    final KeyValue gate;
    final KeyValue fence;
    final KeyValue alive;
    final KeyValue lock;
    final KeyValue clock;
    final List<KeyValue> queue;

    View(Txn.Result r) {
      revision = r.revision;
      gate = r.one(0);
      fence = r.one(1);
      alive = r.one(2);
      lock = r.one(3);
      clock = r.one(4);
      queue = r.reads.get(5);
    }
  }

  /** A lock that is ours, with the clock as it stood in that moment (null = the table has none yet). */
  public static final class Acquired {
    public final long token;
    public final String clock;

    Acquired(long token, String clock) {
      this.token = token;
      this.clock = clock;
    }
  }

  private final EtcdClient etcd;
  private final TableKeys keys;
  private final Identity me;
  private final ProtocolLog log;
  private final DefiniteTxn definite;
  private volatile boolean acquireUnknown;

  public LockProtocol(EtcdClient etcd, TableKeys keys, Identity me, ProtocolLog log, BooleanSupplier gaveUp) {
    this.etcd = etcd;
    this.keys = keys;
    this.me = me;
    this.log = log;
    this.definite = new DefiniteTxn(etcd, keys, log, gaveUp);
  }

  // ---- registration and liveness

  /**
   * Registers on a fresh lease; returns the revision of {@code alive}. After a lost answer the caller revokes the lease, which ends the
   * uncertainty (a late request is rejected whole, F23), and comes again with another.
   */
  long register(Liveness liveness, long lease) throws EtcdException {
    Txn.Result r =
        etcd.txn(
            Txn.when()
                .exists(keys.admit(me.attempt))
                .absent(keys.fence(me.inc)) // I2
                .then(Txn.Op.put(keys.writer(me.inc), me.registration(), 0))
                .then(Txn.Op.put(keys.alive(me.inc), liveness.nextValue(), lease))
                .otherwise(Txn.Op.get(keys.fence(me.inc))));
    log.line("register").with("attempt", me.attempt).write(r.revision, r.succeeded);
    if (r.succeeded) {
      return r.revision;
    }
    if (r.one(0) != null) {
      throw ErrorCode.FENCED.exception("incarnation " + me.inc + " is fenced: " + Json.text(Json.parse(r.one(0).value()), "reason"));
    }
    throw ErrorCode.NOT_ADMITTED.exception("attempt " + me.attempt + " is not admitted to table " + keys.tablePrefix());
  }

  /** The Spark application id is known later than the session has to begin. */
  public void updateRegistration() {
    Txn txn =
        Txn.when()
            .absent(keys.fence(me.inc))
            .exists(keys.writer(me.inc))
            .then(Txn.Op.put(keys.writer(me.inc), me.registration(), 0));
    Txn.Result r = definite("register", txn);
    log.line("register").with("detail", "appId " + me.appId).write(r.revision, r.succeeded);
  }

  /**
   * Puts {@code alive}: after a lost lease, and to make every earlier acquire of ours impossible. Returns its revision, or -1 when this
   * incarnation is fenced or its registration is gone: it may never act again (I2).
   */
  long keepalive(Liveness liveness, long lease) throws EtcdException {
    Txn txn =
        Txn.when()
            .absent(keys.fence(me.inc)) // I2
            .exists(keys.writer(me.inc))
            .then(Txn.Op.put(keys.alive(me.inc), liveness.nextValue(), lease));
    Txn.Result r = repeat("keepalive", txn);
    log.line("keepalive").write(r.revision, r.succeeded);
    return r.succeeded ? r.revision : -1;
  }

  /** What the heartbeat looks at: fence, writer, alive, and the tickets of this incarnation. */
  Txn.Result readSelf() throws EtcdException {
    return etcd.txn(
        Txn.when()
            .then(Txn.Op.get(keys.fence(me.inc)))
            .then(Txn.Op.get(keys.writer(me.inc)))
            .then(Txn.Op.get(keys.alive(me.inc)))
            .then(Txn.Op.range(keys.queue(me.inc + "-"))));
  }

  // ---- lock

  View view() {
    return new View(
        definite(
            "read",
            Txn.when()
                .then(Txn.Op.get(keys.gate()))
                .then(Txn.Op.get(keys.fence(me.inc)))
                .then(Txn.Op.get(keys.alive(me.inc)))
                .then(Txn.Op.get(keys.lock()))
                .then(Txn.Op.get(keys.clock()))
                .then(Txn.Op.range(keys.queue("")))));
  }

  /**
   * Acquire. Null = definitely not ours, now and later; the reason is in the next {@link #view}.
   *
   * @param lockLease 0, or the session's lease in mode LeaseOnly
   * @param ticket the waiter's place in the queue, given back with the lock; null = none
   */
  Acquired acquire(Liveness liveness, long gateRevision, String lockValue, long lockLease, String ticket) {
    Txn txn =
        Txn.when()
            .absent(keys.lock()) // I1
            .absent(keys.fence(me.inc)) // I2
            .modRevision(keys.alive(me.inc), liveness.aliveRevision()) // only the heartbeat that I put last counts (F16)
            .modRevision(keys.gate(), gateRevision) // the gate that I read, and that admits me (F8)
            .then(Txn.Op.put(keys.lock(), lockValue, lockLease))
            .then(Txn.Op.get(keys.clock()));
    if (ticket != null) {
      txn.then(Txn.Op.delete(keys.queue(ticket)));
    }
    String nonce = Json.text(Json.parse(lockValue), "nonce");
    try {
      Txn.Result r = etcd.txn(txn);
      ProtocolLog.Line line = log.line("acquire").with("nonce", nonce);
      if (!r.succeeded) {
        line.write(r.revision, false);
        return null;
      }
      line.with("token", r.revision).write(r.revision, true);
      return new Acquired(r.revision, clockValue(r.one(0)));
    } catch (EtcdException e) {
      log.line("acquire").with("nonce", nonce).with("detail", e.outcome() + " " + e.getMessage()).write(0, false);
      switch (e.outcome()) {
        case UNKNOWN:
          acquireUnknown = true; // and stays so when this throws: no clean exit then (F15)
          Acquired resolved = resolve(liveness, lockValue, nonce);
          acquireUnknown = false;
          return resolved;
        case LEASE_GONE: // LeaseOnly: the heartbeat will bring another lease
          return null;
        default:
          throw unexpected("acquire", e);
      }
    }
  }

  /**
   * Ends the uncertainty of an acquire: either the lock is mine, or {@code alive} is put again, so that the lost request, whenever it
   * is executed, finds another revision than it compares. Reading back would not do: an acquire was executed 25 s after its time-out
   * (measured).
   */
  private Acquired resolve(Liveness liveness, String lockValue, String nonce) {
    Txn txn =
        Txn.when()
            .value(keys.lock(), lockValue)
            .then(Txn.Op.get(keys.lock()))
            .then(Txn.Op.get(keys.clock()))
            .otherwise(Txn.Op.put(keys.alive(me.inc), liveness.nextValue(), liveness.lease()));
    ProtocolLog.Line line = log.line("acquire-resolve").with("nonce", nonce);
    try {
      Txn.Result r = repeat("acquire-resolve", txn);
      if (r.succeeded) {
        long token = r.one(0).createRevision();
        line.with("token", token).write(r.revision, true);
        return new Acquired(token, clockValue(r.one(1)));
      }
      line.write(r.revision, false);
      liveness.alivePut(r.revision);
      return null;
    } catch (EtcdException e) {
      if (e.outcome() != EtcdException.Outcome.LEASE_GONE) {
        throw unexpected("acquire-resolve", e);
      }
      // The else branch was taken (a lease in the other branch is not checked) and its lease is gone, and with it the alive key at the
      // revision that the lost acquire compares: it can never succeed.
      line.with("detail", "lease gone").write(0, false);
      return null;
    }
  }

  /** Was there an acquire whose outcome could not be found out? */
  public boolean acquireUnknown() {
    return acquireUnknown;
  }

  /** Takes or updates a place in the queue. False = it is not there (fenced, other heartbeat); look again. */
  boolean enqueue(Liveness liveness, String ticket, String value, boolean update) {
    Txn txn = Txn.when().absent(keys.fence(me.inc)).modRevision(keys.alive(me.inc), liveness.aliveRevision());
    if (update) {
      txn.exists(keys.queue(ticket));
    }
    txn.then(Txn.Op.put(keys.queue(ticket), value, liveness.lease()));
    try {
      Txn.Result r = etcd.txn(txn);
      log.line("enqueue").with("key", ticket).write(r.revision, r.succeeded);
      return r.succeeded;
    } catch (EtcdException e) {
      log.line("enqueue").with("key", ticket).with("detail", e.outcome().name()).write(0, false);
      if (e.outcome() == EtcdException.Outcome.UNKNOWN) {
        liveness.putAlive(); // a late ticket would stand in everybody's way
      } else if (e.outcome() != EtcdException.Outcome.LEASE_GONE) {
        throw unexpected("enqueue", e);
      }
      return false;
    }
  }

  /** Gives up a place in the queue. The heartbeat repeats it when this has no answer. */
  void leave(String ticket) {
    try {
      etcd.txn(Txn.when().then(Txn.Op.delete(keys.queue(ticket))));
    } catch (EtcdException e) {
      log.line("leave").with("key", ticket).with("detail", e.getMessage()).write(0, false);
    }
  }

  /**
   * Release, with the records of the instants that were completed under this token. A failed compare means that the lock is not ours
   * any more; either way it is over.
   */
  public void release(long token, Collection<String> completed) {
    Txn txn = Txn.when().createRevision(keys.lock(), token).then(Txn.Op.delete(keys.lock()));
    completed.forEach(t -> txn.then(Txn.Op.delete(keys.instant(t))));
    Txn.Result r = definite("release", txn);
    log.line("release").with("token", token).with("detail", String.join(",", completed)).write(r.revision, r.succeeded);
  }

  /** Throws when the lock is no longer held under the token, or this incarnation is fenced. */
  public void requireHeld(long token) throws TimelineRefusedException {
    Txn.Result r = definite("read", Txn.when().then(Txn.Op.get(keys.lock())).then(Txn.Op.get(keys.fence(me.inc))));
    requireToken(r.one(0), token);
    requireNotFenced(r.one(1));
  }

  // ---- instants

  /**
   * Records the instant and moves the clock, both before the requested file exists (F12, I10); `gate`: its revision (0: any). Returns the record's revision.
   */
  public long recordInstant(long token, String time, String action, long gate) throws TimelineRefusedException {
    boolean savepoint = SAVEPOINT.equals(action); // bears the time of a completed commit, which the clock has left behind
    String name = savepoint ? "record-savepoint" : "record-instant";
    Txn txn = Txn.when().createRevision(keys.lock(), token).absent(keys.instant(time)); // I1
    txn = gate == 0 ? txn : txn.modRevision(keys.gate(), gate); // F8
    txn.then(Txn.Op.put(keys.instant(time), me.instantRecord(action, "Pending").toString(), 0));
    if (!savepoint) {
      txn.then(Txn.Op.put(keys.clock(), clockJson(time), 0));
    }
    txn.otherwise(Txn.Op.get(keys.lock())).otherwise(Txn.Op.get(keys.instant(time)));
    Txn.Result r = definite(name, txn);
    log.line(name).with("instant", time).with("token", token).with("detail", action).write(r.revision, r.succeeded);
    if (r.succeeded) {
      return r.revision;
    }
    requireToken(r.one(0), token);
    KeyValue found = r.one(1);
    if (found != null && isPendingOfMine(found)) {
      return found.modRevision();
    }
    throw ErrorCode.NOT_PENDING.refusal("instant " + time + " is already recorded, or its gate has changed: " + found);
  }

  /**
   * Asked immediately before a completed file is created or renamed into place: moves the clock to the completion time. Safe to repeat:
   * each request compares the clock that it moves, so one that is executed after its repetition, when later times are promised, does nothing.
   */
  public void publish(long token, String time, String completion) throws TimelineRefusedException {
    Txn.Result now = definite("read", Txn.when().then(Txn.Op.get(keys.instant(time))).then(Txn.Op.get(keys.clock())));
    KeyValue seen = now.one(0);
    KeyValue clock = now.one(1);
    if (seen == null || !isPendingOfMine(seen)) { // I7; Abandoned is the owner's own word that it will not publish (F4)
      log.line("publish").with("instant", time).with("token", token).with("detail", String.valueOf(seen)).write(0, false);
      throw ErrorCode.NOT_PENDING.refusal("instant " + time + " is not Pending for incarnation " + me.inc + ": " + seen);
    }
    Txn txn =
        Txn.when()
            .createRevision(keys.lock(), token) // I1, I3
            .modRevision(keys.instant(time), seen.modRevision()) // mine and Pending, as just read
            .absent(keys.fence(me.inc)) // I2
            .modRevision(keys.clock(), clock == null ? 0 : clock.modRevision()) // F38: not twice
            .then(Txn.Op.put(keys.clock(), clockJson(completion), 0)) // I10
            .otherwise(Txn.Op.get(keys.lock()))
            .otherwise(Txn.Op.get(keys.fence(me.inc)))
            .otherwise(Txn.Op.get(keys.instant(time)))
            .otherwise(Txn.Op.get(keys.clock()));
    Txn.Result r = definite("publish", txn);
    KeyValue moved = r.succeeded ? null : r.one(3);
    // Nobody else moves the clock under this token: it stands at this time because a request was executed whose answer is lost.
    boolean before = moved != null && completion.equals(clockValue(moved));
    long revision = before ? moved.modRevision() : r.revision;
    log.line("publish").with("instant", time).with("token", token).with("detail", completion).write(revision, r.succeeded || before);
    if (r.succeeded) {
      return;
    }
    requireNotFenced(r.one(1));
    requireToken(r.one(0), token);
    if (!before || r.one(2) == null || r.one(2).modRevision() != seen.modRevision()) {
      throw ErrorCode.NOT_PENDING.refusal("instant " + time + " or the clock changed while it was published: " + r.one(2) + ", " + moved);
    }
  }

  /** Declares that this incarnation will never publish the instant. False = it is not ours to abandon. */
  public boolean abandon(String time) {
    while (true) {
      KeyValue seen = definite("read", Txn.when().then(Txn.Op.get(keys.instant(time)))).one(0);
      if (seen == null || !isOwner(Json.parse(seen.value()))) {
        return false;
      }
      JsonNode record = Json.parse(seen.value());
      if ("Abandoned".equals(Json.text(record, "state"))) {
        return true;
      }
      String value = me.instantRecord(Json.text(record, "action"), "Abandoned").toString();
      Txn txn = Txn.when().modRevision(keys.instant(time), seen.modRevision()).then(Txn.Op.put(keys.instant(time), value, 0));
      Txn.Result r = definite("abandon", txn);
      log.line("abandon").with("instant", time).write(r.revision, r.succeeded);
      if (r.succeeded) {
        return true;
      }
    }
  }

  /** Makes this incarnation the one executor of a service instant (F3, I12). */
  public boolean claim(String time, String previousOwner) {
    Txn.Result now =
        definite(
            "read",
            Txn.when()
                .then(Txn.Op.get(keys.instant(time)))
                .then(Txn.Op.get(keys.settle(previousOwner))));
    KeyValue seen = now.one(0);
    if (seen == null) {
      return false;
    }
    JsonNode record = Json.parse(seen.value());
    if (me.inc.equals(executor(record))) {
      return true;
    }
    if (!previousOwner.equals(executor(record)) || !isSettled(now.one(1))) {
      log.line("claim").with("instant", time).with("detail", "owner " + executor(record) + " is not settled").write(now.revision, false);
      return false;
    }
    String value = ((ObjectNode) record).put("claimedBy", me.inc).toString();
    Txn txn =
        Txn.when()
            .modRevision(keys.instant(time), seen.modRevision())
            .absent(keys.fence(me.inc))
            .then(Txn.Op.put(keys.instant(time), value, 0))
            .otherwise(Txn.Op.get(keys.instant(time)));
    Txn.Result r = definite("claim", txn);
    boolean mine = r.succeeded || (r.one(0) != null && me.inc.equals(executor(Json.parse(r.one(0).value()))));
    log.line("claim").with("instant", time).write(r.revision, mine);
    return mine;
  }

  /** Pending instants that this incarnation owns or has claimed. */
  public List<String> pendingInstants() {
    List<String> pending = new ArrayList<>();
    String prefix = keys.instant("");
    for (KeyValue kv : definite("read", Txn.when().then(Txn.Op.range(prefix))).reads.get(0)) {
      if (isPendingOfMine(kv)) {
        pending.add(kv.key().substring(prefix.length()));
      }
    }
    return pending;
  }

  /** What the precedence is told from, in one read: registrations, heartbeats, instants. */
  public Precedence precedence() {
    Txn txn =
        Txn.when()
            .then(Txn.Op.range(keys.writer("")))
            .then(Txn.Op.range(keys.alive("")))
            .then(Txn.Op.range(keys.instant("")));
    return new Precedence(keys, definite("read", txn));
  }

  /** False = fenced: the registration is the operator's to remove. */
  public boolean cleanExit() {
    Txn txn =
        Txn.when()
            .absent(keys.fence(me.inc))
            .then(Txn.Op.delete(keys.alive(me.inc)))
            .then(Txn.Op.delete(keys.writer(me.inc)));
    Txn.Result r = definite("clean-exit", txn);
    log.line("clean-exit").write(r.revision, r.succeeded);
    return r.succeeded;
  }

  // ---- rules

  private boolean isPendingOfMine(KeyValue kv) {
    JsonNode record = Json.parse(kv.value());
    return "Pending".equals(Json.text(record, "state")) && me.inc.equals(executor(record));
  }

  private boolean isOwner(JsonNode record) {
    return me.inc.equals(executor(record));
  }

  /** The one incarnation that may execute and publish the instant. */
  static String executor(JsonNode record) {
    String claimed = Json.text(record, "claimedBy");
    return claimed.isEmpty() ? Json.text(record, "inc") : claimed;
  }

  /**
   * Asked of an owner that an instant names. Without a settle record nothing is known of it, whether or not it is registered: nobody leaves
   * with something Pending (F38), and no record of settling goes while an instant names its incarnation. So somebody has removed keys (F70).
   */
  private static boolean isSettled(KeyValue settle) {
    if (settle == null) {
      return false;
    }
    String phase = Json.text(Json.parse(settle.value()), "phase");
    return "RollingBack".equals(phase) || "Swept".equals(phase) || "Settled".equals(phase);
  }

  private void requireToken(KeyValue lock, long token) throws TimelineRefusedException {
    if (lock == null || lock.createRevision() != token) {
      throw ErrorCode.TOKEN.refusal("the lock is no longer held under token " + token + ": " + lock);
    }
  }

  private void requireNotFenced(KeyValue fence) throws TimelineRefusedException {
    if (fence != null) {
      throw ErrorCode.FENCED.refusal("incarnation " + me.inc + " is fenced: " + fence.value());
    }
  }

  private static String clockJson(String value) {
    return Json.object().put("value", value).toString();
  }

  private static String clockValue(KeyValue clock) {
    return clock == null ? null : Json.text(Json.parse(clock.value()), "value");
  }

  private Txn.Result definite(String name, Txn txn) {
    return definite.of(name, txn);
  }

  private Txn.Result repeat(String name, Txn txn) throws EtcdException {
    return definite.repeat(name, txn);
  }

  private static RuntimeException unexpected(String name, EtcdException e) {
    return DefiniteTxn.unexpected(name, e);
  }
}
