package io.hudioperator.catalog;

import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hudi.sync.common.model.PartitionValueExtractor;

/**
 * Values of partition columns in the path of a partition. Hudi's own classes replace or split a
 * value with a slash. The tool makes these by name.
 */
public final class PartitionValues {
    private PartitionValues() {}

    private static List<String> whole(String path) {
        return path.isEmpty() ? Collections.emptyList() : Collections.singletonList(path);
    }

    private static List<String> levels(String path) {
        return path.isEmpty() ? Collections.emptyList() : List.of(path.split("/", -1));
    }

    private static List<String> withoutNames(List<String> parts) {
        return parts.stream()
                .flatMap(part ->
                        part.indexOf('=') < 0 ? Stream.empty() : Stream.of(part.substring(part.indexOf('=') + 1)))
                .collect(Collectors.toList());
    }

    /** One column: the path is its value. */
    public static final class Whole implements PartitionValueExtractor {
        @Override
        public List<String> extractPartitionValuesInPath(String path) {
            return whole(path);
        }
    }

    /** One column in Hive style: its value follows the name. */
    public static final class NamedWhole implements PartitionValueExtractor {
        @Override
        public List<String> extractPartitionValuesInPath(String path) {
            return withoutNames(whole(path));
        }
    }

    /** Several columns: each level of the path is a value. */
    public static final class Levels implements PartitionValueExtractor {
        @Override
        public List<String> extractPartitionValuesInPath(String path) {
            return levels(path);
        }
    }

    /** Several columns in Hive style: a level without a name is no value. */
    public static final class NamedLevels implements PartitionValueExtractor {
        @Override
        public List<String> extractPartitionValuesInPath(String path) {
            return withoutNames(levels(path));
        }
    }
}
