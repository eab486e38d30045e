package io.hudioperator.contract;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** One value of a field in a record: a constant of an enum, as those in {@link Words}. */
public interface Word {
    /** The constant's name, as an enum has it. */
    String name();

    /** The value as records have it: {@code ROLLING_BACK} is {@code RollingBack}. */
    default String word() {
        return Arrays.stream(name().split("_"))
                .map(part -> part.charAt(0) + part.substring(1).toLowerCase(Locale.ROOT))
                .collect(Collectors.joining());
    }

    /** Whether a field has this value. */
    default boolean is(String value) {
        return word().equals(value);
    }
}
