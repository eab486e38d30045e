package io.hudioperator.statements;

import io.hudioperator.contract.ErrorCode;
import java.lang.ref.WeakReference;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.exception.HoodieWriteConflictException;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.BaseRelation;
import scala.collection.Iterator;

/** Hudi's relations in a plan: which table each reads, and since when. */
final class Relations {
    /**
     * Sources that were found to be listed at once, by identity, each with its timeline. One that
     * is refreshed takes another timeline, and lists its files again (F484).
     */
    private static final Map<Integer, List<WeakReference<Object>>> LISTED = new ConcurrentHashMap<>();

    private Relations() {}

    /**
     * Refuses a relation that a clean was begun beside. Hudi takes the timeline, and then lists the
     * files. A clean that was planned between may have deleted what is the newest version of a file
     * group to that timeline: the group is left out, without an error (F473). A clean that was
     * planned before has left those versions.
     *
     * @param table the table's timeline as the relation has it
     */
    static void requireListedAtOnce(Object source, HoodieTableMetaClient table) {
        int hash = System.identityHashCode(source);
        HoodieTimeline timeline = table.getActiveTimeline();
        List<WeakReference<Object>> known = LISTED.get(hash);
        if (known != null && known.get(0).get() == source && known.get(1).get() == timeline) {
            return;
        }
        Set<String> before = cleans(timeline);
        HoodieTimeline now = table.getTimelineLayout().getTimelineFactory().createActiveTimeline(table);
        for (String clean : cleans(now)) {
            if (!before.contains(clean)) {
                throw new HoodieWriteConflictException(
                        ErrorCode.SNAPSHOT_MOVED.message("clean " + clean + " was begun since the timeline of "
                                + table.getBasePath() + " was read, and its files may have been listed after it;"
                                + " read the table again"));
            }
        }
        LISTED.values().removeIf(listed -> listed.get(0).get() == null);
        LISTED.put(hash, List.of(new WeakReference<>(source), new WeakReference<>(timeline)));
    }

    private static Set<String> cleans(HoodieTimeline timeline) {
        return timeline.getInstantsAsStream()
                .filter(instant -> instant.getAction().equals(HoodieTimeline.CLEAN_ACTION))
                .map(HoodieInstant::requestedTime)
                .collect(Collectors.toSet());
    }

    static HoodieTableMetaClient table(Object source) {
        try {
            return (HoodieTableMetaClient)
                    source.getClass().getMethod("metaClient").invoke(source);
        } catch (ReflectiveOperationException e) { // an unknown kind of read is not "no read" (I11)
            throw ErrorCode.STATEMENT.exception(
                    "cannot tell which table " + source.getClass().getName() + " reads, and since when", e);
        }
    }

    /** The relation of a table without commits; it does not say which table it is. */
    static boolean isEmpty(Object source) {
        return source.getClass().getSimpleName().equals("EmptyRelation");
    }

    /** The table that a statement changes; null when it is not a Hudi table, or not known. */
    static HoodieTableMetaClient target(LogicalPlan plan, SparkSession spark) {
        Iterator<LogicalPlan> leaves = plan.collectLeaves().iterator();
        while (leaves.hasNext()) {
            LogicalPlan leaf = leaves.next();
            if (leaf instanceof LogicalRelation) {
                BaseRelation relation = ((LogicalRelation) leaf).relation();
                Object source =
                        relation instanceof HadoopFsRelation ? ((HadoopFsRelation) relation).location() : relation;
                if (!source.getClass().getName().startsWith("org.apache.hudi.")) {
                    return null;
                }
                return isEmpty(source) ? named(((LogicalRelation) leaf).catalogTable(), spark) : table(source);
            }
        }
        return null;
    }

    private static HoodieTableMetaClient named(scala.Option<CatalogTable> name, SparkSession spark) {
        if (name.isEmpty() || name.get().storage().locationUri().isEmpty()) {
            return null;
        }
        return at(name.get().storage().locationUri().get().toString(), spark);
    }

    /** The table at a path; an exception of Hudi's when there is none. */
    static HoodieTableMetaClient at(String path, SparkSession spark) {
        return HoodieTableMetaClient.builder()
                .setConf(HadoopFSUtils.getStorageConfWithCopy(
                        spark.sessionState().newHadoopConf()))
                .setBasePath(path)
                .build();
    }
}
