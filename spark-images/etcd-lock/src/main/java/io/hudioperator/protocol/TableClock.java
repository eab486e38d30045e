package io.hudioperator.protocol;

import io.hudioperator.contract.Json;
import io.hudioperator.etcd.KeyValue;

/**
 * The value of {@code clock}: the largest instant or completion time that was promised for the
 * table (I10).
 */
final class TableClock {
    private TableClock() {}

    static String json(String time) {
        return Json.object().put("value", time).toString();
    }

    /** Null when the table has no clock yet. */
    static String time(KeyValue clock) {
        return clock == null ? null : Json.text(Json.parse(clock.value()), "value");
    }
}
