package io.hudioperator.catalog;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.common.engine.HoodieLocalEngineContext;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.view.HoodieTableFileSystemView;
import org.apache.hudi.hive.HiveSyncConfig;
import org.apache.hudi.hive.HiveSyncTool;
import org.apache.hudi.hive.HoodieHiveSyncClient;

/** One run of Hudi's HiveSyncTool, in a thread of its own and with a time limit. */
public final class HiveSync {
    private static final String BASE_PATH = "hoodie.datasource.meta.sync.base.path";
    private static final String DATABASE = "hoodie.datasource.hive_sync.database";
    private static final String TABLE = "hoodie.datasource.hive_sync.table";
    private static final int MOST_CAUSES = 20;
    /** Runs whose thread has not ended: at most one for each table and its name in a catalog. */
    private static final Set<String> RUNNING = ConcurrentHashMap.newKeySet();

    private HiveSync() {}

    /**
     * Make the metastore's tables what the Hudi table is now.
     *
     * @param options of Hudi's tool, among them base path, database and table
     * @param hadoop settings of the table's storage and of the metastore's client; not changed
     * @param timeoutMillis the limit of the whole run. A thread that waits for the metastore even
     *     after it is left behind; until it ends, each further run answers {@code Timeout}.
     * @return empty when it is done; else a reason (one word), a line feed, and what is wrong, in
     *     words of this class, of Hudi or of the metastore
     */
    public static String run(Map<String, String> options, Configuration hadoop, long timeoutMillis)
            throws InterruptedException {
        String key = options.get(BASE_PATH) + " " + options.get(DATABASE) + "." + options.get(TABLE);
        if (!RUNNING.add(key)) {
            return "Timeout\nthe metastore still holds an earlier try, which is past its time limit";
        }
        AtomicReference<String> outcome = new AtomicReference<>();
        Thread thread = new Thread(
                () -> {
                    try {
                        sync(options, hadoop);
                        outcome.set("");
                    } catch (Throwable error) { // NOPMD - an Error is told as well, not lost in a thread
                        outcome.set(explained(error));
                    } finally {
                        RUNNING.remove(key);
                    }
                },
                "catalog");
        thread.setDaemon(true);
        thread.start();
        thread.join(timeoutMillis);
        String said = outcome.get();
        if (said == null) {
            thread.interrupt();
            return "Timeout\nnot done within " + timeoutMillis / 1000 + " s";
        }
        return said;
    }

    private static void sync(Map<String, String> options, Configuration hadoop) {
        Properties properties = new Properties();
        properties.putAll(options);
        // The tool writes its own settings into the configuration.
        try (HiveSyncTool tool = new OwnTables(properties, new Configuration(hadoop))) {
            tool.syncHoodieTable();
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

    /** The metastore has another table of that name. */
    private static final class OtherTable extends RuntimeException {
        OtherTable(String message) {
            super(message);
        }
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
            }
            super.syncHoodieTable(name, realtime, optimized);
        }

        private static boolean same(String one, String other) {
            try {
                return new Path(one).equals(new Path(other));
            } catch (IllegalArgumentException notAPath) {
                return false;
            }
        }
    }

    /**
     * Lists partitions that have a file of data. A deleted partition keeps its folder, and Hudi
     * would add it again whenever it lists all of them.
     */
    private static final class LivingPartitions extends HoodieHiveSyncClient {
        LivingPartitions(HiveSyncConfig settings, HoodieTableMetaClient metaClient) {
            super(settings, metaClient);
        }

        @Override
        public List<String> getAllPartitionPathsOnStorage() {
            HoodieLocalEngineContext context = new HoodieLocalEngineContext(metaClient.getStorageConf());
            try (HoodieTableFileSystemView view = HoodieTableFileSystemView.fileListingBasedFileSystemView(
                    context,
                    metaClient,
                    metaClient.getActiveTimeline().getCommitsTimeline().filterCompletedInstants())) {
                return super.getAllPartitionPathsOnStorage().stream()
                        .filter(partition ->
                                view.getLatestFileSlices(partition).findAny().isPresent())
                        .collect(Collectors.toList());
            }
        }
    }
}
