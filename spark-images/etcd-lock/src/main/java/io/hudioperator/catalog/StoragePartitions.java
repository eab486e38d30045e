package io.hudioperator.catalog;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.hudi.common.engine.HoodieLocalEngineContext;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.table.view.HoodieTableFileSystemView;
import org.apache.hudi.hive.HoodieHiveSyncException;
import org.apache.hudi.sync.common.model.PartitionValueExtractor;

/** Partitions of a table that a catalog can describe, and those that have a data file. */
final class StoragePartitions {
    private static final int THREADS = 8;
    /** Partitions whose files a thread keeps in memory at the same time. */
    private static final int AT_ONCE = 64;

    private final HoodieTableMetaClient metaClient;
    private final PartitionValueExtractor values;
    private final Supplier<List<String>> types;
    private final Set<String> leftOut = new ConcurrentSkipListSet<>();

    /** @param types of the partition columns, in Hive's words; asked for when there are paths */
    StoragePartitions(HoodieTableMetaClient metaClient, PartitionValueExtractor values, Supplier<List<String>> types) {
        this.metaClient = metaClient;
        this.values = values;
        this.types = types;
    }

    /** Paths that were met and that no entry of a catalog can describe. */
    Set<String> leftOut() {
        return leftOut;
    }

    /** Those with a value for each partition column, of its type. */
    List<String> described(List<String> paths) {
        if (paths.isEmpty()) {
            return paths;
        }
        List<String> columns = types.get();
        return columns.isEmpty()
                ? paths
                : paths.stream().filter(path -> describes(path, columns)).collect(Collectors.toList());
    }

    private boolean describes(String path, List<String> columns) {
        List<String> found = values.extractPartitionValuesInPath(path);
        boolean whole = found.size() == columns.size()
                && IntStream.range(0, columns.size()).allMatch(at -> Held.reads(found.get(at), columns.get(at)));
        if (!whole) {
            leftOut.add(path);
        }
        return whole;
    }

    /** Those with a file of data. A deleted partition keeps its folder. */
    List<String> living(List<String> paths) {
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
