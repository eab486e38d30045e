package io.hudioperator.contract;

import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.regex.Pattern;

/** Hudi's instant times: {@code yyyyMMddHHmmssSSS} in UTC, ordered as text. */
public final class InstantTime {
    /** Sorts before every instant. */
    public static final String NONE = "00000000000000000";

    /**
     * The beginning that an agent puts before a timeline (F630). Nobody else gets this time: a
     * table's clock is never before it.
     */
    public static final String BEGINNING = "19700101000000000";

    private static final DateTimeFormatter FORMAT = DateTimeFormatter.ofPattern("yyyyMMddHHmmssSSS");

    private static final Pattern FORM = Pattern.compile("[0-9]{14}([0-9]{3,})?");

    private InstantTime() {}

    public static String of(long epochMillis) {
        return FORMAT.format(LocalDateTime.ofInstant(Instant.ofEpochMilli(epochMillis), ZoneOffset.UTC));
    }

    public static String now() {
        return of(System.currentTimeMillis());
    }

    /** Whether the text is an instant time, of which the milliseconds may be missing. */
    public static boolean isValid(String time) {
        if (time == null || !FORM.matcher(time).matches()) {
            return false;
        }
        try {
            millis(time);
            return true;
        } catch (DateTimeParseException e) {
            return false; // a thirteenth month
        }
    }

    /**
     * Unix milliseconds of an instant time. Throws DateTimeParseException when the text is not one.
     */
    public static long millis(String time) {
        return LocalDateTime.parse(normal(time).substring(0, 17), FORMAT)
                .toInstant(ZoneOffset.UTC)
                .toEpochMilli();
    }

    /** Old instants have no milliseconds. Hudi orders them as if they ended in 999. */
    static String normal(String time) {
        return time.length() == 14 ? time + "999" : time;
    }

    public static boolean isAfter(String time, String other) {
        return normal(time).compareTo(normal(other)) > 0;
    }

    public static String max(String a, String b) {
        return isAfter(a, b) ? a : b;
    }
}
