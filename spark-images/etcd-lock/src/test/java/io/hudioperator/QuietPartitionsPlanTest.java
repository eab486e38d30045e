package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.hudioperator.contract.Json;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.config.HoodieWriteConfig;
import org.junit.jupiter.api.Test;

/**
 * Which partitions a clustering plans, and which ones its plan records as missing so that the next
 * clustering considers them.
 */
class QuietPartitionsPlanTest {
    private static final String SKIP = "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions";
    private static final String MODE = "hoodie.clustering.plan.partition.filter.mode";

    private static Pair<List<String>, List<String>> filter(List<String> partitions, String... options) {
        Properties props = new Properties();
        for (int i = 0; i < options.length; i += 2) {
            props.setProperty(options[i], options[i + 1]);
        }
        props.setProperty(
                "hoodie.clustering.plan.strategy.daybased.lookback.partitions", String.valueOf(Integer.MAX_VALUE));
        HoodieWriteConfig config = HoodieWriteConfig.newBuilder()
                .withPath("file:///tmp/t")
                .withProperties(props)
                .build();
        return new QuietPartitionsPlanStrategy<Object>(null, null, config).filterPartitionPaths(config, partitions);
    }

    private static String leftOut(String... partitions) {
        ObjectNode json = Json.object();
        List.of(partitions).forEach(json.putArray("partitions")::add);
        return json.toString();
    }

    @Test
    void whatIsLeftOutIsOnRecord() {
        List<String> odd = List.of("c", "a,b", "day=\"1\\2\"", "Zürich/%2F", "a");
        assertEquals(Pair.of(odd.stream().sorted().collect(Collectors.toList()), List.of()), filter(odd));
        Pair<List<String>, List<String>> found =
                filter(odd, QuietPartitionsPlanStrategy.LEFT_OUT, leftOut("a,b", "day=\"1\\2\"", "Zürich/%2F", "gone"));
        assertEquals(List.of("a", "c"), found.getLeft());
        assertEquals(Set.of("a,b", "day=\"1\\2\"", "Zürich/%2F"), Set.copyOf(found.getRight()));
    }

    /**
     * The latest partitions that the user's options skip are counted before partitions are left
     * out.
     */
    @Test
    void theUsersOwnChoiceComesFirst() {
        Pair<List<String>, List<String>> found = filter(
                List.of("d1", "d4", "d2", "d3"),
                MODE,
                "RECENT_DAYS",
                SKIP,
                "1",
                QuietPartitionsPlanStrategy.LEFT_OUT,
                leftOut("d3", "d4"));
        assertEquals(List.of("d1", "d2"), found.getLeft());
        assertEquals(List.of("d4", "d3"), found.getRight());
    }

    /** Here Hudi's own filter fails with an index out of bounds. */
    @Test
    void fewerPartitionsThanAreSkipped() {
        assertEquals(
                Pair.of(List.of(), List.of("d1")),
                assertDoesNotThrow(() -> filter(List.of("d1"), MODE, "RECENT_DAYS", SKIP, "2")));
        assertEquals(
                List.of("d1"),
                filter(List.of("d1", "d2", "d3"), MODE, "RECENT_DAYS", SKIP, "2")
                        .getLeft());
    }
}
