package io.hudioperator.statements;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/**
 * Lets a {@code MERGE INTO} fail whose source has several rows for one record, when the table has
 * no ordering columns that decide between them. Hudi would store each of them as a record of its
 * own, or take any (F295). The check is a part of the source: its rows are computed once, and nothing is
 * committed when one of them is refused.
 */
public final class MergeSources extends Rule<LogicalPlan> {
    private static final String ROWS = "_hudioperator_rows_of_record";

    private final SparkSession spark;

    public MergeSources(SparkSession spark) {
        this.spark = spark;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        if (!(plan instanceof MergeIntoTable) || OpenSessions.all().stream().noneMatch(Session::isWriter)) {
            return plan;
        }
        MergeIntoTable merge = (MergeIntoTable) plan;
        HoodieTableMetaClient table = plan.resolved() ? Relations.target(merge.targetTable(), spark) : null;
        if (table == null || !table.getTableConfig().getOrderingFields().isEmpty() || isCounted(merge.sourceTable())) {
            return plan;
        }
        List<Expression> record = new MergeKeys(merge, table.getTableConfig()).ofSource();
        return record.isEmpty()
                ? plan
                : new MergeIntoTable(
                        merge.targetTable(),
                        counted(merge.sourceTable(), record),
                        merge.mergeCondition(),
                        merge.matchedActions(),
                        merge.notMatchedActions(),
                        merge.notMatchedBySourceActions());
    }

    private static boolean isCounted(LogicalPlan source) {
        return source instanceof Project
                && ((Project) source).child() instanceof Filter
                && MergeRules.list(((Project) source).child().output()).stream()
                        .anyMatch(column -> column.name().equals(ROWS));
    }

    private LogicalPlan counted(LogicalPlan source, List<Expression> record) {
        Column[] columns = record.stream().map(Column::new).toArray(Column[]::new);
        NamedExpression rows = functions
                .count(functions.lit(1L))
                .over(org.apache.spark.sql.expressions.Window.partitionBy(columns)
                        .rowsBetween(
                                org.apache.spark.sql.expressions.Window.unboundedPreceding(),
                                org.apache.spark.sql.expressions.Window.unboundedFollowing()))
                .as(ROWS)
                .named();
        Seq<NamedExpression> counts = seq(List.of(rows));
        Seq<SortOrder> unordered = seq(List.of());
        LogicalPlan counting = new Window(counts, seq(record), unordered, source);
        return new Project(
                named(source.output()),
                new Filter(isOne(rows.toAttribute(), record).expr(), counting));
    }

    private Column isOne(Attribute rows, List<Expression> record) {
        Column[] shown = Stream.of(
                        Stream.of(functions.lit(ErrorCode.BAD_DATA.message("the source of MERGE INTO has "))),
                        Stream.of(text(rows), functions.lit(" rows for the record ")),
                        record.stream()
                                .flatMap(each -> Stream.of(
                                        functions.lit(each.sql() + "='"),
                                        functions.coalesce(text(each), functions.lit("")),
                                        functions.lit("' "))),
                        Stream.of(functions.lit(
                                "of a table without orderingFields, which would decide between them: leave one")))
                .flatMap(each -> each)
                .toArray(Column[]::new);
        return functions
                .when(new Column(rows).leq(functions.lit(1L)), functions.lit(true))
                .otherwise(functions.raise_error(functions.concat(shown)).cast(DataTypes.BooleanType));
    }

    /** Spark has already resolved what needs a time zone. */
    private Column text(Expression value) {
        scala.Option<String> zone =
                scala.Option.apply(spark.sessionState().conf().sessionLocalTimeZone());
        return new Column(new Cast(value, DataTypes.StringType, zone));
    }

    private static <T> Seq<T> seq(List<T> all) {
        return JavaConverters.asScalaBuffer(all).toList();
    }

    private static Seq<NamedExpression> named(Seq<Attribute> columns) {
        List<NamedExpression> all = new java.util.ArrayList<>(MergeRules.list(columns));
        return seq(all);
    }
}
