package io.hudioperator.catalog;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.hudi.common.engine.HoodieLocalEngineContext;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.table.view.HoodieTableFileSystemView;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.hive.HiveSyncConfig;
import org.apache.hudi.hive.HoodieHiveSyncClient;
import org.apache.hudi.hive.HoodieHiveSyncException;
import org.apache.hudi.sync.common.HoodieSyncConfig;

/**
 * The partitions of one run of Hudi's tool: those that have a file of data, and whose path has a
 * value for each column. A deleted partition keeps its folder, and Hudi would add it again whenever
 * it lists all of them.
 */
final class LivingPartitions extends HoodieHiveSyncClient {
    private static final int THREADS = 8;
    /** Partitions whose files a thread keeps in memory at the same time. */
    private static final int AT_ONCE = 64;

    private final HiveSyncConfig settings;
    private final List<String> columns;
    private final Set<String> leftOut = new ConcurrentSkipListSet<>();
    private List<String> all;

    LivingPartitions(HiveSyncConfig settings, HoodieTableMetaClient metaClient) {
        super(settings, metaClient);
        this.settings = settings;
        this.columns = settings.getSplitStrings(HoodieSyncConfig.META_SYNC_PARTITION_FIELDS);
    }

    /** Paths that this run has met and that no entry of a catalog can describe. */
    Set<String> leftOut() {
        return leftOut;
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
            all = living(described(super.getAllPartitionPathsOnStorage()));
        }
        return all;
    }

    @Override
    public List<String> getWrittenPartitionsSince(Option<String> instant, Option<String> completion) {
        return described(super.getWrittenPartitionsSince(instant, completion));
    }

    /** By its values: by name, as Hudi does it, a value with a slash is another partition. */
    @Override
    public void dropPartitions(String table, List<String> paths) {
        List<String> dropped = described(paths);
        if (!dropped.isEmpty()) {
            Metastore metastore = new Metastore(settings);
            for (String path : dropped) {
                metastore.dropPartition(
                        getDatabaseName(), table, partitionValueExtractor.extractPartitionValuesInPath(path));
            }
        }
    }

    private List<String> described(List<String> paths) {
        return columns.isEmpty()
                ? paths
                : paths.stream().filter(this::describes).collect(Collectors.toList());
    }

    private boolean describes(String path) {
        boolean whole =
                partitionValueExtractor.extractPartitionValuesInPath(path).size() == columns.size();
        if (!whole) {
            leftOut.add(path);
        }
        return whole;
    }

    private List<String> living(List<String> paths) {
        ExecutorService pool = Executors.newFixedThreadPool(THREADS, task -> {
            Thread thread = new Thread(task, "catalog-list");
            thread.setDaemon(true);
            return thread;
        });
        try {
            HoodieTimeline commits =
                    metaClient.getActiveTimeline().getCommitsTimeline().filterCompletedInstants();
            List<Callable<List<String>>> parts = new ArrayList<>();
            for (int from = 0; from < paths.size(); from += AT_ONCE) {
                List<String> part = paths.subList(from, Math.min(paths.size(), from + AT_ONCE));
                parts.add(() -> withData(part, commits));
            }
            List<String> found = new ArrayList<>();
            for (Future<List<String>> part : pool.invokeAll(parts)) {
                found.addAll(part.get());
            }
            return found;
        } catch (ExecutionException error) {
            throw new HoodieHiveSyncException("a partition is not listed", error.getCause());
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new HoodieHiveSyncException("the time limit was reached", error);
        } finally {
            pool.shutdownNow();
        }
    }

    private List<String> withData(List<String> paths, HoodieTimeline commits) {
        HoodieLocalEngineContext context = new HoodieLocalEngineContext(metaClient.getStorageConf());
        try (HoodieTableFileSystemView view =
                HoodieTableFileSystemView.fileListingBasedFileSystemView(context, metaClient, commits)) {
            return paths.stream()
                    .filter(path -> view.getLatestFileSlices(path).findAny().isPresent())
                    .collect(Collectors.toList());
        }
    }
}
