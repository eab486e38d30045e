package io.hudioperator.statements;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Dataset$;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.optimizer.InlineCTE;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/**
 * Record of Kafka that each row of a batch was made from (F383).
 *
 * <p>The columns that say so are not part of the batch: the source's schema and {@code
 * transform.sql} leave them out. They are carried through the plan of the rows, as long as each row
 * is made from one record. They change neither which rows there are nor their values.
 */
public final class KafkaPlaces {
    private static final String RELATION = "org.apache.spark.sql.kafka010.KafkaRelation";
    private static final Set<String> NAMES = Set.of("topic", "partition", "offset");

    /** Nodes beside Project whose rows are each made from one row, and have all its columns. */
    private static final Set<String> ONE_ROW = Set.of(
            "Filter", "SubqueryAlias", "View", "Generate", "Sort", "Window", "Repartition", "RepartitionByExpression");

    private final List<Attribute> place = new ArrayList<>();

    private KafkaPlaces() {}

    /**
     * The rows, and three more columns: topic, partition and offset of the record ({@code PLACE} of
     * values.py). Only the rows when the plan does not show it, as when a row is made from several
     * records.
     */
    public static Dataset<Row> located(Dataset<Row> rows) {
        LogicalPlan plan = new InlineCTE(false).apply(rows.queryExecution().analyzed());
        KafkaPlaces found = new KafkaPlaces();
        LogicalPlan carried = found.carry(plan);
        if (carried == null) {
            return rows;
        }
        List<Column> columns = new ArrayList<>();
        list(plan.output()).forEach(one -> columns.add(new Column(one)));
        found.place.forEach(one -> columns.add(new Column(one).as("_hudiop_" + one.name())));
        return Dataset$.MODULE$.ofRows(rows.sparkSession(), carried).select(columns.toArray(new Column[0]));
    }

    /** The plan with the place among its columns; null when one of its nodes does not keep it. */
    private LogicalPlan carry(LogicalPlan plan) {
        if (isKafka(plan)) {
            list(plan.output()).stream()
                    .filter(one -> NAMES.contains(one.name()))
                    .forEach(place::add);
            return place.size() == NAMES.size() ? plan : null;
        }
        if (!(plan instanceof Project) && !ONE_ROW.contains(plan.getClass().getSimpleName())) {
            return null;
        }
        LogicalPlan below = carry(plan.children().head());
        if (below == null) {
            return null;
        }
        if (!(plan instanceof Project)) {
            return (LogicalPlan) plan.withNewChildren(seq(Collections.singletonList(below)));
        }
        List<NamedExpression> columns = new ArrayList<>(list(((Project) plan).projectList()));
        place.stream().filter(one -> !plan.outputSet().contains(one)).forEach(columns::add);
        return new Project(seq(columns), below);
    }

    private static boolean isKafka(LogicalPlan plan) {
        return plan instanceof LogicalRelation
                && ((LogicalRelation) plan).relation().getClass().getName().equals(RELATION);
    }

    private static <T> List<T> list(Seq<T> items) {
        return JavaConverters.seqAsJavaList(items);
    }

    private static <T> Seq<T> seq(List<T> items) {
        return JavaConverters.asScalaBuffer(items).toSeq();
    }
}
