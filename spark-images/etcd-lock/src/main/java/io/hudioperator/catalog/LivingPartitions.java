package io.hudioperator.catalog;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.hive.HiveSyncConfig;
import org.apache.hudi.hive.HoodieHiveSyncClient;
import org.apache.hudi.hive.util.HiveSchemaUtil;
import org.apache.hudi.sync.common.HoodieSyncConfig;

/**
 * The partitions of one run of Hudi's tool: those that have a file of data, and whose path has a
 * value for each column. A deleted partition keeps its folder, and Hudi would add it again whenever
 * it lists all of them.
 */
final class LivingPartitions extends HoodieHiveSyncClient {
    private final HiveSyncConfig settings;
    private final List<String> columns;
    private final StoragePartitions partitions;
    private List<String> types;
    private List<String> all;

    LivingPartitions(HiveSyncConfig settings, HoodieTableMetaClient metaClient) {
        super(settings, metaClient);
        this.settings = settings;
        this.columns = settings.getSplitStrings(HoodieSyncConfig.META_SYNC_PARTITION_FIELDS);
        this.partitions = new StoragePartitions(metaClient, partitionValueExtractor, this::types);
    }

    private List<String> types() {
        if (types == null) {
            Map<String, String> known = HiveSchemaUtil.hoodieSchemaToMapSchema(getStorageSchema(true), true, false);
            types = columns.stream()
                    .map(name -> HiveSchemaUtil.getPartitionKeyType(known, name))
                    .collect(Collectors.toList());
        }
        return types;
    }

    /** Paths that this run has met and that no entry of a catalog can describe. */
    Set<String> leftOut() {
        return partitions.leftOut();
    }

    /** Raises OtherTable when the entry has other partition columns: they cannot be changed. */
    void compareColumns(String table) {
        List<String> there = new Metastore(settings).partitionColumns(getDatabaseName(), table);
        List<String> wanted =
                columns.stream().map(name -> name.toLowerCase(Locale.ROOT)).collect(Collectors.toList());
        if (!there.equals(wanted)) {
            throw new OtherTable("table " + table + " exists in the metastore with the partition columns " + there
                    + ", and this table has " + wanted + ": drop it there, or choose another name");
        }
    }

    /** Listed once in a run: a MergeOnRead table asks for each of its three names. */
    @Override
    public List<String> getAllPartitionPathsOnStorage() {
        if (all == null) {
            all = partitions.living(partitions.described(super.getAllPartitionPathsOnStorage()));
        }
        return all;
    }

    @Override
    public List<String> getWrittenPartitionsSince(Option<String> instant, Option<String> completion) {
        return partitions.described(super.getWrittenPartitionsSince(instant, completion));
    }

    /** By its values: by name, as Hudi does it, a value with a slash is another partition. */
    @Override
    public void dropPartitions(String table, List<String> paths) {
        List<String> dropped = partitions.described(paths);
        if (!dropped.isEmpty()) {
            Metastore metastore = new Metastore(settings);
            for (String path : dropped) {
                metastore.dropPartition(
                        getDatabaseName(), table, partitionValueExtractor.extractPartitionValuesInPath(path));
            }
        }
    }
}
