package io.hudioperator;

import io.hudioperator.contract.Json;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy;
import org.apache.hudi.common.engine.HoodieEngineContext;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.table.HoodieTable;
import org.apache.hudi.table.action.cluster.ClusteringPlanPartitionFilterMode;

/**
 * Hudi's clustering plan without the partitions in which earlier clusterings have lost to writers.
 * The runtime names these partitions (partition_backoff.py).
 *
 * <p>Hudi plans the partitions that were written since the last clustering, and those that its plan
 * recorded as missing. A partition that a filter pattern excludes is not recorded, so Hudi would
 * not look at it again until the next write to it. Partitions that are left out here are therefore
 * recorded as missing.
 */
public final class QuietPartitionsPlanStrategy<T> extends SparkSizeBasedClusteringPlanStrategy<T> {
    /** JSON {@code {"partitions": […]}}, because names of partitions may contain any character. */
    static final String LEFT_OUT = "hudi.operator.clustering.left.out";

    public QuietPartitionsPlanStrategy(HoodieTable table, HoodieEngineContext engine, HoodieWriteConfig config) {
        super(table, engine, config);
    }

    /**
     * Returns the partitions to plan, and those that the plan records as missing. The filter of the
     * user's options is applied first.
     */
    @Override
    public Pair<List<String>, List<String>> filterPartitionPaths(HoodieWriteConfig config, List<String> partitions) {
        Pair<List<String>, List<String>> ofTheUser = allSkipped(config, partitions)
                ? Pair.of(List.of(), partitions)
                : super.filterPartitionPaths(config, new ArrayList<>(partitions));
        Set<String> leftOut = leftOut(config);
        List<String> planned = new ArrayList<>();
        List<String> missing = new ArrayList<>(ofTheUser.getRight());
        ofTheUser.getLeft().forEach(partition -> (leftOut.contains(partition) ? missing : planned).add(partition));
        return Pair.of(planned, missing);
    }

    /** Hudi's filter fails when there are fewer partitions than it has to skip. */
    private static boolean allSkipped(HoodieWriteConfig config, List<String> partitions) {
        boolean newestAreSkipped =
                config.getClusteringPlanPartitionFilterMode() == ClusteringPlanPartitionFilterMode.RECENT_DAYS;
        return newestAreSkipped && partitions.size() <= config.getSkipPartitionsFromLatestForClustering();
    }

    private static Set<String> leftOut(HoodieWriteConfig config) {
        Set<String> names = new HashSet<>();
        Json.parse(config.getProps().getString(LEFT_OUT, "{}"))
                .path("partitions")
                .forEach(name -> names.add(name.asText()));
        return names;
    }
}
