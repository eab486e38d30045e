package io.hudioperator.commit;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.protocol.InsertRule;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.hudi.common.bloom.BloomFilter;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.TimelineUtils;
import org.apache.hudi.common.util.FileFormatUtils;
import org.apache.hudi.io.storage.HoodieIOFactory;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;

/**
 * Finds record keys that two commits have both inserted into one partition, where one commit
 * completed while the other was written (I13, F58). Each looked up the key before the other
 * existed, and wrote it to a separate file group. Hudi compares only file groups, so it would
 * accept both.
 *
 * <p>The result is exact. Partitions are compared first, then the key ranges in the files' footers,
 * then few keys with Bloom filters, then keys with keys. Keys that a file took over from its
 * previous version were not inserted. A file that cannot be read, or is not a base file, counts as
 * a conflict (I11): the write is repeated and then sees the other commit. (None of the indexes that
 * use this check puts new keys into log files.)
 */
public final class InsertConflicts {
    /**
     * Operations that write only rows that were committed before, or that no other writer could
     * see.
     */
    private static final Set<WriteOperationType> INSERT_NOTHING = Set.of(
            WriteOperationType.COMPACT,
            WriteOperationType.LOG_COMPACT,
            WriteOperationType.CLUSTER,
            WriteOperationType.INDEX,
            WriteOperationType.BOOTSTRAP);

    private static final int HASHES_AT_ONCE = 8_000_000; // of my keys, 8 bytes each
    private static final int KEYS_AT_ONCE = 100_000; // strings in memory
    private static final int KEYS_READ_PER_FILTERED = 4;
    private static final int KEYS_BETWEEN_LOOKS = 1_000; // at the time that is left
    private static final char FIRST_SURROGATE = '\uD800';

    private final InsertRule rule;
    private final HoodieTableMetaClient metaClient;
    private final HoodieStorage storage;
    private final Map<StoragePath, String[]> ranges = new HashMap<>();
    private final long until;
    private List<StoragePath> hashed = List.of();
    private long[] hashes;

    /** There is no time left to tell whether two commits have inserted the same keys. */
    static final class OutOfTime extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    /**
     * @param buckets whether a key's file group follows from its bucket number alone, in which case
     *     two commits to one bucket already conflict
     */
    public InsertConflicts(InsertRule rule, boolean buckets, HoodieTableMetaClient metaClient) {
        this(rule, buckets, metaClient, Long.MAX_VALUE);
    }

    /**
     * @param nanos after which a comparison that has to read more throws {@link OutOfTime}
     */
    InsertConflicts(InsertRule rule, boolean buckets, HoodieTableMetaClient metaClient, long nanos) {
        this.rule = buckets && rule == InsertRule.KEY ? InsertRule.IGNORE : rule;
        this.metaClient = metaClient;
        this.storage = metaClient.getStorage();
        this.until = nanos == Long.MAX_VALUE ? nanos : System.nanoTime() + nanos;
    }

    private void requireTime() {
        if (until != Long.MAX_VALUE && System.nanoTime() - until > 0) {
            throw new OutOfTime();
        }
    }

    /**
     * A file group into which a commit inserted records. {@code file} contains them; keys that
     * {@code previous} also contains were there before (null: no previous file).
     */
    private static final class Inserted {
        final String partition;
        final String group;
        final StoragePath file;
        final StoragePath previous;
        final long keys;

        Inserted(HoodieWriteStat stat, StoragePath base) {
            partition = stat.getPartitionPath();
            group = stat.getFileId();
            keys = stat.getNumWrites();
            file = new StoragePath(base, stat.getPath());
            String before = isNew(stat) ? null : stat.getPrevBaseFile();
            previous = before == null || before.isEmpty() ? null : new StoragePath(file.getParent(), before);
        }

        static boolean isNew(HoodieWriteStat stat) {
            return stat.getPrevCommit() == null || HoodieWriteStat.NULL_COMMIT.equals(stat.getPrevCommit());
        }

        String name() {
            return partition.isEmpty() ? group : partition + "/" + group;
        }
    }

    /**
     * Returns the file groups into which both commits have inserted the same keys; empty when there
     * are none.
     *
     * @param other requested time of a completed write
     */
    public Set<String> between(HoodieCommitMetadata mine, String other) {
        requireTime();
        Map<String, List<Inserted>> here = rule == InsertRule.IGNORE ? Map.of() : inserted(mine);
        Map<String, List<Inserted>> there = here.isEmpty() ? Map.of() : inserted(read(metaClient, other));
        return here.entrySet().stream()
                .filter(files -> there.containsKey(files.getKey()))
                .map(files -> between(other, files.getValue(), there.get(files.getKey())))
                .filter(found -> !found.isEmpty())
                .findFirst()
                .orElse(Set.of());
    }

    /** The same for one partition. */
    private Set<String> between(String instant, List<Inserted> all, List<Inserted> others) {
        if (rule == InsertRule.PARTITION) {
            return names(all.get(0), others.get(0));
        }
        List<Inserted> mine =
                all.stream().filter(one -> !KnownApart.has(one.file, instant)).collect(Collectors.toList());
        List<Inserted> some = new ArrayList<>();
        long keys = 0;
        for (int n = 0; n < mine.size(); n++) {
            some.add(mine.get(n));
            keys += mine.get(n).keys;
            if (keys >= HASHES_AT_ONCE || n == mine.size() - 1) {
                Set<String> found = sharing(some, others);
                if (!found.isEmpty()) {
                    return found;
                }
                some.clear();
                keys = 0;
            }
        }
        return Set.of();
    }

    /** Inserted files by partition. */
    private Map<String, List<Inserted>> inserted(HoodieCommitMetadata metadata) {
        if (INSERT_NOTHING.contains(metadata.getOperationType())) {
            return Map.of();
        }
        return metadata.getWriteStats().stream()
                .filter(s ->
                        s.getPath() != null && (s.getNumInserts() > 0 || Inserted.isNew(s) && s.getNumWrites() > 0))
                .map(s -> new Inserted(s, metaClient.getBasePath()))
                .collect(Collectors.groupingBy(i -> i.partition));
    }

    /** Metadata of a completed write or table service. */
    static HoodieCommitMetadata read(HoodieTableMetaClient metaClient, String requested) {
        HoodieInstant completed =
                // a savepoint has the same time as its commit
                metaClient
                        .getActiveTimeline()
                        .getCommitsTimeline()
                        .filterCompletedInstants()
                        .getInstantsAsStream()
                        .filter(i -> i.requestedTime().equals(requested))
                        .findFirst()
                        .orElseThrow(() -> ErrorCode.SNAPSHOT_MOVED.exception(
                                "instant " + requested + " is no longer among the completed instants"));
        try {
            return TimelineUtils.getCommitMetadata(completed, metaClient.getActiveTimeline());
        } catch (IOException e) { // unknown is not "no conflict" (I11)
            throw ErrorCode.SNAPSHOT_MOVED.exception("cannot read the metadata of instant " + requested, e);
        }
    }

    private Set<String> sharing(List<Inserted> mine, List<Inserted> others) {
        try {
            for (Inserted other : others) {
                List<Inserted> close =
                        mine.stream().filter(one -> !apart(one, other)).collect(Collectors.toList());
                if (close.isEmpty() || !maybe(close, other)) {
                    continue;
                }
                Set<String> found = share(close, other, hashes(mine));
                if (!found.isEmpty()) {
                    return found;
                }
            }
            return Set.of();
        } catch (OutOfTime e) {
            throw e;
        } catch (RuntimeException e) { // for example, the file was cleaned in the meantime
            System.err.println("cannot compare the inserted keys of " + mine.get(0).file
                    + " and other files with those of a concurrent commit; treating this as a conflict: " + e);
            return names(mine.get(0), others.get(0));
        }
    }

    private static Set<String> names(Inserted mine, Inserted other) {
        return new TreeSet<>(List.of(mine.name(), other.name()));
    }

    /**
     * Whether the key ranges do not overlap. Some file writers order keys by UTF-16 code units,
     * others by UTF-8 bytes. Both orders give the same result when a key is compared with a bound
     * that contains no character from the surrogates upwards.
     */
    private boolean apart(Inserted mine, Inserted other) {
        String[] one = range(mine.file);
        String[] two = range(other.file);
        boolean ordered = one.length == 2 && two.length == 2 && plain(one) && plain(two);
        return ordered && (one[1].compareTo(two[0]) < 0 || two[1].compareTo(one[0]) < 0);
    }

    private static boolean plain(String... bounds) {
        return Arrays.stream(bounds).allMatch(b -> b.chars().allMatch(c -> c < FIRST_SURROGATE));
    }

    /** The least and the greatest key; empty when the footer does not have them. */
    private String[] range(StoragePath file) {
        return ranges.computeIfAbsent(file, f -> {
            requireTime();
            Map<String, String> footer =
                    utils(f).readFooter(storage, false, f, "hoodie_min_record_key", "hoodie_max_record_key");
            return footer.size() == 2
                    ? new String[] {footer.get("hoodie_min_record_key"), footer.get("hoodie_max_record_key")}
                    : new String[0];
        });
    }

    private FileFormatUtils utils(StoragePath file) {
        return HoodieIOFactory.getIOFactory(storage).getFileFormatUtils(file);
    }

    /**
     * False when the other file's Bloom filter contains none of these keys. Used for few keys only:
     * looking up one key in a filter takes longer than reading several keys of a file.
     */
    private boolean maybe(List<Inserted> mine, Inserted other) {
        long keys = mine.stream().mapToLong(one -> one.keys).sum();
        BloomFilter filter = keys * KEYS_READ_PER_FILTERED <= other.keys
                ? utils(other.file).readBloomFilterFromMetadata(storage, other.file)
                : null;
        boolean[] maybe = {filter == null};
        for (Inserted one : filter == null ? List.<Inserted>of() : mine) {
            forEachKey(one.file, key -> maybe[0] = maybe[0] || filter.mightContain(key));
        }
        return maybe[0];
    }

    /** Of the keys of these files; those of the last call are kept for the next commit. */
    private long[] hashes(List<Inserted> mine) {
        List<StoragePath> all = mine.stream().map(one -> one.file).collect(Collectors.toList());
        if (!all.equals(hashed)) {
            Hashes found = new Hashes();
            all.forEach(file -> forEachKey(file, found::add));
            hashes = found.sorted();
            hashed = all;
        }
        return hashes;
    }

    private Set<String> share(List<Inserted> mine, Inserted other, long[] keys) {
        Set<String> both = new HashSet<>();
        Set<String> found = new TreeSet<>();
        forEachKey(other.file, key -> {
            if (found.isEmpty() && Arrays.binarySearch(keys, Hashes.hash(key)) >= 0) {
                both.add(key);
                if (both.size() >= KEYS_AT_ONCE) {
                    found.addAll(insertedByBoth(mine, other, both));
                    both.clear();
                }
            }
        });
        return found.isEmpty() && !both.isEmpty() ? insertedByBoth(mine, other, both) : found;
    }

    /** The first of my files that inserted one of these keys, which the other file inserted too. */
    private Set<String> insertedByBoth(List<Inserted> mine, Inserted other, Set<String> keys) {
        for (Inserted one : mine) {
            Set<String> both = new HashSet<>();
            forEachKey(one.file, key -> {
                if (keys.contains(key)) {
                    both.add(key);
                }
            });
            for (Inserted side : List.of(one, other)) {
                if (side.previous != null && !both.isEmpty()) {
                    forEachKey(side.previous, both::remove);
                }
            }
            if (!both.isEmpty()) {
                return names(one, other);
            }
        }
        return Set.of();
    }

    private void forEachKey(StoragePath file, Consumer<String> consumer) {
        requireTime();
        long[] read = {0};
        KeyColumn.forEach(storage, file, key -> {
            if (++read[0] % KEYS_BETWEEN_LOOKS == 0) {
                requireTime();
            }
            consumer.accept(key);
        });
    }

    /**
     * 64-bit hashes of keys: eight bytes for each key. Keys with equal hashes are compared by name
     * afterwards.
     */
    private static final class Hashes {
        private static final long FNV_BASIS = 0xcbf29ce484222325L;
        private static final long FNV_PRIME = 0x100000001b3L;
        private static final int FIRST = 1024;
        private long[] values = new long[FIRST];
        private int size;

        void add(String key) {
            if (size == values.length) {
                values = Arrays.copyOf(values, 2 * size);
            }
            values[size++] = hash(key);
        }

        long[] sorted() {
            long[] all = Arrays.copyOf(values, size);
            Arrays.sort(all);
            return all;
        }

        static long hash(String key) {
            long hash = FNV_BASIS;
            for (int n = 0; n < key.length(); n++) {
                hash = (hash ^ key.charAt(n)) * FNV_PRIME;
            }
            return hash;
        }
    }
}
