package io.hudioperator.statements;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.hudi.common.table.HoodieTableConfig;
import org.apache.hudi.common.util.Option;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * Match between the rows of the source of a {@code MERGE INTO} and the records of the table. The
 * statement defines it in {@code ON}. Hudi looks for a record by key and partition, which it takes
 * from columns of the source, by their names where it can.
 */
final class MergeKeys {
    private final MergeIntoTable merge;
    private final Set<String> keys;
    private final Set<String> partitions;
    /** Values that {@code ON} compares with columns of the key and of the partition. */
    private final Map<String, Expression> compared = new TreeMap<>();
    /** All other comparisons. */
    private final Set<String> others = new TreeSet<>();

    MergeKeys(MergeIntoTable merge, HoodieTableConfig table) {
        this.merge = merge;
        keys = names(table.getRecordKeyFields());
        partitions = names(table.getPartitionFields());
        for (Expression condition : conditions(merge.mergeCondition())) {
            compare(condition);
        }
    }

    private static Set<String> names(Option<String[]> fields) {
        return Arrays.stream(fields.isPresent() ? fields.get() : new String[0])
                .map(MergeKeys::lower)
                .collect(Collectors.toCollection(LinkedHashSet::new));
    }

    private static List<Expression> conditions(Expression on) {
        if (on instanceof And) {
            List<Expression> all = new ArrayList<>(conditions(((And) on).left()));
            all.addAll(conditions(((And) on).right()));
            return all;
        }
        return List.of(on);
    }

    private void compare(Expression condition) {
        String column = condition.sql();
        if (condition instanceof EqualTo) {
            Expression left = plain(((EqualTo) condition).left());
            Expression right = plain(((EqualTo) condition).right());
            boolean isLeft = isOf(merge.targetTable(), left);
            if (isLeft || isOf(merge.targetTable(), right)) {
                column = lower(((Attribute) (isLeft ? left : right)).name());
                Expression with = isLeft ? right : left;
                boolean known = keys.contains(column) || partitions.contains(column);
                if (known && compared.getOrDefault(column, with).semanticEquals(with)) {
                    compared.put(column, with);
                    return;
                }
            }
        }
        others.add(column);
    }

    private static boolean isOf(LogicalPlan table, Expression column) {
        return column instanceof Attribute && table.outputSet().contains((Attribute) column);
    }

    /** Without casts: Hudi compares the values as they are. */
    private static Expression plain(Expression expression) {
        Expression plain = expression;
        while (plain instanceof Cast) {
            plain = ((Cast) plain).child();
        }
        return plain;
    }

    private static String lower(String name) {
        return name.toLowerCase(Locale.ROOT);
    }

    void require() {
        requireOn();
        requireNames();
        for (MergeAction action : list(merge.matchedActions())) {
            if (action instanceof UpdateAction) {
                requireSame("UPDATE", ((UpdateAction) action).assignments(), false);
            }
        }
        for (MergeAction action : list(merge.notMatchedActions())) {
            if (action instanceof InsertAction) {
                requireSame("INSERT", ((InsertAction) action).assignments(), true);
            }
        }
    }

    /**
     * {@code ON} names each column of the key (F288) and of the partition (F294), and nothing
     * besides. Hudi ignores other conditions, and looks into one partition only.
     */
    private void requireOn() {
        Set<String> left = new LinkedHashSet<>(keys);
        left.removeAll(compared.keySet());
        Set<String> folders = new LinkedHashSet<>(partitions);
        folders.removeAll(compared.keySet());
        String wrong = "";
        if (!left.isEmpty()) {
            wrong = "does not compare the whole key (" + String.join(", ", left) + ")";
        } else if (!others.isEmpty()) {
            wrong = "compares more than key and partition (" + String.join(", ", others) + ")";
        } else if (!folders.isEmpty()) {
            wrong = "does not compare the partition (" + String.join(", ", folders) + ")";
        }
        if (!wrong.isEmpty()) {
            throw Statements.refusal(
                    "MERGE INTO whose ON " + wrong,
                    "ON with each column of key and partition, and other conditions in WHEN MATCHED AND …");
        }
    }

    /** Hudi takes the source's column of the same name, whatever {@code ON} compares (F293). */
    private void requireNames() {
        for (Attribute column : list(merge.sourceTable().output())) {
            Expression meant = compared.get(lower(column.name()));
            if (meant != null && !meant.semanticEquals(column)) {
                throw Statements.refusal(
                        "MERGE INTO whose ON compares " + lower(column.name()) + " with " + meant.sql()
                                + ", and whose source has a column " + column.name(),
                        "a source whose columns for key and partition have the names of the table's");
            }
        }
    }

    /** A record keeps key and partition: Hudi stores it where it has looked for it (F293). */
    private void requireSame(String clause, Seq<Assignment> assignments, boolean each) {
        Set<String> left = new LinkedHashSet<>(compared.keySet());
        for (Assignment set : list(assignments)) {
            String column = set.key() instanceof NamedExpression ? lower(((NamedExpression) set.key()).name()) : "";
            Expression meant = compared.get(column);
            Expression value = plain(set.value());
            boolean itself = !each && isOf(merge.targetTable(), value) && value.semanticEquals(set.key());
            if (meant != null && !meant.semanticEquals(value) && !itself) {
                throw Statements.refusal(
                        "MERGE INTO whose " + clause + " sets " + column + " to "
                                + set.value().sql() + ", which ON compares with " + meant.sql(),
                        "DELETE FROM and INSERT INTO for records that change key or partition");
            }
            left.remove(column);
        }
        if (each && !left.isEmpty()) {
            throw Statements.refusal(
                    "MERGE INTO whose " + clause + " does not set " + String.join(", ", left),
                    "INSERT with each column of key and partition");
        }
    }

    static <T> List<T> list(Seq<T> all) {
        List<T> found = new ArrayList<>();
        Iterator<T> each = all.iterator();
        while (each.hasNext()) {
            found.add(each.next());
        }
        return found;
    }
}
