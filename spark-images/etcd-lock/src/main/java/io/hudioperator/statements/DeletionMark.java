package io.hudioperator.statements;

import io.hudioperator.session.OwnDeletes;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hudi.common.model.DefaultHoodieRecordPayload;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.table.HoodieTableConfig;
import org.apache.hudi.common.util.Option;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The column and the value by which an upsert deletes a row. The value is never stored: a deletion
 * in a log file has only key and ordering value.
 *
 * <p>{@code _hoodie_is_deleted} where the table has it, else a column of the table's own that is
 * not part of key, partition or ordering value. Another column would become one of the table's.
 */
final class DeletionMark {
    /** Types that can hold a mark, the usual one first; Hudi compares the value's text. */
    private static final Map<DataType, Object> VALUES = Map.of(
            DataTypes.StringType,
            "deleted",
            DataTypes.BooleanType,
            true,
            DataTypes.IntegerType,
            0,
            DataTypes.LongType,
            0L,
            DataTypes.DoubleType,
            0.0d,
            DataTypes.FloatType,
            0.0f);

    private static final List<DataType> ORDER = List.of(
            DataTypes.StringType,
            DataTypes.BooleanType,
            DataTypes.IntegerType,
            DataTypes.LongType,
            DataTypes.DoubleType,
            DataTypes.FloatType);

    final String column;
    final Object value;
    private final Map<String, String> options;

    private DeletionMark(String column, Object value, Map<String, String> options) {
        this.column = column;
        this.value = value;
        this.options = options;
    }

    /**
     * @throws org.apache.hudi.exception.HoodieException when no column of the table can hold a mark
     */
    static DeletionMark of(StructType columns, HoodieTableConfig table) {
        List<String> names = List.of(columns.fieldNames());
        if (names.contains(HoodieRecord.HOODIE_IS_DELETED_FIELD)) {
            return new DeletionMark(HoodieRecord.HOODIE_IS_DELETED_FIELD, true, Map.of());
        }
        String own = table.getTableMergeProperties().getOrDefault(DefaultHoodieRecordPayload.DELETE_KEY, "");
        if (names.contains(own) && columns.apply(own).dataType().equals(DataTypes.StringType)) {
            String marker = table.getTableMergeProperties().get(DefaultHoodieRecordPayload.DELETE_MARKER);
            return new DeletionMark(own, marker, Map.of());
        }
        if (!own.isEmpty()) { // with a mark of another column Hudi would not look at this one
            throw Statements.refusal(
                    "a delete in a MergeOnRead table with ordering fields and the property "
                            + DefaultHoodieRecordPayload.DELETE_KEY + "=" + own
                            + ", which names no column of type string of the table,",
                    "an upsert of rows with that mark, or a table with a column _hoodie_is_deleted of type boolean");
        }
        Set<String> taken = taken(table);
        for (DataType type : ORDER) {
            for (StructField field : columns.fields()) {
                if (field.dataType().equals(type) && !taken.contains(field.name())) {
                    Object value = VALUES.get(type);
                    return new DeletionMark(field.name(), value, OwnDeletes.options(field.name(), value.toString()));
                }
            }
        }
        throw Statements.refusal(
                "a delete in a MergeOnRead table with ordering fields that has no column of type string, boolean,"
                        + " int, bigint, double or float besides key, partition and ordering fields",
                "a table with such a column, for example _hoodie_is_deleted of type boolean");
    }

    private static Set<String> taken(HoodieTableConfig table) {
        Set<String> taken = new TreeSet<>(HoodieRecord.HOODIE_META_COLUMNS_WITH_OPERATION);
        taken.addAll(table.getOrderingFields());
        for (Option<String[]> fields : List.of(table.getRecordKeyFields(), table.getPartitionFields())) {
            taken.addAll(List.of(fields.isPresent() ? fields.get() : new String[0]));
        }
        return taken;
    }

    /** The mark as a literal of the column's type. */
    Column literal() {
        return functions.lit(value);
    }

    /** Options of the write. */
    Map<String, String> options() {
        return options;
    }
}
