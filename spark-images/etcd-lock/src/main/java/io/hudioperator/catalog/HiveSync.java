package io.hudioperator.catalog;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.hive.HiveSyncConfig;
import org.apache.hudi.hive.HiveSyncTool;

/** One run of Hudi's HiveSyncTool, in a thread of its own and with a time limit. */
public final class HiveSync {
    private static final String BASE_PATH = "hoodie.datasource.meta.sync.base.path";
    private static final int MOST_CAUSES = 20;
    private static final int MOST_NAMES = 5;
    /** Threads of all tables, with those that a metastore holds beyond their limit. */
    private static final int MOST_THREADS = 8;

    private static final Runs RUNS = new Runs(MOST_THREADS, HiveSync::explained);

    private HiveSync() {}

    /**
     * Make the metastore's tables what the Hudi table is now.
     *
     * @param target the catalog and the table's name there
     * @param options of Hudi's tool, among them the base path
     * @param hadoop settings of the table's storage and of the metastore's client; not changed
     * @param timeoutMillis the limit of the whole run. A thread that waits for the metastore even
     *     after it is left behind; until it ends, each further run answers {@code Timeout}.
     * @return a reason (one word) and, after a line feed, what is wrong, in words of this class, of
     *     Hudi or of the metastore. {@code busy}: an earlier run of this table is within its limit.
     *     When it is done the reason is empty, and the first paths of partitions follow, one a
     *     line, that it has met and that no entry can describe.
     */
    public static String run(String target, Map<String, String> options, Configuration hadoop, long timeoutMillis)
            throws InterruptedException {
        String name = options.get(BASE_PATH) + " " + target;
        return RUNS.run(name, () -> "\n" + sync(options, hadoop), timeoutMillis);
    }

    private static String sync(Map<String, String> options, Configuration hadoop) {
        Properties properties = new Properties();
        properties.putAll(options);
        // The tool writes its own settings into the configuration.
        try (OwnTables tool = new OwnTables(properties, new Configuration(hadoop))) {
            tool.syncHoodieTable();
            return tool.leftOut().stream()
                    .limit(MOST_NAMES)
                    .map(path -> path.replace('\n', ' '))
                    .collect(Collectors.joining("\n"));
        }
    }

    private static String explained(Throwable error) {
        List<Throwable> causes = new ArrayList<>();
        for (Throwable at = error; at != null && causes.size() < MOST_CAUSES; at = at.getCause()) {
            causes.add(at);
        }
        String reason = "SyncFailed";
        for (Throwable cause : causes) {
            if (cause instanceof OtherTable) {
                return "TableTaken\n" + cause.getMessage();
            }
            String message = String.valueOf(cause.getMessage());
            if (message.startsWith("hive database does not exist")) {
                return "DatabaseMissing\nthe database does not exist in the metastore";
            }
            if (cause.getClass().getName().startsWith("org.apache.thrift.transport.")
                    || message.contains("Could not connect to meta store")) {
                reason = "ConnectionFailed";
            }
        }
        Throwable root = causes.get(causes.size() - 1);
        Throwable before = causes.get(Math.max(0, causes.size() - 2));
        String detail = root.getClass().getSimpleName() + ": " + root.getMessage();
        return reason + "\n" + (before == root ? detail : before.getMessage() + ": " + detail).replace('\n', ' ');
    }

    /** Changes tables at the table's own location only. */
    private static final class OwnTables extends HiveSyncTool {
        private final String basePath;

        OwnTables(Properties properties, Configuration hadoop) {
            super(properties, hadoop);
            this.basePath = properties.getProperty(BASE_PATH);
        }

        @Override
        protected void initSyncClient(HiveSyncConfig settings, HoodieTableMetaClient metaClient) {
            this.syncClient = new LivingPartitions(settings, metaClient);
        }

        @Override
        protected void syncHoodieTable(String name, boolean realtime, boolean optimized) {
            if (syncClient.tableExists(name)) {
                String location = String.valueOf(syncClient.getTableLocation(name));
                if (!same(location, basePath)) {
                    throw new OtherTable("table " + name + " exists in the metastore with the location " + location
                            + ", which is not this table: drop it there, or choose another name");
                }
                ((LivingPartitions) syncClient).compareColumns(name);
            }
            super.syncHoodieTable(name, realtime, optimized);
        }

        /** Paths of partitions that are in no table of the metastore. */
        Set<String> leftOut() {
            return ((LivingPartitions) syncClient).leftOut();
        }

        private static boolean same(String one, String other) {
            try {
                return plain(one).equals(plain(other));
            } catch (IllegalArgumentException notAPath) {
                return false;
            }
        }

        /** With one scheme for the clients of S3, which all see the same files. */
        private static Path plain(String location) {
            return new Path(location.replaceFirst("^s3[an]?://", "s3://"));
        }
    }
}
