package io.hudioperator.statements;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.table.HoodieTableConfig;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteAction;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import scala.collection.Seq;

/**
 * Hudi executes some {@code MERGE INTO} statements differently from what they say, and reports
 * success: it upserts by record key and ignores other conditions in {@code ON}, evaluates all
 * {@code UPDATE} clauses before the {@code DELETE} clauses, and ignores clauses that it does not
 * know. Such statements are refused before they run.
 */
final class MergeRules {
    /** Scala keeps the order of at most as many entries of a map. */
    private static final int IN_ORDER = 4;

    private MergeRules() {}

    /** @param table the target; null when it is not known */
    static void require(MergeIntoTable merge, HoodieTableConfig table) {
        requireClauses(merge);
        requireOrder(merge);
        requireFirst("WHEN MATCHED … UPDATE", conditions(merge.matchedActions(), UpdateAction.class));
        requireFirst("WHEN NOT MATCHED … INSERT", conditions(merge.notMatchedActions(), InsertAction.class));
        if (table != null) {
            new MergeKeys(merge, table).require();
            requireOrdering(table);
            if (deletes(merge)) {
                requireTypes(merge, table);
            }
        }
        if (table == null || table.getTableType() != HoodieTableType.COPY_ON_WRITE) {
            requireOfSource(merge);
            requireWholeRows(merge);
            requireSameForNewRecords(merge);
        }
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
        for (MergeAction action : MergeKeys.list(merge.matchedActions())) {
            if (deletes && action instanceof UpdateAction) {
                throw Statements.refusal(
                        "MERGE INTO with WHEN MATCHED … DELETE before WHEN MATCHED … UPDATE",
                        "WHEN MATCHED AND NOT (…) THEN UPDATE … WHEN MATCHED THEN DELETE");
            }
            deletes = deletes || action instanceof DeleteAction;
        }
    }

    /** Conditions of the clauses of one kind, in their order. */
    private static List<Expression> conditions(Seq<MergeAction> actions, Class<? extends MergeAction> kind) {
        List<Expression> found = new ArrayList<>();
        for (MergeAction action : MergeKeys.list(actions)) {
            if (kind.isInstance(action)) {
                found.add(action.condition().isDefined() ? action.condition().get() : Literal$.MODULE$.TrueLiteral());
            }
        }
        return found;
    }

    /**
     * The first clause whose condition holds decides. Hudi keeps the clauses of a kind in a map
     * from their conditions: of two with one condition the last one counts, and more than four have
     * no order (F298).
     */
    private static void requireFirst(String clause, List<Expression> conditions) {
        if (conditions.size() > IN_ORDER) {
            throw Statements.refusal(
                    "MERGE INTO with more than " + IN_ORDER + " clauses " + clause + " (" + conditions.size() + ")",
                    "CASE WHEN … in the values of fewer clauses");
        }
        for (int i = 0; i < conditions.size(); i++) {
            for (Expression later : conditions.subList(i + 1, conditions.size())) {
                if (later.canonicalized().equals(conditions.get(i).canonicalized())) {
                    throw Statements.refusal(
                            "MERGE INTO with two clauses " + clause + " with one condition (" + later.sql() + ")",
                            "the first of them alone");
                }
            }
        }
    }

    /**
     * Without ordering columns Hudi keeps each of several rows of one record, looks no record up
     * unless there is an {@code UPDATE}, and needs an option that decides what becomes of the table
     * (F295).
     */
    private static void requireOrdering(HoodieTableConfig table) {
        if (table.getOrderingFields().isEmpty()) {
            throw Statements.refusal(
                    "MERGE INTO a table without orderingFields",
                    "UPDATE, DELETE FROM and INSERT INTO, or a table with orderingFields");
        }
    }

    /**
     * Hudi writes rows of a MergeOnRead table into log files without reading those that are there:
     * a condition on their columns never holds (F296).
     */
    private static void requireOfSource(MergeIntoTable merge) {
        for (MergeAction action : MergeKeys.list(merge.matchedActions())) {
            AttributeSet asked = action.condition().isEmpty()
                    ? AttributeSet.empty()
                    : action.condition()
                            .get()
                            .references()
                            .intersect(merge.targetTable().outputSet());
            if (asked.nonEmpty()) {
                throw Statements.refusal(
                        "MERGE INTO a MergeOnRead table with a condition on its columns ("
                                + action.condition().get().sql() + ")",
                        "UPDATE or DELETE FROM, or conditions on columns of the source");
            }
        }
    }

    /** Whether a clause deletes. */
    static boolean deletes(MergeIntoTable merge) {
        return MergeKeys.list(merge.matchedActions()).stream().anyMatch(DeleteAction.class::isInstance);
    }

    /**
     * Hudi stores a {@code DELETE} in a log file together with the source's value of the ordering
     * column, in its type in the source. Readers compare it with the record's value: if the types
     * differ, no reader can read the table any more (F311). In a CopyOnWrite table the write fails.
     *
     * <p>It compares keys and partitions as texts, and without an {@code UPDATE} or {@code INSERT}
     * clause in the source's types: it finds no record by 3 for 3.0, and succeeds (F376).
     */
    private static void requireTypes(MergeIntoTable merge, HoodieTableConfig table) {
        List<String> identity = OrderedDeletes.identity(table);
        for (Attribute column : MergeKeys.list(merge.targetTable().output())) {
            boolean isOrdering = table.getOrderingFields().stream().anyMatch(column.name()::equalsIgnoreCase);
            if (isOrdering || identity.stream().anyMatch(column.name()::equalsIgnoreCase)) {
                for (Attribute given : MergeKeys.list(merge.sourceTable().output())) {
                    boolean isSame = given.dataType().equals(column.dataType())
                            || !isOrdering && KeyTypes.isSameText(given.dataType(), column.dataType());
                    if (given.name().equalsIgnoreCase(column.name()) && !isSame) {
                        String type = column.dataType().sql();
                        throw Statements.refusal(
                                "MERGE INTO with WHEN MATCHED … DELETE, whose source has "
                                        + column.name() + " as "
                                        + given.dataType().sql() + " (the table: " + type + ")",
                                "CAST(" + column.name() + " AS " + type + ") AS " + column.name() + " in the source");
                    }
                }
            }
        }
    }

    /**
     * In a MergeOnRead table Hudi looks for a record in base files only, with a bucket index
     * nowhere: it computes the file group from the key. So a record counts as matched that a log
     * file has deleted (F314), or that is new in a bucket that has a file (F310): it is not
     * inserted, or by the clauses for records that are there. So what becomes of a row of the
     * source must not depend on whether its record is there.
     */
    private static void requireSameForNewRecords(MergeIntoTable merge) {
        List<Expression> updating = conditions(merge.matchedActions(), UpdateAction.class);
        List<Expression> inserting = conditions(merge.notMatchedActions(), InsertAction.class);
        if (!canonical(updating).equals(canonical(inserting))
                || !values(merge.matchedActions()).equals(values(merge.notMatchedActions()))) {
            throw Statements.refusal(
                    "MERGE INTO a MergeOnRead table whose WHEN NOT MATCHED … INSERT differs from"
                            + " its WHEN MATCHED … UPDATE",
                    "WHEN MATCHED AND … THEN UPDATE SET * and WHEN NOT MATCHED AND … THEN INSERT * with one condition,"
                            + " or UPDATE, DELETE FROM and INSERT INTO");
        }
    }

    private static List<Expression> canonical(List<Expression> all) {
        List<Expression> found = new ArrayList<>();
        all.forEach(one -> found.add(one.canonicalized()));
        return found;
    }

    /** Values that each updating or inserting clause sets, by column. */
    private static List<Map<String, Expression>> values(Seq<MergeAction> actions) {
        List<Map<String, Expression>> found = new ArrayList<>();
        for (MergeAction action : MergeKeys.list(actions)) {
            Seq<Assignment> assignments = action instanceof UpdateAction
                    ? ((UpdateAction) action).assignments()
                    : action instanceof InsertAction ? ((InsertAction) action).assignments() : null;
            if (assignments != null) {
                Map<String, Expression> set = new TreeMap<>();
                for (Assignment one : MergeKeys.list(assignments)) {
                    String column = one.key() instanceof NamedExpression
                            ? ((NamedExpression) one.key()).name()
                            : one.key().sql();
                    set.put(column.toLowerCase(Locale.ROOT), one.value().canonicalized());
                }
                found.add(set);
            }
        }
        return found;
    }

    /**
     * Refuses an {@code UPDATE SET} of some columns of a MergeOnRead table. Hudi would write only
     * these into a log file, which its incremental query cannot read (F213), or the others as null.
     */
    private static void requireWholeRows(MergeIntoTable merge) {
        Set<String> all = new TreeSet<>();
        for (Attribute attribute : MergeKeys.list(merge.targetTable().output())) {
            String column = attribute.name().toLowerCase(Locale.ROOT);
            if (!HoodieRecord.HOODIE_META_COLUMNS.contains(column)) {
                all.add(column);
            }
        }
        for (MergeAction action : MergeKeys.list(merge.matchedActions())) {
            Set<String> left = new TreeSet<>(all);
            if (action instanceof UpdateAction) {
                for (Assignment set : MergeKeys.list(((UpdateAction) action).assignments())) {
                    Expression key = set.key();
                    left.remove(
                            key instanceof NamedExpression
                                    ? ((NamedExpression) key).name().toLowerCase(Locale.ROOT)
                                    : "");
                }
                if (!left.isEmpty()) {
                    throw Statements.refusal(
                            "MERGE INTO a MergeOnRead table that sets some of its columns (not "
                                    + String.join(", ", left) + ")",
                            "UPDATE SET * with a source that has all columns, or UPDATE");
                }
            }
        }
    }
}
