package io.hudioperator;

import org.apache.hudi.exception.HoodieException;

/** The codes of protocol.json. Every error this module raises begins with one, in brackets. */
enum ErrorCode {
  FENCED,
  NOT_ADMITTED,
  NO_GATE,
  CLOCK_BEHIND,
  CLOCK_NOT_PAST,
  NOT_OWNER,
  NOT_PENDING,
  TOKEN,
  NO_GUARD,
  OTHER_AUTHORITY,
  PROGRESS_MOVED,
  SCHEMA_MOVED,
  SNAPSHOT_MOVED,
  LOCK_TIMEOUT,
  ETCD_SILENT,
  ETCD_SET_BACK,
  HUDI_VERSION,
  STATEMENT,
  OPTION,
  BAD_DATA;

  String code() {
    return "HUDIOP-" + name().replace('_', '-');
  }

  String message(String detail) {
    return "[" + code() + "] " + detail;
  }

  /** For a call to etcd that is not tried again. */
  static ErrorCode of(EtcdException e) {
    return e.outcome() == EtcdException.Outcome.SET_BACK ? ETCD_SET_BACK : ETCD_SILENT;
  }

  /** Never a HoodieLockException: Hudi's LockManager retries those. */
  HoodieException exception(String detail) {
    return new HoodieException(message(detail));
  }

  HoodieException exception(String detail, Throwable cause) {
    return new HoodieException(message(detail), cause);
  }

  /** For the storage wrapper, whose callers expect an IOException. The store was not asked: a definite refusal. */
  TimelineRefusedException refusal(String detail) {
    return new TimelineRefusedException(this, detail);
  }
}
