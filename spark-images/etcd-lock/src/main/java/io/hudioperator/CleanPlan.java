package io.hudioperator;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hudi.avro.model.HoodieActionInstant;
import org.apache.hudi.avro.model.HoodieCleanFileInfo;
import org.apache.hudi.avro.model.HoodieCleanerPlan;
import org.apache.hudi.common.engine.HoodieEngineContext;
import org.apache.hudi.common.model.HoodieCleaningPolicy;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.util.CleanerUtils;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.config.HoodieCleanConfig;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.table.HoodieTable;
import org.apache.hudi.table.action.clean.CleanPlanner;

/**
 * The plan of a clean that takes nothing from a pending write (F464), and no folder (F465). Hudi's
 * own plan may delete file versions that a pending write still has to list, and deletes the folder
 * of a partition that has no files when the plan is made. The runtime makes, checks and saves it
 * (service_actions.py).
 */
public final class CleanPlan {
    private static final String POLICY = HoodieCleanConfig.CLEANER_POLICY.key();
    private static final String COMMITS = HoodieCleanConfig.CLEANER_COMMITS_RETAINED.key();

    private final HoodieCleanerPlan plan;
    private final HoodieActionInstant retained;
    private final List<String> emptied;

    CleanPlan(HoodieCleanerPlan plan, HoodieActionInstant retained, List<String> emptied) {
        this.plan = plan;
        this.retained = retained;
        this.emptied = emptied;
    }

    /**
     * Returns what both the configured policy and a policy that keeps the newest commits would
     * delete; null when that is nothing. Nothing is written, but the configuration is changed.
     *
     * @param commits number of newest commits whose files stay, with those that they replaced; 0
     *     when no write is pending
     */
    public static CleanPlan of(
            HoodieTable<?, ?, ?, ?> table, HoodieEngineContext engine, HoodieWriteConfig config, int commits) {
        // The runtime decides when a clean is due, also without a commit since the last one:
        // otherwise files that a deleted savepoint has kept would not be deleted (F596).
        config.setValue(HoodieCleanConfig.CLEAN_TRIGGER_MAX_COMMITS.key(), "0");
        String policy = config.getCleanerPolicy().name();
        boolean byCommits = config.getCleanerPolicy() == HoodieCleaningPolicy.KEEP_LATEST_COMMITS;
        if (byCommits) {
            config.setValue(COMMITS, String.valueOf(Math.max(commits, config.getCleanerCommitsRetained())));
        }
        if (!policyOfLast(table).equals(policy) || !table.isPartitioned()) {
            // Files that the other policy has left in partitions that were not written since. A
            // table without partitions has one to list, and Hudi notes no savepoints in its cleans.
            config.setValue(HoodieCleanConfig.CLEANER_INCREMENTAL_MODE_ENABLE.key(), "false");
        }
        if (config.getCleanerPolicy() == HoodieCleaningPolicy.KEEP_LATEST_BY_HOURS
                && !new CleanPlanner<>(engine, table, config)
                        .getEarliestCommitToRetain()
                        .isPresent()) {
            // Hudi has no bound, and plans nothing, when no commit was requested within the hours
            // (F482): files that were replaced before the newest commit are older than the hours.
            config.setValue(POLICY, HoodieCleaningPolicy.KEEP_LATEST_COMMITS.name());
            config.setValue(COMMITS, String.valueOf(Math.max(commits, 1)));
            byCommits = true;
        }
        HoodieCleanerPlan plan = planned(table, engine);
        if (plan != null) {
            plan.setPolicy(policy);
        }
        HoodieActionInstant retained = byCommits && plan != null ? plan.getEarliestInstantToRetain() : null;
        if (plan != null && commits > 0 && !byCommits) {
            config.setValue(POLICY, HoodieCleaningPolicy.KEEP_LATEST_COMMITS.name());
            config.setValue(COMMITS, String.valueOf(commits));
            // An incremental plan leaves out partitions that were not written since the last clean,
            // and their older versions may be what the configured policy deletes.
            config.setValue(HoodieCleanConfig.CLEANER_INCREMENTAL_MODE_ENABLE.key(), "false");
            HoodieCleanerPlan other = planned(table, engine);
            retained = other == null ? null : other.getEarliestInstantToRetain();
            restrict(plan, other);
        }
        if (plan == null || plan.getFilePathsToBeDeletedPerPartition().isEmpty()) {
            return null;
        }
        // An empty folder costs nothing, and a writer that writes to the partition meanwhile needs
        // it.
        List<String> emptied = plan.getPartitionsToBeDeleted() == null ? List.of() : plan.getPartitionsToBeDeleted();
        plan.setPartitionsToBeDeleted(List.of());
        return new CleanPlan(plan, retained, emptied);
    }

    /** The policy of the last completed clean; empty when there is none. */
    private static String policyOfLast(HoodieTable<?, ?, ?, ?> table) {
        Option<HoodieInstant> last =
                table.getCleanTimeline().filterCompletedInstants().lastInstant();
        try {
            return last.isPresent()
                    ? CleanerUtils.getCleanerPlan(table.getMetaClient(), last.get())
                            .getPolicy()
                    : "";
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static HoodieCleanerPlan planned(HoodieTable<?, ?, ?, ?> table, HoodieEngineContext engine) {
        Option<HoodieCleanerPlan> found = table.createCleanerPlan(engine, Option.empty());
        return found.isPresent() ? found.get() : null;
    }

    /** Leaves in the plan only what the other one deletes, too (null: nothing). */
    static void restrict(HoodieCleanerPlan plan, HoodieCleanerPlan other) {
        Map<String, List<HoodieCleanFileInfo>> left = new HashMap<>();
        Map<String, List<HoodieCleanFileInfo>> others =
                other == null ? Map.of() : other.getFilePathsToBeDeletedPerPartition();
        plan.getFilePathsToBeDeletedPerPartition().forEach((partition, files) -> {
            Set<String> both = others.getOrDefault(partition, List.of()).stream()
                    .map(HoodieCleanFileInfo::getFilePath)
                    .collect(Collectors.toSet());
            List<HoodieCleanFileInfo> some =
                    files.stream().filter(f -> both.contains(f.getFilePath())).collect(Collectors.toList());
            if (!some.isEmpty()) {
                left.put(partition, some);
            }
        });
        plan.setFilePathsToBeDeletedPerPartition(left);
        HoodieActionInstant mine = plan.getEarliestInstantToRetain();
        HoodieActionInstant bound = other == null ? null : other.getEarliestInstantToRetain();
        if (bound != null && (mine == null || bound.getTimestamp().compareTo(mine.getTimestamp()) < 0)) {
            plan.setEarliestInstantToRetain(bound);
        }
    }

    /**
     * Lets the plan's bound be no later than what was not completed when it was planned. The next
     * incremental clean reads the partitions that were written from the bound on, and archival
     * keeps the commits that have replaced files since: without them those files would be rows
     * again. If a plan has no bound, as with file versions, archival assumes that all files
     * replaced before the clean are deleted (F479).
     */
    static void bound(HoodieCleanerPlan plan, HoodieTimeline planned, HoodieTimeline now) {
        List<HoodieInstant> completed =
                planned.getWriteTimeline().filterCompletedInstants().getInstants();
        Set<String> known = completed.stream().map(HoodieInstant::requestedTime).collect(Collectors.toSet());
        if (plan.getEarliestInstantToRetain() == null) {
            completed.stream()
                    .max(Comparator.comparing(HoodieInstant::requestedTime))
                    .ifPresent(newest -> plan.setEarliestInstantToRetain(named(newest)));
        }
        HoodieActionInstant bound = plan.getEarliestInstantToRetain();
        if (bound != null) {
            Stream.of(planned, now)
                    .flatMap(each -> each.getWriteTimeline().getInstantsAsStream())
                    .filter(each -> !known.contains(each.requestedTime()))
                    .min(Comparator.comparing(HoodieInstant::requestedTime))
                    .filter(oldest -> oldest.requestedTime().compareTo(bound.getTimestamp()) < 0)
                    .ifPresent(oldest -> plan.setEarliestInstantToRetain(named(oldest)));
        }
    }

    private static HoodieActionInstant named(HoodieInstant instant) {
        return new HoodieActionInstant(
                instant.requestedTime(), instant.getAction(), instant.getState().name());
    }

    /**
     * Requested time of a commit: the files of those that were requested from then on stay, and
     * what they replaced. Empty when nothing is known to stay.
     */
    public String retained() {
        return retained == null || retained.getTimestamp() == null ? "" : retained.getTimestamp();
    }

    /** Partitions that were empty when the plan was made. */
    public List<String> emptied() {
        return emptied;
    }

    /** Puts the plan on the timeline; the caller holds the table's lock. */
    public void save(HoodieTable<?, ?, ?, ?> table) {
        HoodieTableMetaClient metaClient = table.getMetaClient();
        bound(
                plan,
                table.getActiveTimeline(),
                metaClient.getTimelineLayout().getTimelineFactory().createActiveTimeline(metaClient));
        HoodieInstant requested = metaClient.createNewInstant(
                HoodieInstant.State.REQUESTED, "clean", metaClient.createNewInstantTime(false));
        metaClient.getActiveTimeline().saveToCleanRequested(requested, Option.of(plan));
    }
}
