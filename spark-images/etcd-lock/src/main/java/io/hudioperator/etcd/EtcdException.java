package io.hudioperator.etcd;

import io.hudioperator.contract.ErrorCode;

/**
 * One call to etcd that was refused or had no answer. The outcome says whether the call may have
 * been, or may yet be, applied.
 */
public final class EtcdException extends Exception {
    private static final long serialVersionUID = 1L;

    public enum Outcome {
        /** Not applied, and never will be. */
        REFUSED,
        /** Not applied: the call names a lease that does not exist. */
        LEASE_GONE,
        /** Not applied: this identity lacks the permission. */
        DENIED,
        /** Not applied: the gateway refuses the time that the call promises (F382). */
        CLOCK_AHEAD,
        /**
         * Perhaps applied, in an etcd that has lost what this client has seen: it was restored to
         * an older state, or is another cluster.
         */
        SET_BACK,
        /**
         * Perhaps applied, now or later: a deadline or a lost connection. Reading back does not
         * resolve it. Also an endpoint that does not accept who we are: another one may, or the
         * same one later.
         */
        UNKNOWN
    }

    private final Outcome outcome;

    public EtcdException(Outcome outcome, String message, Throwable cause) {
        super(message, cause);
        this.outcome = outcome;
    }

    public Outcome outcome() {
        return outcome;
    }

    /** The error code to use when the call is not retried. */
    public ErrorCode code() {
        switch (outcome) {
            case SET_BACK:
                return ErrorCode.ETCD_SET_BACK;
            case CLOCK_AHEAD:
                return ErrorCode.CLOCK_AHEAD;
            default:
                return ErrorCode.ETCD_SILENT;
        }
    }
}
