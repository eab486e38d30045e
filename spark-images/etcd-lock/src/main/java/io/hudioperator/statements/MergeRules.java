package io.hudioperator.statements;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.table.HoodieTableConfig;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.util.Option;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.BaseRelation;
import scala.collection.Iterator;

/**
 * Hudi executes some {@code MERGE INTO} statements differently from what they say, and reports
 * success: it upserts by record key and ignores other conditions in {@code ON}, evaluates all
 * {@code UPDATE} clauses before the {@code DELETE} clauses, and ignores clauses that it does not
 * know. Such statements are refused before they run.
 */
final class MergeRules {
    private MergeRules() {}

    static void require(MergeIntoTable merge) {
        HoodieTableMetaClient table = target(merge.targetTable());
        requireClauses(merge);
        requireOrder(merge);
        requireKey(merge, table);
        requireWholeRows(merge, table);
    }

    /** Hudi does not know this clause (F282). */
    private static void requireClauses(MergeIntoTable merge) {
        if (merge.notMatchedBySourceActions().nonEmpty()) {
            throw Statements.refusal(
                    "MERGE INTO with WHEN NOT MATCHED BY SOURCE",
                    "DELETE FROM or UPDATE for these rows, and MERGE INTO for the others");
        }
    }

    /** SQL applies the first clause whose condition holds, Hudi the updating ones first (F287). */
    private static void requireOrder(MergeIntoTable merge) {
        boolean deletes = false;
        for (MergeAction action : list(merge.matchedActions())) {
            if (deletes && action instanceof UpdateAction) {
                throw Statements.refusal(
                        "MERGE INTO with WHEN MATCHED … DELETE before WHEN MATCHED … UPDATE",
                        "WHEN MATCHED AND NOT (…) THEN UPDATE … WHEN MATCHED THEN DELETE");
            }
            deletes = deletes || action instanceof DeleteAction;
        }
    }

    /**
     * {@code ON} must compare each column of the key, and otherwise only partition columns (F288).
     */
    private static void requireKey(MergeIntoTable merge, HoodieTableMetaClient table) {
        if (table == null) {
            return; // a table without commits has no row that could match
        }
        HoodieTableConfig config = table.getTableConfig();
        Set<String> keys = names(config.getRecordKeyFields());
        Set<String> known = new TreeSet<>(keys);
        known.addAll(names(config.getPartitionFields()));
        Set<String> others = new TreeSet<>();
        for (Expression condition : conditions(merge.mergeCondition())) {
            String column = column(condition, merge.targetTable());
            keys.remove(column);
            if (!known.contains(column)) {
                others.add(column.isEmpty() ? condition.sql() : column);
            }
        }
        if (!others.isEmpty() || !keys.isEmpty()) {
            throw Statements.refusal(
                    "MERGE INTO whose ON "
                            + (keys.isEmpty()
                                    ? "compares more than the key (" + String.join(", ", others) + ")"
                                    : "does not compare the whole key (" + String.join(", ", keys) + ")"),
                    "ON with each column of the key, and other conditions in WHEN MATCHED AND …");
        }
    }

    private static Set<String> names(Option<String[]> fields) {
        return Arrays.stream(fields.isPresent() ? fields.get() : new String[0])
                .map(name -> name.toLowerCase(Locale.ROOT))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private static List<Expression> conditions(Expression on) {
        if (on instanceof And) {
            List<Expression> all = new ArrayList<>(conditions(((And) on).left()));
            all.addAll(conditions(((And) on).right()));
            return all;
        }
        return List.of(on);
    }

    /** The target's column that is compared with something; empty when there is none. */
    private static String column(Expression condition, LogicalPlan target) {
        if (condition instanceof EqualTo) {
            for (Expression side : List.of(((EqualTo) condition).left(), ((EqualTo) condition).right())) {
                Expression plain = side;
                while (plain instanceof Cast) {
                    plain = ((Cast) plain).child();
                }
                if (plain instanceof Attribute && target.outputSet().contains((Attribute) plain)) {
                    return ((Attribute) plain).name().toLowerCase(Locale.ROOT);
                }
            }
        }
        return "";
    }

    /**
     * Refuses an {@code UPDATE SET} of some columns of a MergeOnRead table. Hudi would write only
     * these into a log file, which its incremental query cannot read (F213), or the others as null.
     */
    private static void requireWholeRows(MergeIntoTable merge, HoodieTableMetaClient table) {
        boolean copies = table != null && table.getTableType() == HoodieTableType.COPY_ON_WRITE;
        Set<String> all = new TreeSet<>();
        for (Attribute attribute : list(merge.targetTable().output())) {
            String column = attribute.name().toLowerCase(Locale.ROOT);
            if (!HoodieRecord.HOODIE_META_COLUMNS.contains(column)) {
                all.add(column);
            }
        }
        for (MergeAction action : list(merge.matchedActions())) {
            Set<String> left = new TreeSet<>(all);
            if (action instanceof UpdateAction) {
                for (Assignment set : list(((UpdateAction) action).assignments())) {
                    Expression key = set.key();
                    left.remove(
                            key instanceof NamedExpression
                                    ? ((NamedExpression) key).name().toLowerCase(Locale.ROOT)
                                    : "");
                }
                if (!left.isEmpty() && !copies) {
                    throw Statements.refusal(
                            "MERGE INTO a MergeOnRead table that sets some of its columns (not "
                                    + String.join(", ", left) + ")",
                            "UPDATE SET * with a source that has all columns, or UPDATE");
                }
            }
        }
    }

    /** Null when it is not known, or has no commits. */
    private static HoodieTableMetaClient target(LogicalPlan target) {
        for (LogicalPlan leaf : list(target.collectLeaves())) {
            if (leaf instanceof LogicalRelation) {
                BaseRelation relation = ((LogicalRelation) leaf).relation();
                Object source =
                        relation instanceof HadoopFsRelation ? ((HadoopFsRelation) relation).location() : relation;
                return !source.getClass().getName().startsWith("org.apache.hudi.") || Relations.isEmpty(source)
                        ? null
                        : Relations.table(source);
            }
        }
        return null;
    }

    private static <T> List<T> list(scala.collection.Seq<T> all) {
        List<T> found = new ArrayList<>();
        Iterator<T> each = all.iterator();
        while (each.hasNext()) {
            found.add(each.next());
        }
        return found;
    }
}
