package io.hudioperator.protocol;

import io.hudioperator.contract.InstantTime;
import io.hudioperator.contract.Json;
import io.hudioperator.etcd.KeyValue;
import org.apache.hudi.exception.HoodieException;

/**
 * The value of {@code clock}: the largest instant or completion time that was promised for the
 * table (I10).
 */
final class TableClock {
    private static final int SHOWN = 100;

    private TableClock() {}

    static String json(String time) {
        return Json.object().put("value", time).toString();
    }

    /**
     * Null when the table has no clock yet. Throws HoodieException when the key's value is not a
     * clock: nobody knows then which times were promised.
     */
    static String time(KeyValue clock) {
        if (clock == null) {
            return null;
        }
        String time = text(clock);
        if (!InstantTime.isValid(time)) {
            String found = clock.value();
            throw new HoodieException("the value of key " + clock.key() + " in etcd must be {\"value\": TIME} with a"
                    + " time of Hudi, yyyyMMddHHmmss or yyyyMMddHHmmssSSS, and is "
                    + (found.length() > SHOWN ? found.substring(0, SHOWN) + "…" : found));
        }
        return time;
    }

    /** Whether the key has that time; false for a value that is not a clock. */
    static boolean is(KeyValue clock, String time) {
        return clock != null && time.equals(text(clock));
    }

    private static String text(KeyValue clock) {
        return Json.text(Json.parse(clock.value()), "value");
    }
}
