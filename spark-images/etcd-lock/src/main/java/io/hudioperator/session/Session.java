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
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.hudi.exception.HoodieException;

/**
 * One incarnation at one table: registration, heartbeat, the lock when it is held, the instants that are its own. There is one for each
 * (JVM, table); threads of the JVM take turns.
 */
public final class Session {
  private static final Set<String> INGESTION = Set.of("commit", "deltacommit", "replacecommit");
  private static final String REPLACE = "replacecommit";
  private static final String RESTORE = "restore";
  private static final Set<String> DESTRUCTIVE = Set.of("rollback", RESTORE);
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
  private final InstantProtocol instants;
  private final ProtocolLog log;
  private final EtcdFacade facade;
  private final Semaphore turn = new Semaphore(1, true);
  /** Held while an instant is given up, and while one gets leave to be published: it is one or the other. */
  private final Object word = new Object();
  private final Set<String> pending = ConcurrentHashMap.newKeySet();
  private volatile InsertRule insertRule = InsertRule.KEY; // as the gate has said it last
  private final Set<String> savepoints = ConcurrentHashMap.newKeySet();
  private final LostExecutors lostExecutors = new LostExecutors();
  private final TableReads reads = new TableReads();
  private final Set<String> givenUp = ConcurrentHashMap.newKeySet();
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
    this.instants = new InstantProtocol(keys, me, log, definite);
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
    return me.isWriter() && yieldsLeft > 0 ? instants.precedence().pendingAhead(me.priority) : Set.of();
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
    protocol.release(lock.token, lostExecutors.untouched(completed)); // when this throws the lock may still be ours: nobody here takes it again
    lostExecutors.forget(completed);
    pending.removeAll(completed);
    savepoints.removeAll(completed);
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

  // ---- timeline rules, asked by TimelineGuard

  private HeldLock requireLock(String what) throws TimelineRefusedException {
    HeldLock lock = held;
    if (liveness.state() == Liveness.State.FENCED) { // I2
      throw ErrorCode.FENCED.refusal("incarnation " + me.inc + " is fenced: " + what);
    }
    if (lock == null) {
      throw ErrorCode.NOT_OWNER.refusal("the lock of table " + tableId + " is not held: " + what);
    }
    return lock;
  }

  public boolean ownsPending(String instant) {
    return pending.contains(instant) && liveness.state() != Liveness.State.FENCED;
  }

  /** Instants that this process has begun, or claimed, and neither completed nor given up. */
  public Set<String> pending() {
    return Collections.unmodifiableSet(pending);
  }

  /** This process will not complete the instant, and has said so. */
  public boolean hasGivenUp(String instant) {
    return givenUp.contains(instant);
  }

  /** Before {@code <t>.<action>.requested}: the record and the clock come first (F12, I10). */
  public void beforeRequested(String instant, String action) throws TimelineRefusedException {
    if (me.isWriter() && DESTRUCTIVE.contains(action)) { // I7: what is rolled back is for the table's agent to decide
      throw ErrorCode.NOT_OWNER.refusal("a writer may not create a " + action + ": " + instant);
    }
    HeldLock lock = requireLock("create " + instant + "." + action + ".requested");
    requireTask(lock, instant, action);
    synchronized (lock) {
      lock.requireOpen();
      if (pending.contains(instant)) {
        instants.requireHeld(lock.token); // recorded already: the file is written again
        return;
      }
      if (!InstantTime.isAfter(instant, lock.clock())) { // I10
        throw ErrorCode.CLOCK_NOT_PAST.refusal("instant " + instant + " is not past the table's clock " + lock.clock());
      }
      lostExecutors.begins(instant);
      instants.recordInstant(lock.token, instant, action, RESTORE.equals(action) ? lock.gateRevision() : 0);
      lock.promised(instant);
      reads.begun(instant);
      pending.add(instant);
    }
  }

  /**
   * Before Hudi keeps a completed commit by a savepoint, which bears the commit's own time: the instant is recorded once more, by the agent,
   * under a lock that was acquired behind the closed gate. The clock does not move before the savepoint's completion time (I10).
   */
  public void beginSavepoint(String instant) throws TimelineRefusedException {
    String what = "begin the savepoint of " + instant;
    HeldLock lock = requireLock(what);
    if (me.isWriter() || !lock.isGateClosed()) {
      throw ErrorCode.NOT_OWNER.refusal("only the agent behind the closed gate may " + what);
    }
    synchronized (lock) {
      lock.requireOpen();
      instants.recordInstant(lock.token, instant, InstantProtocol.SAVEPOINT, 0);
      savepoints.add(instant);
      pending.add(instant);
    }
  }

  /** Before Hudi takes completed commits back: the agent, under a lock acquired while the gate was closed for this restore, which must still stand (F8). */
  public void beginRestore(String nonce) throws TimelineRefusedException {
    HeldLock lock = requireLock("begin restore " + nonce);
    if (me.isWriter() || !lock.isGateRestoring(nonce)) {
      throw ErrorCode.NOT_OWNER.refusal("only the agent behind the gate that is closed for it may begin restore " + nonce);
    }
    lock.restores();
  }

  private static void requireTask(HeldLock lock, String instant, String action) throws TimelineRefusedException {
    if (RESTORE.equals(action) && !lock.mayRestore()) { // I8
      throw ErrorCode.NOT_OWNER.refusal("a table is restored by its agent on request only: " + instant);
    }
  }

  /** Before a completed file goes: an acknowledged commit stays, whatever a writer does (I8). */
  public void beforeCompletedRemoved(String what) throws TimelineRefusedException {
    requireHeldNow(what);
    if (me.isWriter()) {
      throw ErrorCode.NOT_OWNER.refusal("a writer may not remove a completed instant: " + what);
    }
  }

  /** May the inflight file of a savepoint be written? Only after {@link #beginSavepoint}. */
  public boolean ownsSavepoint(String instant) {
    return savepoints.contains(instant) && ownsPending(instant);
  }

  /** Before the completed file is created or renamed, and once more before the bytes go out. */
  public Publication beforeCompleted(String instant, String completion, String action, Publication.Listing listing)
      throws TimelineRefusedException {
    HeldLock lock = requireLock("complete " + instant);
    synchronized (word) {
      return publication(lock, instant, completion, action, listing);
    }
  }

  private Publication publication(HeldLock lock, String instant, String completion, String action, Publication.Listing listing)
      throws TimelineRefusedException {
    requireTask(lock, instant, action);
    synchronized (lock) {
      lock.requireOpen();
      if (savepoints.contains(instant) != InstantProtocol.SAVEPOINT.equals(action)) { // it bears the time of a commit that is completed (I3)
        throw ErrorCode.NOT_OWNER.refusal("instant " + instant + " is not recorded for a " + action);
      }
      boolean competes = me.isWriter() ? INGESTION.contains(action) : REPLACE.equals(action); // a clustering replaces what writers change
      if (competes && !lock.mayCommit(instant)) { // I9
        throw ErrorCode.OPTION.refusal(
            "instant " + instant + " was not checked for conflicts under this lock: hoodie.write.concurrency.mode and "
                + "hoodie.write.lock.conflict.resolution.strategy are owned by the operator");
      }
      boolean promised = lock.hasPromised(instant, completion);
      if (!promised && !InstantTime.isAfter(completion, lock.clock())) { // I10
        throw ErrorCode.CLOCK_NOT_PAST.refusal("completion time " + completion + " of " + instant + " is not past the table's clock " + lock.clock());
      }
      instants.publish(lock.token, instant, completion);
      lock.promised(completion);
      return lock.publication(instant, completion, listing);
    }
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

  /** For every other change: the lock, as etcd sees it now. */
  public void requireHeldNow(String what) throws TimelineRefusedException {
    instants.requireHeld(requireLock(what).token);
  }

  /** The lock as this session sees it: enough where a later check follows. */
  public void requireHeldHere(String what) throws TimelineRefusedException {
    requireLock(what);
  }

  // ---- for the runtime

  /**
   * Declares that the instant will never be completed: the owner's word is what allows its rollback. False = not ours to abandon, or its
   * completed file has been sent under the lock that is held now: only the release finds out what became of it (F1, I3).
   */
  public boolean abandon(String instant) {
    synchronized (word) { // nothing is sent between the look and the word
      HeldLock lock = held;
      if (lock != null && lock.hasPublished(instant)) {
        return false;
      }
      boolean abandoned = instants.abandon(instant);
      pending.remove(instant);
      givenUp.add(instant);
      return abandoned;
    }
  }

  /** As {@link #abandon}, for an own record whose instant is gone or completed by a fresh listing; the agent looks for itself and removes it. */
  public boolean forget(String instant) {
    return abandon(instant);
  }

  /** Makes this session the only executor of a service instant; false = it belongs to somebody who is not settled. */
  public boolean claim(String instant, String previousOwnerInc) {
    boolean claimed = instants.claim(instant, previousOwnerInc);
    if (claimed) {
      givenUp.remove(instant);
      pending.add(instant);
    }
    return claimed;
  }

  /** Pending instants that this session owns or has claimed, as etcd has them. */
  public List<String> pendingInstants() {
    return instants.pendingInstants();
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
      if (protocol.acquireUnknown() || !instants.pendingInstants().isEmpty()) {
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
