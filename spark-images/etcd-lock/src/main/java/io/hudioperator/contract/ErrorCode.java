package io.hudioperator.contract;

import org.apache.hudi.exception.HoodieException;

/** The codes of protocol.json. Every error of this module begins with one, in brackets. */
public enum ErrorCode {
    FENCED,
    NOT_ADMITTED,
    NO_GATE,
    CLOCK_BEHIND,
    CLOCK_AHEAD,
    CLOCK_NOT_PAST,
    NOT_OWNER,
    NOT_PENDING,
    TOKEN,
    NO_GUARD,
    OTHER_AUTHORITY,
    PROGRESS_MOVED,
    SCHEMA_MOVED,
    SNAPSHOT_MOVED,
    RECOMPUTED,
    LOCK_TIMEOUT,
    ETCD_SILENT,
    ETCD_SET_BACK,
    HUDI_VERSION,
    STATEMENT,
    OPTION,
    BAD_DATA;

    public String code() {
        return "HUDIOP-" + name().replace('_', '-');
    }

    public String message(String detail) {
        return "[" + code() + "] " + detail;
    }

    /** Never a HoodieLockException: Hudi's LockManager retries those. */
    public HoodieException exception(String detail) {
        return new HoodieException(message(detail));
    }

    public HoodieException exception(String detail, Throwable cause) {
        return new HoodieException(message(detail), cause);
    }

    /**
     * For the storage wrapper, whose callers expect an IOException. A definite refusal: no request
     * was sent to the store.
     */
    public TimelineRefusedException refusal(String detail) {
        return new TimelineRefusedException(code(), message(detail));
    }
}
