package io.hudioperator.contract;

import java.io.IOException;

/** A change of a timeline that was refused before any request was sent to the store. */
public final class TimelineRefusedException extends IOException {
    private static final long serialVersionUID = 1L;

    private final String code;

    /** {@code message} begins with the code, in brackets. */
    TimelineRefusedException(String code, String message) {
        super(message);
        this.code = code;
    }

    /** The code without brackets, as protocol.json spells it. */
    public String code() {
        return code;
    }
}
