package io.hudioperator.catalog;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.hive.HiveSyncConfig;
import org.apache.hudi.hive.HiveSyncTool;
import org.apache.hudi.sync.common.HoodieSyncConfig;

/** One run of Hudi's HiveSyncTool, in a separate thread and with a time limit. */
public final class HiveSync {
    static final String BASE_PATH = "hoodie.datasource.meta.sync.base.path";
    private static final int MOST_CAUSES = 20;
    private static final int MOST_NAMES = 5;
    /** Threads of all tables, with those that a metastore holds beyond their limit. */
    private static final int MOST_THREADS = 8;

    static final Runs RUNS = new Runs(MOST_THREADS, HiveSync::explained);

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

    /**
     * Drop the tables that one HudiTable has made in the metastore; no data goes with them.
     *
     * @param target as of {@link #run}
     * @param options as of {@link #run}
     * @param tables their names
     * @param owner the mark of the HudiTable that made them
     * @param hadoop as of {@link #run}
     * @param timeoutMillis as of {@link #run}
     * @return as of {@link #run}; after the line feed follow those that stay, one a line, each with
     *     the reason
     */
    public static String drop(
            String target,
            Map<String, String> options,
            List<String> tables,
            String owner,
            Configuration hadoop,
            long timeoutMillis)
            throws InterruptedException {
        String name = options.get(BASE_PATH) + " " + target;
        return RUNS.run(name, () -> "\n" + dropped(options, tables, owner, hadoop), timeoutMillis);
    }

    private static String dropped(
            Map<String, String> options, List<String> tables, String owner, Configuration hadoop) {
        Properties properties = new Properties();
        properties.putAll(options);
        HiveSyncConfig settings = new HiveSyncConfig(properties, new Configuration(hadoop));
        Metastore metastore = new Metastore(settings);
        String database = settings.getStringOrDefault(HoodieSyncConfig.META_SYNC_DATABASE_NAME);
        List<String> kept = new ArrayList<>();
        for (String table : tables) {
            Map<String, String> there = metastore.properties(database, table);
            if (there == null) {
                continue;
            }
            String why = Locations.same(there.get(Metastore.LOCATION), options.get(BASE_PATH))
                    ? Owner.problem(there.get(Owner.PROPERTY), owner)
                    : "it has another location";
            if (why.isEmpty()) {
                metastore.dropTable(database, table);
            } else {
                kept.add("table " + table + " stays: " + why);
            }
        }
        return String.join("\n", kept);
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
            if (cause instanceof Held.NotHeld) {
                return "NotHeld\n" + cause.getMessage();
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
            Held.check(syncClient.getStorageSchema(true));
            if (syncClient.tableExists(name)) {
                String location = String.valueOf(syncClient.getTableLocation(name));
                if (!Locations.same(location, basePath)) {
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
    }
}
