package io.hudioperator.statements;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InsertOptions;
import io.hudioperator.session.OpenSessions;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.hudi.DataSourceWriteOptions;
import org.apache.hudi.HoodieSchemaConversionUtils;
import org.apache.hudi.common.config.RecordMergeMode;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.table.HoodieTableConfig;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.TableSchemaResolver;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.exception.HoodieException;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Dataset$;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HoodieCatalogTable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.hudi.analysis.HoodieAnalysis;
import org.apache.spark.sql.hudi.command.DeleteHoodieTableCommand;
import org.apache.spark.sql.hudi.command.UpdateHoodieTableCommand;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.collection.JavaConverters;

/**
 * Deletions that have a place in the order of versions (F326).
 *
 * <p>A MergeOnRead table with ordering fields keeps the version with the greatest ordering value.
 * Hudi's own deletion is a key in a log file, without such a value: whatever is written afterwards
 * replaces it. A late version does so, too, and is then compared with the row of the base file,
 * which is greater and comes back. Therefore {@code DELETE FROM} and saves with the operation
 * {@code delete} are carried out as an upsert of the rows that the table has now, each marked as
 * deleted: the deletion has the ordering value of the row that it deletes.
 */
public final class OrderedDeletes {
    /** A condition in SQL that holds for all rows that a save deletes, for pruning partitions. */
    static final String IN = "hoodie.write.lock.etcd.deleted_in";

    private static final String OPERATION = "hoodie.datasource.write.operation";
    private static final String PREPPED = "_hoodie.spark.sql.writes.prepped";
    private static final String DELETED = "_hudiop_deleted_";
    /**
     * Marks a read that only finds what a delete deletes. Another value in each process, so that no
     * option of a program means this.
     */
    private static final String FINDS = "hoodie.write.lock.etcd.finds";

    private static final String OF_THIS_PROCESS = UUID.randomUUID().toString();
    private static final Column NEVER = functions.spark_partition_id().lt(0);

    /** As {@code SNAPSHOT} in hudi.py. */
    private static final Map<String, String> SNAPSHOT = Map.of(
            "hoodie.datasource.query.type", "snapshot",
            "hoodie.datasource.query.incremental.format", "latest_state",
            "hoodie.datasource.merge.type", "payload_combine",
            "hoodie.enable.data.skipping", "false",
            "hoodie.datasource.read.file.index.listing.mode", "eager",
            "ignoreCorruptFiles", "false",
            "ignoreMissingFiles", "false");

    private OrderedDeletes() {}

    /** The plan itself, unless it is a deletion that needs another one. */
    public static LogicalPlan rewritten(SparkSession spark, LogicalPlan plan) {
        if (!OpenSessions.hasWriter()) {
            return plan;
        }
        if (plan instanceof DeleteFromTable && plan.resolved()) {
            return statement(spark, (DeleteFromTable) plan);
        }
        return plan instanceof SaveIntoDataSourceCommand ? save(spark, (SaveIntoDataSourceCommand) plan) : plan;
    }

    /** Whether the options are those of a read that only finds what a delete deletes. */
    static boolean onlyFinds(scala.collection.immutable.Map<String, String> options) {
        return options.get(FINDS).contains(OF_THIS_PROCESS);
    }

    /** Whether deletions of this table need an ordering value. Some tables take none. */
    static boolean isNeeded(HoodieTableMetaClient table) {
        HoodieTableConfig config = table.getTableConfig();
        return config.getPartialUpdateMode().isEmpty()
                && table.getTableType() == HoodieTableType.MERGE_ON_READ
                && config.getRecordMergeMode() == RecordMergeMode.EVENT_TIME_ORDERING
                && !config.getOrderingFields().isEmpty();
    }

    // ---- DELETE FROM

    /**
     * Hudi's own command for {@code DELETE FROM}, which writes the rows of its query with its
     * options: here the query and the options of {@code UPDATE table SET column = mark WHERE …}.
     */
    private static LogicalPlan statement(SparkSession spark, DeleteFromTable delete) {
        scala.Option<CatalogTable> name = HoodieAnalysis.ResolvesToHudiTable$.MODULE$.unapply(delete.table());
        HoodieTableMetaClient table = name.isEmpty() ? null : Relations.target(delete.table(), spark);
        if (table == null || !isNeeded(table)) {
            return delete;
        }
        OpenSessions.statementBegins(table.getBasePath().toString());
        DeletionMark mark = DeletionMark.of(delete.table().schema(), table.getTableConfig());
        UpdateTable update = new UpdateTable(
                delete.table(),
                JavaConverters.asScalaBuffer(List.of(new Assignment(
                                column(delete.table(), mark.column),
                                mark.literal().expr())))
                        .toSeq(),
                scala.Option.apply(delete.condition()));
        LogicalPlan rows = complete(spark, UpdateHoodieTableCommand.inputPlan(spark, update), table);
        HoodieCatalogTable catalog = new HoodieCatalogTable(spark, name.get());
        scala.collection.immutable.Map<String, String> options =
                new UpdateHoodieTableCommand(update, rows).buildHoodieConfig(catalog);
        String optimized = DataSourceWriteOptions.SPARK_SQL_OPTIMIZED_WRITES().key();
        String prepped = spark.sessionState().conf().getConfString(optimized, "true");
        if (prepped.equals("true")) { // as Hudi's own UPDATE does
            options = options.updated(PREPPED, "true");
        }
        return new DeleteHoodieTableCommand(catalog, rows, with(options, mark));
    }

    /**
     * With null in the columns that the catalog does not know, because another writer has added
     * them since: Hudi refuses to write rows without them (F329).
     */
    private static LogicalPlan complete(SparkSession spark, LogicalPlan rows, HoodieTableMetaClient table) {
        Option<HoodieSchema> schema = schema(table);
        if (schema.isEmpty()) {
            return rows;
        }
        Set<String> known = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
        MergeKeys.list(rows.output()).forEach(column -> known.add(column.name()));
        Dataset<Row> all = Dataset$.MODULE$.ofRows(spark, rows);
        for (StructField field : HoodieSchemaConversionUtils.convertHoodieSchemaToStructType(schema.get())
                .fields()) {
            if (!known.contains(field.name())) {
                all = all.withColumn(field.name(), functions.lit(null).cast(field.dataType()));
            }
        }
        return all.queryExecution().analyzed();
    }

    /** Empty while no commit has rows. */
    static Option<HoodieSchema> schema(HoodieTableMetaClient table) {
        try {
            return new TableSchemaResolver(table).getTableSchemaIfPresent(false);
        } catch (Exception e) { // as Hudi declares it
            throw new HoodieException("cannot read the schema of the table " + table.getBasePath(), e);
        }
    }

    private static Attribute column(LogicalPlan plan, String name) {
        return MergeKeys.list(plan.output()).stream()
                .filter(column -> column.name().equals(name))
                .findFirst()
                .orElseThrow();
    }

    // ---- df.write with the operation delete

    private static LogicalPlan save(SparkSession spark, SaveIntoDataSourceCommand save) {
        scala.Option<String> path = save.options().get("path");
        String key = operationOf(save);
        if (key.isEmpty()
                || !save.options().apply(key).equalsIgnoreCase("delete")
                || save.mode() != SaveMode.Append
                || path.isEmpty()
                || OpenSessions.byPath(path.get()) == null) {
            return save;
        }
        HoodieTableMetaClient table = Relations.at(path.get(), spark);
        if (!isNeeded(table)) {
            return save;
        }
        OpenSessions.statementBegins(path.get());
        Dataset<Row> rows = spark.read()
                .format("hudi")
                .options(SNAPSHOT)
                .option(FINDS, OF_THIS_PROCESS)
                .load(path.get());
        if (rows.columns().length == 0) { // no commit, so nothing to delete
            return save;
        }
        scala.Option<String> pruned = save.options().get(IN);
        Dataset<Row> there = pruned.isDefined() ? rows.where(pruned.get()) : rows;
        HoodieTableConfig config = table.getTableConfig();
        DeletionMark mark = DeletionMark.of(rows.schema(), config);
        Dataset<Row> given = Dataset$.MODULE$.ofRows(spark, save.query());
        KeyTypes.require("a delete", given.schema(), there.schema(), identity(config));
        Dataset<Row> batch = keys(given, config);
        Dataset<Row> deleted = there.join(batch, same(there, config), "left_semi");
        Dataset<Row> marked =
                deleted.select(columns(rows.schema(), mark, config).toArray(new Column[0]));
        return new SaveIntoDataSourceCommand(
                marked.queryExecution().analyzed(),
                save.dataSource(),
                with(save.options().updated(key, "upsert"), mark),
                save.mode());
    }

    /** The option's name as the program wrote it; empty when it is not there. */
    private static String operationOf(SaveIntoDataSourceCommand save) {
        Iterator<String> names = save.options().keysIterator();
        while (names.hasNext()) {
            String name = names.next();
            if (name.toLowerCase(Locale.ROOT).equals(OPERATION)) {
                return name;
            }
        }
        return "";
    }

    /** Columns of the record key and of the partition. */
    static List<String> identity(HoodieTableConfig table) {
        List<String> found = new ArrayList<>();
        for (Option<String[]> fields : List.of(table.getRecordKeyFields(), table.getPartitionFields())) {
            found.addAll(List.of(fields.isPresent() ? fields.get() : new String[0]));
        }
        return found;
    }

    private static Dataset<Row> keys(Dataset<Row> batch, HoodieTableConfig table) {
        try {
            return keys(batch, table, functions.input_file_name());
        } catch (Exception e) { // rows of several sources come from no one file
            return keys(batch, table, functions.when(NEVER, " ").otherwise(""));
        }
    }

    private static Dataset<Row> keys(Dataset<Row> batch, HoodieTableConfig table, Column file) {
        List<String> names = identity(table);
        Column isNamed = isNamed(batch, table, file);
        Column[] found = new Column[names.size()];
        for (int i = 0; i < found.length; i++) {
            Column key = batch.col(names.get(i));
            found[i] = (i == 0 ? functions.when(isNamed, key) : key).as(DELETED + i);
        }
        return batch.select(found);
    }

    /**
     * True, or an error for a row without a record key, as in Hudi's own delete: it names no
     * record, and a join finds none (F333). Hudi takes an empty text for null; of a key of several
     * columns one has a value. {@code file} is not deterministic: Spark leaves the check where it
     * is.
     */
    private static Column isNamed(Dataset<Row> batch, HoodieTableConfig table, Column file) {
        String[] keys = table.getRecordKeyFields().orElse(new String[0]);
        Column none = functions.lit(true);
        for (String key : keys) {
            none = none.and(text(batch.col(key), "").equalTo(""));
        }
        List<Column> told = new ArrayList<>();
        for (String name : identity(table)) {
            told.add(functions.concat(functions.lit(name + "="), text(batch.col(name), "null")));
        }
        Column message = functions.concat(
                functions.lit(ErrorCode.BAD_DATA.message("a delete of a row without a record key: ")),
                functions.concat_ws(", ", told.toArray(new Column[0])),
                functions.when(file.equalTo(""), "").otherwise(functions.concat(functions.lit(" in "), file)),
                functions.lit(": column " + String.join(" or ", keys) + " has a value in each row"));
        return functions
                .when(none, functions.raise_error(message).cast(DataTypes.BooleanType))
                .otherwise(true);
    }

    private static Column text(Column value, String instead) {
        return functions.coalesce(value.cast(DataTypes.StringType), functions.lit(instead));
    }

    private static Column same(Dataset<Row> rows, HoodieTableConfig table) {
        List<String> names = identity(table);
        Column all = functions.lit(true);
        for (int i = 0; i < names.size(); i++) {
            all = all.and(rows.col(names.get(i)).eqNullSafe(functions.col(DELETED + i)));
        }
        return all;
    }

    /**
     * The table's columns: those of key, partition and ordering value as they are, the mark, and
     * null where it is allowed, for a deletion stores no other column and need not read them.
     */
    private static List<Column> columns(StructType schema, DeletionMark mark, HoodieTableConfig table) {
        Set<String> kept = new TreeSet<>();
        identity(table).forEach(name -> kept.add(name.split("\\.", 2)[0]));
        table.getOrderingFields().forEach(name -> kept.add(name.split("\\.", 2)[0]));
        List<Column> found = new ArrayList<>();
        for (StructField field : schema.fields()) {
            Column column = functions.col("`" + field.name() + "`");
            if (HoodieRecord.HOODIE_META_COLUMNS_WITH_OPERATION.contains(field.name())) {
                continue;
            }
            if (field.name().equals(mark.column)) {
                column = mark.literal();
            } else if (!kept.contains(field.name()) && field.nullable()) {
                column = functions.lit(null).cast(field.dataType());
            }
            found.add(column.as(field.name()));
        }
        return found;
    }

    private static scala.collection.immutable.Map<String, String> with(
            scala.collection.immutable.Map<String, String> options, DeletionMark mark) {
        // a deletion needs an upsert, whatever the session's options make of it (F328)
        scala.collection.immutable.Map<String, String> all = options.updated(OPERATION, "upsert");
        for (Map<String, String> own : List.of(InsertOptions.DEFAULTS, mark.options())) {
            for (Map.Entry<String, String> one : own.entrySet()) {
                all = all.updated(one.getKey(), one.getValue());
            }
        }
        return all;
    }
}
