package io.hudioperator.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.model.HoodieFileFormat;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.hudi.hadoop.utils.HoodieInputFormatUtils;
import org.apache.hudi.hive.HiveSyncConfigHolder;
import org.apache.hudi.hive.HiveSyncTool;
import org.apache.hudi.hive.util.HiveSchemaUtil;
import org.apache.hudi.sync.common.HoodieSyncClient;
import org.apache.hudi.sync.common.HoodieSyncConfig;
import org.apache.hudi.sync.common.util.SparkDataSourceTableUtils;

/**
 * Description of a table for a catalog, as Hudi's own classes for Hive make it: columns, formats,
 * properties, and the partitions that exist or were changed. Nothing is sent to a catalog.
 */
public final class Description {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Description() {}

    /**
     * Describe the table as it is now.
     *
     * @param target the catalog and the table's name there
     * @param options of Hudi's tool, among them the base path
     * @param hadoop settings of the table's storage; not changed
     * @param instant requested time of the last change that the catalog shows; empty: it shows none
     * @param completion its completion time; may be empty
     * @param timeoutMillis as of {@link HiveSync#run}
     * @return as of {@link HiveSync#run}; after the line feed follows JSON
     */
    public static String of(
            String target,
            Map<String, String> options,
            Configuration hadoop,
            String instant,
            String completion,
            long timeoutMillis)
            throws InterruptedException {
        String name = options.get(HiveSync.BASE_PATH) + " " + target;
        return HiveSync.RUNS.run(name, () -> "\n" + described(options, hadoop, instant, completion), timeoutMillis);
    }

    private static JsonNode described(
            Map<String, String> options, Configuration hadoop, String instant, String completion) {
        Properties properties = new Properties();
        properties.putAll(options);
        HoodieSyncConfig settings = new HoodieSyncConfig(properties, new Configuration(hadoop));
        HoodieTableMetaClient metaClient = HoodieTableMetaClient.builder()
                .setConf(HadoopFSUtils.getStorageConf(settings.getHadoopConf()))
                .setBasePath(options.get(HiveSync.BASE_PATH))
                .setLoadActiveTimelineOnLoad(true)
                .build();
        try (Table table = new Table(settings, metaClient)) {
            return table.described(instant, completion);
        }
    }

    /** The table on its storage, through the part of Hudi's tool that all catalogs have. */
    private static final class Table extends HoodieSyncClient {
        private final List<String> columns;
        private final StoragePartitions partitions;
        private List<String> keyTypes = List.of();

        Table(HoodieSyncConfig settings, HoodieTableMetaClient metaClient) {
            super(settings, metaClient);
            this.columns = settings.getSplitStrings(HoodieSyncConfig.META_SYNC_PARTITION_FIELDS);
            this.partitions = new StoragePartitions(metaClient, partitionValueExtractor, () -> keyTypes);
        }

        ObjectNode described(String instant, String completion) {
            ObjectNode found = JSON.createObjectNode();
            HoodieSchema schema = getStorageSchema(true);
            Held.check(schema);
            Map<String, String> types = HiveSchemaUtil.hoodieSchemaToMapSchema(schema, true, false);
            ArrayNode plain = found.putArray("columns");
            types.keySet().stream()
                    .filter(name -> !columns.contains(name))
                    .forEach(name -> plain.addArray().add(name).add(type(types, name)));
            keyTypes = columns.stream().map(name -> type(types, name)).collect(Collectors.toList());
            ArrayNode keys = found.putArray("partitionColumns");
            columns.forEach(name -> keys.addArray().add(name).add(type(types, name)));
            HoodieFileFormat format = HoodieFileFormat.PARQUET;
            found.put("outputFormat", HoodieInputFormatUtils.getOutputFormatClassName(format));
            found.put("serde", HoodieInputFormatUtils.getSerDeClassName(format));
            ArrayNode entries = found.putArray("entries");
            if (getTableType() == HoodieTableType.MERGE_ON_READ) {
                entries.add(entry(HiveSyncTool.SUFFIX_READ_OPTIMIZED_TABLE, schema, false, true));
                entries.add(entry(HiveSyncTool.SUFFIX_SNAPSHOT_TABLE, schema, true, false));
                entries.add(entry("", schema, true, false));
            } else {
                entries.add(entry("", schema, false, false));
            }
            changes(found, instant, completion);
            HoodieTimeline timeline = getActiveTimeline();
            found.put(
                    "instant",
                    timeline.lastInstant().map(HoodieInstant::requestedTime).orElse(""));
            found.put("completion", timeline.getLatestCompletionTime().orElse(""));
            ArrayNode leftOut = found.putArray("leftOut");
            partitions.leftOut().forEach(leftOut::add);
            return found;
        }

        private static String type(Map<String, String> types, String column) {
            return HiveSchemaUtil.getPartitionKeyType(types, column);
        }

        private ObjectNode entry(String suffix, HoodieSchema schema, boolean realtime, boolean optimized) {
            ObjectNode found = JSON.createObjectNode();
            found.put("suffix", suffix);
            found.put(
                    "inputFormat",
                    HoodieInputFormatUtils.getInputFormatClassName(HoodieFileFormat.PARQUET, realtime, false));
            ObjectNode properties = found.putObject("properties");
            ObjectNode serdeProperties = found.putObject("serdeProperties");
            // As in Hudi's tool: Spark reads no bootstrapped table with log files by these.
            if (!(isBootstrap() && getTableType() == HoodieTableType.MERGE_ON_READ && !optimized)) {
                SparkDataSourceTableUtils.getSparkTableProperties(
                                columns,
                                config.getStringOrDefault(HoodieSyncConfig.META_SYNC_SPARK_VERSION),
                                config.getIntOrDefault(HiveSyncConfigHolder.HIVE_SYNC_SCHEMA_STRING_LENGTH_THRESHOLD),
                                schema)
                        .forEach(properties::put);
                SparkDataSourceTableUtils.getSparkSerdeProperties(optimized, getBasePath())
                        .forEach(serdeProperties::put);
            }
            return found;
        }

        private void changes(ObjectNode found, String instant, String completion) {
            boolean everything = instant.isEmpty() || getActiveTimeline().isBeforeTimelineStarts(instant);
            found.put("everything", everything);
            List<String> written = List.of();
            Set<String> dropped = Set.of();
            if (!columns.isEmpty() && everything) {
                written = partitions.living(partitions.described(getAllPartitionPathsOnStorage()));
            } else if (!columns.isEmpty()) {
                Option<String> requested = Option.of(instant);
                Option<String> completed = completion.isEmpty() ? Option.empty() : Option.of(completion);
                dropped = getDroppedPartitionsSince(requested, completed);
                Set<String> gone = dropped;
                written = partitions.described(getWrittenPartitionsSince(requested, completed)).stream()
                        .filter(path -> !gone.contains(path))
                        .collect(Collectors.toList());
            }
            put(found.putArray("written"), written);
            put(found.putArray("dropped"), partitions.described(List.copyOf(dropped)));
        }

        private void put(ArrayNode found, List<String> paths) {
            for (String path : paths) {
                ArrayNode partition = found.addArray();
                partition.add(path);
                partitionValueExtractor.extractPartitionValuesInPath(path).forEach(partition::add);
            }
        }

        @Override
        public void close() {
            // No connection to close.
        }
    }
}
