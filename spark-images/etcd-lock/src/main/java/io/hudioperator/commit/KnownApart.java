package io.hudioperator.commit;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.hudi.storage.StoragePath;

/**
 * Pairs of a new file and a completed write that are known to have no inserted key in common.
 * Neither of the two changes, so the fact remains true.
 */
final class KnownApart {
    private static final int KEPT = 10_000; // files

    private static final Map<StoragePath, Set<String>> APART = new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<StoragePath, Set<String>> eldest) {
            return size() > KEPT;
        }
    };

    private KnownApart() {}

    static void add(StoragePath file, String other) {
        synchronized (APART) {
            APART.computeIfAbsent(file, f -> new HashSet<>()).add(other);
        }
    }

    /**
     * Whether this new file and that completed write are known to have no inserted key in common.
     */
    static boolean has(StoragePath file, String other) {
        synchronized (APART) {
            return APART.getOrDefault(file, Set.of()).contains(other);
        }
    }
}
