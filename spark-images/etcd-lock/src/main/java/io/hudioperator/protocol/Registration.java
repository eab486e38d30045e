package io.hudioperator.protocol;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.ProtocolLog;
import io.hudioperator.contract.TableKeys;
import io.hudioperator.etcd.EtcdClient;
import io.hudioperator.etcd.EtcdException;
import io.hudioperator.etcd.KeyValue;
import io.hudioperator.etcd.Txn;

/**
 * The transactions of an incarnation's own keys, whether or not it holds the lock: its
 * registration, its heartbeat, its tickets. Names and compares are those of protocol.json. {@code
 * alive} is the next value of the heartbeat; putting it moves the key's revision.
 */
public final class Registration {
    private final EtcdClient etcd;
    private final TableKeys keys;
    private final Identity me;
    private final ProtocolLog log;
    private final DefiniteTxn definite;

    public Registration(EtcdClient etcd, TableKeys keys, Identity me, ProtocolLog log, DefiniteTxn definite) {
        this.etcd = etcd;
        this.keys = keys;
        this.me = me;
        this.log = log;
        this.definite = definite;
    }

    /**
     * Registers on a fresh lease and returns the revision of {@code alive}. After a lost answer the
     * caller revokes the lease, which resolves the outcome (etcd rejects a late request as a whole,
     * F23), and tries again with another lease.
     */
    long register(String alive, long lease) throws EtcdException {
        Txn.Result r = etcd.txn(Txn.when()
                .exists(keys.admit(me.attempt))
                .absent(keys.fence(me.inc)) // I2
                .then(Txn.Op.put(keys.writer(me.inc), me.registration(), 0))
                .then(Txn.Op.put(keys.alive(me.inc), alive, lease))
                .otherwise(Txn.Op.get(keys.fence(me.inc))));
        log.line("register").with("attempt", me.attempt).write(r.revision, r.succeeded);
        if (r.succeeded) {
            return r.revision;
        }
        if (r.one(0) != null) {
            throw ErrorCode.FENCED.exception("incarnation " + me.inc + " is fenced: " + reason(r.one(0)));
        }
        throw ErrorCode.NOT_ADMITTED.exception(
                "attempt " + me.attempt + " is not admitted to table " + keys.tablePrefix());
    }

    /**
     * Updates the registration: the session has to begin before the Spark application id is known.
     */
    public void update() {
        Txn txn = Txn.when()
                .absent(keys.fence(me.inc))
                .exists(keys.writer(me.inc))
                .then(Txn.Op.put(keys.writer(me.inc), me.registration(), 0));
        Txn.Result r = definite.of("register", txn);
        log.line("register").with("detail", "appId " + me.appId).write(r.revision, r.succeeded);
    }

    /**
     * Puts {@code alive}: after a lost lease, and to make every earlier acquire of ours impossible.
     * Returns its revision, or -1 when this incarnation is fenced or its registration is gone; it
     * may then never act again (I2).
     */
    long keepalive(String alive, long lease) throws EtcdException {
        Txn txn = Txn.when()
                .absent(keys.fence(me.inc)) // I2
                .exists(keys.writer(me.inc))
                .then(Txn.Op.put(keys.alive(me.inc), alive, lease));
        Txn.Result r = definite.repeat("keepalive", txn);
        log.line("keepalive").write(r.revision, r.succeeded);
        return r.succeeded ? r.revision : -1;
    }

    /**
     * Reads the keys that the heartbeat needs: fence, writer, alive, and the tickets of this
     * incarnation.
     */
    Txn.Result readSelf() throws EtcdException {
        return etcd.txn(Txn.when()
                .then(Txn.Op.get(keys.fence(me.inc)))
                .then(Txn.Op.get(keys.writer(me.inc)))
                .then(Txn.Op.get(keys.alive(me.inc)))
                .then(Txn.Op.range(keys.queue(me.inc + "-"))));
    }

    /** Gives up a place in the queue. The heartbeat repeats this when it has no answer. */
    void leave(String ticket) {
        try {
            etcd.txn(Txn.when().then(Txn.Op.delete(keys.queue(ticket))));
        } catch (EtcdException e) {
            log.line("leave").with("key", ticket).with("detail", e.getMessage()).write(0, false);
        }
    }

    /**
     * Returns false when the incarnation is fenced: only the operator may then remove the
     * registration.
     */
    public boolean cleanExit() {
        Txn txn = Txn.when()
                .absent(keys.fence(me.inc))
                .then(Txn.Op.delete(keys.alive(me.inc)))
                .then(Txn.Op.delete(keys.writer(me.inc)));
        Txn.Result r = definite.of("clean-exit", txn);
        log.line("clean-exit").write(r.revision, r.succeeded);
        return r.succeeded;
    }

    /** Why an incarnation is fenced, in one word of the contract; its fence is not null. */
    static String reason(KeyValue fence) {
        return Json.text(Json.parse(fence.value()), "reason");
    }
}
