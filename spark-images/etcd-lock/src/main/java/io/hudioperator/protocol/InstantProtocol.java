package io.hudioperator.protocol;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.ProtocolLog;
import io.hudioperator.contract.TableKeys;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.contract.Words.InstantState;
import io.hudioperator.contract.Words.Phase;
import io.hudioperator.etcd.KeyValue;
import io.hudioperator.etcd.Txn;
import java.util.ArrayList;
import java.util.List;

/**
 * The transactions of instants: recorded before the requested file exists, published before the
 * completed file is sent, abandoned, claimed. Names and compares are those of protocol.json. Each
 * transaction is repeated until it has an answer, so each is idempotent.
 */
public final class InstantProtocol {
    public static final String SAVEPOINT = "savepoint"; // Hudi's action

    private final TableKeys keys;
    private final Identity me;
    private final ProtocolLog log;
    private final DefiniteTxn definite;

    public InstantProtocol(TableKeys keys, Identity me, ProtocolLog log, DefiniteTxn definite) {
        this.keys = keys;
        this.me = me;
        this.log = log;
        this.definite = definite;
    }

    /** Throws when the lock is no longer held under the token, or this incarnation is fenced. */
    public void requireHeld(long token) throws TimelineRefusedException {
        Txn.Result r =
                definite.of("read", Txn.when().then(Txn.Op.get(keys.lock())).then(Txn.Op.get(keys.fence(me.inc))));
        requireToken(r.one(0), token);
        requireNotFenced(r.one(1));
    }

    /**
     * Records the instant and moves the clock, both before the requested file exists (F12, I10).
     * Throws {@code HUDIOP-CLOCK-AHEAD} when the gateway refuses the time.
     *
     * @param gate revision that the gate must have; 0 for any
     * @return revision of the record
     */
    public long recordInstant(long token, String time, String action, long gate) throws TimelineRefusedException {
        // has the time of a completed commit, which the clock has already passed
        boolean savepoint = SAVEPOINT.equals(action);
        String name = savepoint ? "record-savepoint" : "record-instant";
        Txn txn = Txn.when().createRevision(keys.lock(), token).absent(keys.instant(time)); // I1
        txn = gate == 0 ? txn : txn.modRevision(keys.gate(), gate); // F8
        txn.then(Txn.Op.put(
                keys.instant(time),
                me.instantRecord(action, InstantState.PENDING).toString(),
                0));
        if (!savepoint) {
            txn.then(Txn.Op.put(keys.clock(), TableClock.json(time), 0));
        }
        txn.otherwise(Txn.Op.get(keys.lock())).otherwise(Txn.Op.get(keys.instant(time)));
        Txn.Result r = definite.promising(name, txn);
        log.line(name)
                .with("instant", time)
                .with("token", token)
                .with("detail", action)
                .write(r.revision, r.succeeded);
        if (r.succeeded) {
            return r.revision;
        }
        requireToken(r.one(0), token);
        KeyValue found = r.one(1);
        if (found != null && isPendingOfMine(found)) {
            return found.modRevision();
        }
        throw ErrorCode.NOT_PENDING.refusal(
                "instant " + time + " is already recorded, or its gate has changed: " + found);
    }

    /**
     * Moves the clock to the completion time; called immediately before a completed file is created
     * or renamed into place. Safe to repeat: each request compares the clock that it moves. A
     * request that is executed after its repetition, when later times have been promised, does
     * nothing. Throws {@code HUDIOP-CLOCK-AHEAD} when the gateway refuses the time.
     *
     * @param gate revision that the gate must have; 0 for any
     */
    public void publish(long token, String time, String completion, long gate) throws TimelineRefusedException {
        Txn.Result now = definite.of(
                "read", Txn.when().then(Txn.Op.get(keys.instant(time))).then(Txn.Op.get(keys.clock())));
        KeyValue seen = now.one(0);
        KeyValue clock = now.one(1);
        if (seen == null || !isPendingOfMine(seen)) {
            // I7; Abandoned is the owner's own statement that it will not publish (F4)
            log.line("publish")
                    .with("instant", time)
                    .with("token", token)
                    .with("detail", String.valueOf(seen))
                    .write(0, false);
            throw ErrorCode.NOT_PENDING.refusal(
                    "instant " + time + " is not Pending for incarnation " + me.inc + ": " + seen);
        }
        Txn txn = Txn.when()
                .createRevision(keys.lock(), token) // I1, I3
                .modRevision(keys.instant(time), seen.modRevision()) // still mine and Pending, as just read
                .absent(keys.fence(me.inc)) // I2
                // F38: a late duplicate must not move the clock
                .modRevision(keys.clock(), clock == null ? 0 : clock.modRevision());
        txn = gate == 0 ? txn : txn.modRevision(keys.gate(), gate); // F435
        txn.then(Txn.Op.put(keys.clock(), TableClock.json(completion), 0)) // I10
                .otherwise(Txn.Op.get(keys.lock()))
                .otherwise(Txn.Op.get(keys.fence(me.inc)))
                .otherwise(Txn.Op.get(keys.instant(time)))
                .otherwise(Txn.Op.get(keys.clock()))
                .otherwise(Txn.Op.get(keys.gate()));
        Txn.Result r = definite.promising("publish", txn);
        KeyValue moved = r.succeeded ? null : r.one(3);
        // Nobody else moves the clock under this token. If it is already at this time, an earlier
        // request was executed and its answer was lost.
        boolean before = TableClock.is(moved, completion);
        long revision = before ? moved.modRevision() : r.revision;
        log.line("publish")
                .with("instant", time)
                .with("token", token)
                .with("detail", completion)
                .write(revision, r.succeeded || before);
        if (r.succeeded) {
            return;
        }
        requireNotFenced(r.one(1));
        requireToken(r.one(0), token);
        KeyValue gateNow = r.one(4);
        if (!before && gate != 0 && (gateNow == null || gateNow.modRevision() != gate)) {
            throw ErrorCode.NOT_PENDING.refusal("the gate has changed since savepoint " + time + " was begun");
        }
        if (!before || r.one(2) == null || r.one(2).modRevision() != seen.modRevision()) {
            throw ErrorCode.NOT_PENDING.refusal(
                    "instant " + time + " or the clock changed while it was published: " + r.one(2) + ", " + moved);
        }
    }

    /**
     * Declares that this incarnation will never publish the instant. Returns false when the instant
     * is not ours to abandon.
     */
    public boolean abandon(String time) {
        while (true) {
            KeyValue seen = definite.of("read", Txn.when().then(Txn.Op.get(keys.instant(time))))
                    .one(0);
            InstantRecord record = seen == null ? null : new InstantRecord(seen);
            if (record == null || !isMine(record)) {
                return false;
            }
            if (record.isAbandoned()) {
                return true;
            }
            String value =
                    me.instantRecord(record.action(), InstantState.ABANDONED).toString();
            Txn txn = Txn.when()
                    .modRevision(keys.instant(time), seen.modRevision())
                    .then(Txn.Op.put(keys.instant(time), value, 0));
            Txn.Result r = definite.of("abandon", txn);
            log.line("abandon").with("instant", time).write(r.revision, r.succeeded);
            if (r.succeeded) {
                return true;
            }
        }
    }

    /** Makes this incarnation the only executor of a table service's instant (F3, I12). */
    public boolean claim(String time, String previousOwner) {
        Txn.Result now = definite.of(
                "read", Txn.when().then(Txn.Op.get(keys.instant(time))).then(Txn.Op.get(keys.settle(previousOwner))));
        KeyValue seen = now.one(0);
        if (seen == null) {
            return false;
        }
        InstantRecord record = new InstantRecord(seen);
        if (isMine(record)) {
            return true;
        }
        if (!previousOwner.equals(record.executor()) || !isSettled(now.one(1))) {
            log.line("claim")
                    .with("instant", time)
                    .with("detail", "owner " + record.executor() + " is not settled")
                    .write(now.revision, false);
            return false;
        }
        String value = record.claimedBy(me.inc);
        Txn txn = Txn.when()
                .modRevision(keys.instant(time), seen.modRevision())
                .absent(keys.fence(me.inc))
                .then(Txn.Op.put(keys.instant(time), value, 0))
                .otherwise(Txn.Op.get(keys.instant(time)));
        Txn.Result r = definite.of("claim", txn);
        boolean mine = r.succeeded || (r.one(0) != null && isMine(new InstantRecord(r.one(0))));
        log.line("claim").with("instant", time).write(r.revision, mine);
        return mine;
    }

    /** Pending instants that this incarnation owns or has claimed. */
    public List<String> pendingInstants() {
        List<String> pending = new ArrayList<>();
        String prefix = keys.instant("");
        for (KeyValue kv :
                definite.of("read", Txn.when().then(Txn.Op.range(prefix))).reads.get(0)) {
            if (isPendingOfMine(kv)) {
                pending.add(kv.key().substring(prefix.length()));
            }
        }
        return pending;
    }

    /** The facts that decide precedence, in one read: registrations, heartbeats, instants. */
    public Precedence precedence() {
        Txn txn = Txn.when()
                .then(Txn.Op.range(keys.writer("")))
                .then(Txn.Op.range(keys.alive("")))
                .then(Txn.Op.range(keys.instant("")));
        return new Precedence(keys, definite.of("read", txn));
    }

    private boolean isPendingOfMine(KeyValue kv) {
        InstantRecord record = new InstantRecord(kv);
        return record.isPending() && isMine(record);
    }

    private boolean isMine(InstantRecord record) {
        return me.inc.equals(record.executor());
    }

    /**
     * Whether the owner that an instant names is settled. Without a settle record nothing is known
     * about it, registered or not: no incarnation leaves while it has a Pending instant (F38), and
     * no settle record is deleted while an instant names its incarnation. So a missing record means
     * that somebody has removed keys (F70).
     */
    private static boolean isSettled(KeyValue settle) {
        if (settle == null) {
            return false;
        }
        String phase = Json.text(Json.parse(settle.value()), "phase");
        return Phase.ROLLING_BACK.is(phase) || Phase.SWEPT.is(phase) || Phase.SETTLED.is(phase);
    }

    private void requireToken(KeyValue lock, long token) throws TimelineRefusedException {
        if (lock == null || lock.createRevision() != token) {
            throw ErrorCode.TOKEN.refusal("the lock is no longer held under token " + token + ": " + lock);
        }
    }

    private void requireNotFenced(KeyValue fence) throws TimelineRefusedException {
        if (fence != null) {
            throw ErrorCode.FENCED.refusal("incarnation " + me.inc + " is fenced: " + Registration.reason(fence));
        }
    }
}
