package io.hudioperator.statements;

import io.hudioperator.contract.ErrorCode;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hudi.HoodieSchemaConversionUtils;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.util.Option;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Whether a statement knows all columns of the table that it changes (F353).
 *
 * <p>A program's catalog has the columns that the table had when it was named there. With these
 * Hudi writes the files of a {@code MERGE INTO}: a column that another writer has added since is
 * gone, also from the rows of others in these files.
 */
final class KnownColumns {
    private KnownColumns() {}

    /**
     * @param target the statement's target, with the columns that the catalog knows
     * @throws org.apache.hudi.exception.HoodieException when the table has others; a program that
     *     is run again knows them
     */
    static void require(String statement, LogicalPlan target, HoodieTableMetaClient table) {
        Option<HoodieSchema> schema = OrderedDeletes.schema(table);
        if (schema.isEmpty()) { // no commit has rows
            return;
        }
        Map<String, DataType> known = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (Attribute column : MergeKeys.list(target.output())) {
            known.put(column.name(), column.dataType());
        }
        for (StructField field : HoodieSchemaConversionUtils.convertHoodieSchemaToStructType(schema.get())
                .fields()) {
            if (!HoodieRecord.HOODIE_META_COLUMNS_WITH_OPERATION.contains(field.name())) {
                require(statement, field.name(), known.get(field.name()), field.dataType());
            }
        }
    }

    /** @param known null when the catalog has no such column or field */
    private static void require(String statement, String name, DataType known, DataType real) {
        if (known instanceof StructType && real instanceof StructType) {
            Map<String, DataType> fields = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
            for (StructField field : ((StructType) known).fields()) {
                fields.put(field.name(), field.dataType());
            }
            for (StructField field : ((StructType) real).fields()) {
                require(statement, name + "." + field.name(), fields.get(field.name()), field.dataType());
            }
        } else if (known instanceof ArrayType && real instanceof ArrayType) {
            require(statement, name + ".element", ((ArrayType) known).elementType(), ((ArrayType) real).elementType());
        } else if (known instanceof MapType && real instanceof MapType) {
            require(statement, name + ".value", ((MapType) known).valueType(), ((MapType) real).valueType());
        } else if (!real.equals(known)) {
            throw ErrorCode.SCHEMA_MOVED.exception(statement + ": column " + name + " is of type " + real.simpleString()
                    + " in the table, and "
                    + (known == null ? "is not" : "is of type " + known.simpleString())
                    + " in this program's catalog: another writer has changed it since the table was named there. The"
                    + " statement would undo that; name the table again (DROP TABLE, CREATE TABLE … USING hudi"
                    + " LOCATION …), then repeat it");
        }
    }
}
