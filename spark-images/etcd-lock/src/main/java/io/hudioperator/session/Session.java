package io.hudioperator.session;

import com.fasterxml.jackson.databind.JsonNode;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InstantTime;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.ProtocolLog;
import io.hudioperator.contract.TableKeys;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.etcd.EtcdClient;
import io.hudioperator.etcd.EtcdFacade;
import io.hudioperator.etcd.EtcdSettings;
import io.hudioperator.etcd.KeyValue;
import io.hudioperator.etcd.Pause;
import io.hudioperator.protocol.Acquisition;
import io.hudioperator.protocol.DefiniteTxn;
import io.hudioperator.protocol.Durations;
import io.hudioperator.protocol.Gate;
import io.hudioperator.protocol.HeldLock;
import io.hudioperator.protocol.Identity;
import io.hudioperator.protocol.InsertRule;
import io.hudioperator.protocol.InstantProtocol;
import io.hudioperator.protocol.Liveness;
import io.hudioperator.protocol.LockProtocol;
import io.hudioperator.protocol.Publication;
import io.hudioperator.protocol.Registration;
import io.hudioperator.protocol.Silence;
import io.hudioperator.protocol.TableStorage;
import io.hudioperator.protocol.WallClock;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.hudi.exception.HoodieException;

/**
 * One incarnation at one table: registration, heartbeat, the lock when it is held, the instants that are its own. There is one for each
 * (JVM, table); threads of the JVM take turns.
 */
public final class Session {
  private static final long POLL_MILLIS = 20;
  private static final long RELIST_MILLIS = 1000;

  private final Map<String, String> settings;
  private final Consumer<Session> whenClosed;
  private final Identity me;
  private final TableKeys keys;
  private final String tableId;
  private final String basePath;
  private final EtcdClient etcd;
  private final Liveness liveness;
  private final Registration registration;
  private final LockProtocol protocol;
  private final InstantProtocol instantProtocol;
  private final OwnInstants instants;
  private final ProtocolLog log;
  private final EtcdFacade facade;
  private final Semaphore turn = new Semaphore(1, true);
  private volatile InsertRule insertRule = InsertRule.KEY; // as the gate has said it last
  private final TableReads reads = new TableReads();
  private volatile HeldLock held; // who of this process has it: HeldLock.isHere
  private volatile boolean acquiring;
  private volatile boolean authorityVerified;
  private volatile boolean timelineSeen;
  private volatile String lastConflict;
  private volatile int yieldsLeft;
  private volatile String lastOwner = "";
  private volatile long lastLockWait;

  /** {@code whenClosed} is told of a clean exit. */
  Session(
      Map<String, String> settings,
      Map<String, String> env,
      EtcdClient etcd,
      EtcdSettings etcdSettings,
      Liveness.Halt halt,
      Consumer<Session> whenClosed) {
    this.settings = Map.copyOf(settings);
    this.whenClosed = whenClosed;
    this.tableId = required("tableId");
    this.basePath = required("basePath");
    this.me = new Identity(settings, env);
    this.keys = new TableKeys(etcdSettings.prefix, tableId);
    this.etcd = etcd;
    this.log = new ProtocolLog(tableId, me.inc, me.role);
    this.facade = new EtcdFacade(etcd, keys.prefix(), keys.tablePrefix(), keys.controlPrefix());
    KeyValue gate = facade.get(keys.gate());
    JsonNode rules = Json.parse(gate == null ? "" : gate.value());
    Gate.requireHudi(rules, Gate.hudiVersion()); // before it registers
    Durations durations = Durations.of(settings, rules);
    Silence silence = new Silence(System::nanoTime);
    this.liveness = new Liveness(etcd, me, durations, silence, halt);
    DefiniteTxn definite = new DefiniteTxn(etcd, keys, log, liveness::silentTooLong);
    this.registration = new Registration(etcd, keys, me, log, definite);
    this.protocol = new LockProtocol(etcd, keys, me, log, definite);
    this.instantProtocol = new InstantProtocol(keys, me, log, definite);
    this.instants = new OwnInstants(tableId, me, liveness, instantProtocol, this::heldNow, reads);
  }

  private String required(String name) {
    String value = settings.get(name);
    if (value == null || value.isEmpty()) {
      throw ErrorCode.OPTION.exception("setting " + name + " is missing");
    }
    return value;
  }

  void start() {
    liveness.start(registration, "hudi-operator-heartbeat-" + tableId);
  }

  // ---- who and how

  public String inc() {
    return me.inc;
  }

  public String attempt() {
    return me.attempt;
  }

  public String role() {
    return me.role;
  }

  public String appId() {
    return me.appId;
  }

  public String tableId() {
    return tableId;
  }

  public String basePath() {
    return basePath;
  }

  /** LIVE, LOST (etcd silent or lease lost; it comes back), FENCED or CLOSED. */
  public String state() {
    return liveness.state().name();
  }

  public EtcdFacade etcd() {
    return facade;
  }

  /** The Spark application id, for the registration: executors are proven dead by it. */
  public void setAppId(String appId) {
    me.appId = appId == null ? "" : appId;
    registration.update();
  }

  public boolean holdsLock() {
    return held != null;
  }

  /** Milliseconds that the last acquire waited. */
  public long lastLockWait() {
    return lastLockWait;
  }

  /** How many of the next commits may give way to writers of higher priority. The runtime says it before each write; without it none does. */
  public void mayYield(int times) {
    yieldsLeft = times;
  }

  /** Pending instants that a commit of this session gives way to; none when it may not yield. */
  public Set<String> pendingAhead() {
    return me.isWriter() && yieldsLeft > 0 ? instantProtocol.precedence().pendingAhead(me.priority) : Set.of();
  }

  /** JSON of the last commit that was refused for a conflict; null = none. */
  public String lastConflict() {
    return lastConflict;
  }

  public void conflict(String json) {
    lastConflict = json;
  }

  /** Who stood in the way when the lock was waited for last. */
  public String lastOwner() {
    return lastOwner;
  }

  // ---- lock

  /** False only when time is over. Fenced, not admitted, no gate, clock behind: HoodieException, which Hudi does not retry. */
  public boolean acquire(long nanos, TableStorage storage) throws InterruptedException {
    long start = System.nanoTime();
    if (!turn.tryAcquire(nanos, TimeUnit.NANOSECONDS)) {
      lastOwner = "another thread of this process";
      return false;
    }
    boolean acquired = false;
    acquiring = true;
    try (Acquisition acquisition = new Acquisition(etcd, protocol, keys, me, liveness, this::gateRead)) {
      LockProtocol.Acquired lock = acquisition.run(nanos - (System.nanoTime() - start));
      lastOwner = acquisition.lastOwner() == null ? "" : acquisition.lastOwner().value();
      if (lock != null) {
        enter(lock, acquisition.gate(), storage);
        acquired = true;
      }
      return acquired;
    } finally {
      lastLockWait = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
      acquiring = false;
      if (!acquired) {
        turn.release();
      }
    }
  }

  private void gateRead(Gate gate) {
    liveness.durations(Durations.of(settings, gate.json()));
  }

  /** What must be true before the lock is used. Anything else gives it back. */
  private void enter(LockProtocol.Acquired lock, Gate gate, TableStorage storage) throws InterruptedException {
    boolean entered = false;
    try {
      String clock = lock.clock == null || lock.clock.isEmpty() ? InstantTime.NONE : lock.clock;
      if (!timelineSeen || InstantTime.NONE.equals(clock)) { // an etcd that was set back has forgotten later times (I10)
        clock = InstantTime.max(clock, storage.latestTime());
        timelineSeen = true;
      }
      if (!InstantTime.NONE.equals(clock)) {
        WallClock.passes(clock, liveness.durations().maxClockSkew); // I10
      }
      if (!authorityVerified && !gate.authority().isEmpty()) {
        authorityVerified = storage.verifyAuthority(tableId, etcd.clusterId(), keys.prefix(), gate.authority());
      }
      held = new HeldLock(lock.token, clock, gate);
      entered = true;
    } catch (IOException e) {
      throw new HoodieException("cannot look at table " + basePath + ": " + e.getMessage(), e);
    } finally {
      if (!entered) {
        protocol.release(lock.token, List.of());
      }
    }
  }

  /**
   * Gives the lock back. While the outcome of a publication is unknown it waits for the drain and looks at the timeline first: the file
   * may still be on the wire although the store's client has given up (F1, I1).
   */
  public void release() {
    HeldLock lock = held;
    if (lock == null) {
      return;
    }
    lock.beginRelease();
    if (!lock.unknown().isEmpty() || !lock.unanswered().isEmpty()) {
      log.line("drain").with("token", lock.token).with("detail", lock.unknownInstants()).write(0, true);
      lock.unanswered().forEach(file -> System.err.println("before the lock is released: no answer about " + file));
      Pause.millis(liveness.durations().drain * 1000L); // the wait before release
      lookUntilKnown(lock);
    }
    List<String> completed = lock.completed();
    protocol.release(lock.token, instants.untouched(completed)); // when this throws the lock may still be ours: nobody here takes it again
    instants.released(completed);
    held = null;
    turn.release();
  }

  private void lookUntilKnown(HeldLock lock) {
    while (!lock.unknown().isEmpty()) {
      for (Publication p : lock.unknown()) {
        try {
          p.look();
          log.line("drained").with("instant", p.instant).with("detail", p.outcome().name()).write(0, true);
        } catch (IOException e) { // never decide on a failed listing (I11)
          log.line("drained").with("instant", p.instant).with("detail", "cannot list: " + e.getMessage()).write(0, false);
        }
      }
      if (!lock.unknown().isEmpty()) {
        if (liveness.state() == Liveness.State.FENCED) {
          throw ErrorCode.FENCED.exception("fenced while a publication was unknown: the lock stays, settling drains");
        }
        Pause.millis(RELIST_MILLIS);
      }
    }
  }

  /** The lock that is held now, whoever asks; null = none. Its release waits for what is sent under it. */
  public HeldLock heldNow() {
    return held;
  }

  /** What the threads of this process have read of the table. */
  public TableReads reads() {
    return reads;
  }

  // ---- instants

  /** The rules for this session's instants, which the storage wrapper asks. */
  public OwnInstants instants() {
    return instants;
  }

  /** False for an agent. */
  public boolean isWriter() {
    return me.isWriter();
  }

  /** What the gate said last about inserts. */
  public InsertRule insertRule() {
    return insertRule;
  }

  /** Hudi asks for conflicts of this instant now, under the lock. Returns what the table's gate says about inserts. */
  public InsertRule conflictsChecked(String instant) {
    HeldLock lock = held;
    insertRule = lock == null ? InsertRule.KEY : lock.conflictsChecked(instant);
    return insertRule;
  }

  /** A writer's lock cycle in the non-blocking mode: {@link #commitsChecked} is asked for before anything is published. */
  public boolean isNonBlockingCommit() {
    HeldLock lock = held;
    return lock != null && lock.isNonBlocking() && me.isWriter();
  }

  /** {@code CommitChecks} hold under the lock that is held now. */
  public void commitsChecked() {
    HeldLock lock = held;
    if (lock != null) {
      lock.commitsChecked();
    }
  }

  // ---- for the runtime

  /**
   * Declares that the instant will never be completed: the owner's word is what allows its rollback. False = not ours to abandon, or its
   * completed file has been sent under the lock that is held now: only the release finds out what became of it (F1, I3).
   */
  public boolean abandon(String instant) {
    return instants.abandon(instant);
  }

  /** Makes this session the only executor of a service instant; false = it belongs to somebody who is not settled. */
  public boolean claim(String instant, String previousOwnerInc) {
    return instants.claim(instant, previousOwnerInc);
  }

  /**
   * Before Hudi keeps a completed commit by a savepoint, which bears the commit's own time: the instant is recorded once more, by the agent,
   * under a lock that was acquired behind the closed gate. The clock does not move before the savepoint's completion time (I10).
   */
  public void beginSavepoint(String instant) throws TimelineRefusedException {
    instants.beginSavepoint(instant);
  }

  /** Before Hudi takes completed commits back: the agent, under a lock acquired while the gate was closed for this restore, which must still stand (F8). */
  public void beginRestore(String nonce) throws TimelineRefusedException {
    instants.beginRestore(nonce);
  }

  /** As {@link #abandon}, for an own record whose instant is gone or completed by a fresh listing; the agent looks for itself and removes it. */
  public boolean forget(String instant) {
    return abandon(instant);
  }

  /** Pending instants that this session owns or has claimed, as etcd has them. */
  public List<String> pendingInstants() {
    return instantProtocol.pendingInstants();
  }

  /** The lock is held, or an acquire, a publication or a release has no definite outcome yet. */
  public boolean unresolved() {
    return held != null || acquiring || protocol.acquireUnknown();
  }

  /** Waits until nothing is unresolved; returns whether that is so. */
  public boolean awaitQuiet(long millis) {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
    while (unresolved() && System.nanoTime() - end < 0) {
      Pause.millis(POLL_MILLIS);
    }
    return !unresolved();
  }

  /**
   * Clean exit: with no lock, no unknown outcome and no Pending instant the registration is removed, and the connection to etcd closed.
   * Otherwise false: it stays, and the operator settles this incarnation.
   */
  public boolean close() {
    if (liveness.state() == Liveness.State.CLOSED) {
      return true;
    }
    if (liveness.state() == Liveness.State.FENCED || !turn.tryAcquire()) {
      return false;
    }
    try {
      if (protocol.acquireUnknown() || !instantProtocol.pendingInstants().isEmpty()) {
        return false;
      }
      liveness.leaves();
      if (!registration.cleanExit()) {
        return false;
      }
      liveness.close();
      whenClosed.accept(this);
      etcd.close();
      return true;
    } finally {
      turn.release();
    }
  }
}
