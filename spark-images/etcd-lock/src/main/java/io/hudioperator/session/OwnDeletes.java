package io.hudioperator.session;

import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import org.apache.hudi.common.model.DefaultHoodieRecordPayload;

/**
 * The options with which a write deletes the rows that have a certain value in a certain column. A
 * program may not set them: an insert would store such rows (F108). The deletes that this process
 * makes of a program's own do, and are known by a number that is new in each process.
 */
public final class OwnDeletes {
    private static final String OPERATION = "hoodie.datasource.write.operation";
    private static final String OPTION = "hoodie.write.lock.etcd.deletes";
    private static final String NUMBER = UUID.randomUUID().toString();
    private static final Set<String> NAMES =
            Set.of(DefaultHoodieRecordPayload.DELETE_KEY, DefaultHoodieRecordPayload.DELETE_MARKER);

    private OwnDeletes() {}

    /** Options of a write that deletes rows with {@code marker} as the text of {@code column}. */
    public static Map<String, String> options(String column, String marker) {
        Map<String, String> options = new HashMap<>();
        options.put(DefaultHoodieRecordPayload.DELETE_KEY, column);
        options.put(DefaultHoodieRecordPayload.DELETE_MARKER, marker);
        options.put(OPTION, NUMBER);
        return options;
    }

    /**
     * Whether this option of a write comes from {@link #options}, and the write is an upsert. A
     * program that copies the number deletes its own rows by its own mark, with their ordering
     * value, as {@code _hoodie_is_deleted} does: it deletes no row of others, and no such row is
     * stored.
     */
    public static boolean has(Properties write, String option) {
        return NAMES.contains(option)
                && NUMBER.equals(write.getProperty(OPTION, ""))
                && "upsert".equalsIgnoreCase(write.getProperty(OPERATION, ""));
    }
}
