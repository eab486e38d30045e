package io.hudioperator.statements;

import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.RowFrame$;
import org.apache.spark.sql.catalyst.expressions.SpecifiedWindowFrame;
import org.apache.spark.sql.catalyst.expressions.UnboundedFollowing$;
import org.apache.spark.sql.catalyst.expressions.UnboundedPreceding$;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.FileTable;
import org.apache.spark.sql.sources.BaseRelation;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * Whether Spark computes the same rows again when it has lost them. Spark's own {@code
 * deterministic} concerns expressions only. Rows also differ when they depend on the order in which
 * a shuffle delivers its blocks, or come from a source that has other rows at another time (F165).
 */
public final class RepeatablePlan {
    /** Operators whose rows, or whose numbers, depend on the order of their input. */
    private static final Set<String> BY_ORDER = Set.of(
            "LocalLimit",
            "GlobalLimit",
            "Offset",
            "Tail",
            "Sample",
            "DeduplicateWithinWatermark",
            "AttachDistributedSequence");

    /**
     * Functions whose value depends on the order of their input, for some of them only among
     * equals. Spark takes them for deterministic.
     */
    private static final Set<String> BY_POSITION = Set.of(
            "RowNumber",
            "NTile",
            "Lag",
            "Lead",
            "NthValue",
            "First",
            "Last",
            "AnyValue",
            "MaxBy",
            "MinBy",
            "Mode",
            "CollectList",
            "CollectSet",
            "ApproximatePercentile",
            "HistogramNumeric");

    /**
     * Leaves with the same rows each time. Nobody knows it of an RDD; checkpoints are RDDs, and so
     * are rows that come from Python.
     */
    private static final Set<String> SAME_ROWS = Set.of(
            "LocalRelation",
            "Range",
            "OneRowRelation",
            "LogicalRDD",
            "ExternalRDD",
            "CTERelationRef",
            "HiveTableRelation");

    private RepeatablePlan() {}

    /** False when the rows of this analyzed plan may differ each time they are computed. */
    public static boolean test(QueryPlan<?> plan) {
        return plan.deterministic()
                && !isByOrder(plan)
                && (plan.children().nonEmpty() || hasSameRows(plan))
                && all(plan.children())
                && all(plan.subqueries());
    }

    private static boolean all(Seq<?> plans) {
        Iterator<?> each = plans.iterator();
        while (each.hasNext()) {
            if (!test((QueryPlan<?>) each.next())) {
                return false;
            }
        }
        return true;
    }

    private static boolean isByOrder(QueryPlan<?> plan) {
        if (plan instanceof Deduplicate) { // the columns beside the keys are those of whichever row came first
            return ((Deduplicate) plan).keys().size()
                    < ((Deduplicate) plan).output().size();
        }
        return BY_ORDER.contains(plan.getClass().getSimpleName()) || anyByPosition(plan.expressions());
    }

    private static boolean anyByPosition(Seq<?> expressions) {
        Iterator<?> each = expressions.iterator();
        while (each.hasNext()) {
            Expression one = (Expression) each.next();
            if (BY_POSITION.contains(one.getClass().getSimpleName())
                    || isOfSomeRows(one)
                    || anyByPosition(one.children())) {
                return true;
            }
        }
        return false;
    }

    /**
     * An aggregate of a window that counts rows: among equals, which of them are in it depends on
     * their order. A frame of a range has all equals or none.
     */
    private static boolean isOfSomeRows(Expression expression) {
        if (!(expression instanceof WindowExpression)) {
            return false;
        }
        WindowExpression window = (WindowExpression) expression;
        if (!(window.windowFunction() instanceof AggregateExpression)
                || !(window.windowSpec().frameSpecification() instanceof SpecifiedWindowFrame)) {
            return false; // rank() and the like give equals the same
        }
        SpecifiedWindowFrame frame = (SpecifiedWindowFrame) window.windowSpec().frameSpecification();
        boolean all = frame.lower() == UnboundedPreceding$.MODULE$ && frame.upper() == UnboundedFollowing$.MODULE$;
        return frame.frameType() == RowFrame$.MODULE$ && !all;
    }

    private static boolean hasSameRows(QueryPlan<?> leaf) {
        if (leaf instanceof LogicalRelation) {
            BaseRelation relation = ((LogicalRelation) leaf).relation();
            String name = relation.getClass().getName();
            return relation instanceof HadoopFsRelation // names its files
                    || name.startsWith("org.apache.hudi.") // names its commits
                    || name.equals("org.apache.spark.sql.kafka010.KafkaRelation"); // names its offsets
        }
        if (leaf instanceof DataSourceV2Relation) {
            return ((DataSourceV2Relation) leaf).table() instanceof FileTable;
        }
        return SAME_ROWS.contains(leaf.getClass().getSimpleName());
    }
}
