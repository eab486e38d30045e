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
 * Hudi's plan of a clustering without the partitions in which earlier ones have lost to writers; the runtime names them (partition_backoff.py).
 *
 * <p>Hudi plans what was written since the last clustering, and what that one's plan has on record as missing. A partition that a pattern does not
 * match is not on record, and would not be looked at again until somebody writes to it; so what is left out here is put on record.
 */
public final class QuietPartitionsPlanStrategy<T> extends SparkSizeBasedClusteringPlanStrategy<T> {
  /** {@code {"partitions": […]}}: names of partitions may hold any character. */
  static final String LEFT_OUT = "hudi.operator.clustering.left.out";

  public QuietPartitionsPlanStrategy(HoodieTable table, HoodieEngineContext engine, HoodieWriteConfig config) {
    super(table, engine, config);
  }

  /** The partitions to plan, and those that the plan is to have on record as missing. What the user's options leave out is left out first. */
  @Override
  public Pair<List<String>, List<String>> filterPartitionPaths(HoodieWriteConfig config, List<String> partitions) {
    Pair<List<String>, List<String>> ofTheUser =
        allSkipped(config, partitions) ? Pair.of(List.of(), partitions) : super.filterPartitionPaths(config, new ArrayList<>(partitions));
    Set<String> leftOut = leftOut(config);
    List<String> planned = new ArrayList<>();
    List<String> missing = new ArrayList<>(ofTheUser.getRight());
    ofTheUser.getLeft().forEach(partition -> (leftOut.contains(partition) ? missing : planned).add(partition));
    return Pair.of(planned, missing);
  }

  /** Hudi's filter fails where there are fewer partitions than are to be skipped. */
  private static boolean allSkipped(HoodieWriteConfig config, List<String> partitions) {
    boolean newestAreSkipped = config.getClusteringPlanPartitionFilterMode() == ClusteringPlanPartitionFilterMode.RECENT_DAYS;
    return newestAreSkipped && partitions.size() <= config.getSkipPartitionsFromLatestForClustering();
  }

  private static Set<String> leftOut(HoodieWriteConfig config) {
    Set<String> names = new HashSet<>();
    Json.parse(config.getProps().getString(LEFT_OUT, "{}")).path("partitions").forEach(name -> names.add(name.asText()));
    return names;
  }
}
