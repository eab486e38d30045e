package io.hudioperator.contract;

import java.io.IOException;

/** A change of a timeline that was refused before anything was sent to the store. */
public final class TimelineRefusedException extends IOException {
  private static final long serialVersionUID = 1L;

  private final String code;

  TimelineRefusedException(ErrorCode code, String detail) {
    super(code.message(detail));
    this.code = code.code();
  }

  /** The code without brackets, as in protocol.json. */
  public String code() {
    return code;
  }
}
