package io.hudioperator.etcd;

import io.hudioperator.contract.ErrorCode;

/** One call to etcd that has no answer or was refused. What matters is whether it may have been, or may yet be, applied. */
public final class EtcdException extends Exception {
  private static final long serialVersionUID = 1L;

  public enum Outcome {
    /** Not applied and never will be. */
    REFUSED,
    /** Not applied: a lease that it names does not exist. */
    LEASE_GONE,
    /** Not applied: this identity may not. */
    DENIED,
    /** Perhaps applied, in an etcd that has forgotten what this client has seen: set back to an older state, or another one. */
    SET_BACK,
    /** Perhaps applied, perhaps applied later: a deadline or a lost connection. Reading back does not end it. */
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

  /** The code of this error where the call is not tried again. */
  public ErrorCode code() {
    return outcome == Outcome.SET_BACK ? ErrorCode.ETCD_SET_BACK : ErrorCode.ETCD_SILENT;
  }
}
