package io.hudioperator.protocol;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InstantTime;
import io.hudioperator.contract.ProtocolLog;
import io.hudioperator.contract.TableKeys;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.etcd.EtcdClient;
import io.hudioperator.etcd.EtcdException;
import io.hudioperator.etcd.Pause;
import io.hudioperator.etcd.Txn;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * Repeats a transaction until it has an answer. A transaction without an answer is sent again, so
 * only idempotent transactions may be passed here. Waiting ends with {@code HUDIOP-ETCD-SILENT}
 * when {@code gaveUp} is true.
 */
public final class DefiniteTxn {
    private static final long RETRY_MILLIS = 100;
    private static final long MAX_RETRY_MILLIS = 1000;
    private static final long REFUSED_AGAIN_MILLIS = 500;

    private final EtcdClient etcd;
    private final TableKeys keys;
    private final ProtocolLog log;
    private final BooleanSupplier gaveUp;

    public DefiniteTxn(EtcdClient etcd, TableKeys keys, ProtocolLog log, BooleanSupplier gaveUp) {
        this.etcd = etcd;
        this.keys = keys;
        this.log = log;
        this.gaveUp = gaveUp;
    }

    /** Returns the answer. Throws when etcd refuses the transaction. */
    Txn.Result of(String name, Txn txn) {
        try {
            return repeat(name, txn);
        } catch (EtcdException e) {
            throw unexpected(name, e);
        }
    }

    /**
     * {@link #of} for a transaction that moves the table's clock. The gateway refuses a time that
     * is ahead of everybody's (F382). It is asked again for {@link WallClock#TOLERANCE_MILLIS}, as
     * clocks are compared to within that; then the refusal is final. A request of the same
     * transaction that had no answer before may still be applied: it leaves a record without a
     * file, or a time that nothing has.
     */
    Txn.Result promising(String name, Txn txn) throws TimelineRefusedException {
        long begin = System.nanoTime();
        while (true) {
            try {
                return repeat(name, txn);
            } catch (EtcdException e) {
                if (e.outcome() != EtcdException.Outcome.CLOCK_AHEAD) {
                    throw unexpected(name, e);
                }
                if (System.nanoTime() - begin >= TimeUnit.MILLISECONDS.toNanos(WallClock.TOLERANCE_MILLIS)) {
                    throw ErrorCode.CLOCK_AHEAD.refusal(WallClock.refused("the wall clock of host " + WallClock.host()
                            + " says " + InstantTime.now() + ", and " + name + " was refused: " + e.getMessage()));
                }
                Pause.millis(REFUSED_AGAIN_MILLIS);
            }
        }
    }

    /**
     * Returns the answer and leaves a refusal to the caller. Logs only the first attempt without an
     * answer.
     */
    Txn.Result repeat(String name, Txn txn) throws EtcdException {
        for (long pause = RETRY_MILLIS; ; pause = Math.min(2 * pause, MAX_RETRY_MILLIS)) {
            try {
                return etcd.txn(txn);
            } catch (EtcdException e) {
                if (e.outcome() != EtcdException.Outcome.UNKNOWN) {
                    throw e;
                }
                if (pause == RETRY_MILLIS) {
                    log.line(name)
                            .with("detail", "no answer: " + e.getMessage())
                            .write(0, false);
                }
                if (gaveUp.getAsBoolean()) {
                    throw ErrorCode.ETCD_SILENT.exception(
                            "no answer to " + name + " of table " + keys.tablePrefix() + ": " + e.getMessage(), e);
                }
                Pause.millis(pause);
            }
        }
    }

    static RuntimeException unexpected(String name, EtcdException e) {
        return e.code().exception("etcd refused " + name + ": " + e.getMessage(), e);
    }
}
