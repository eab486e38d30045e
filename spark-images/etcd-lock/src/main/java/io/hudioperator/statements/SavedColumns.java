package io.hudioperator.statements;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Columns of rows that a program saves, beside the table's. Hudi adapts the table to them in ways
 * that leave it unreadable: the batch of a HudiWriter is refused for the same (schema.py).
 */
final class SavedColumns {
    /** Whole numbers, the narrowest first; the table has the first two as the third. */
    private static final List<DataType> WHOLE =
            List.of(DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType);

    /** Digits of each of them. */
    private static final int[] DIGITS = {3, 5, 10, 19};

    private SavedColumns() {}

    /**
     * @param ordering the table's ordering columns: deletions in log files keep a value in the type
     *     of their time, and readers compare it with those of rows (F372)
     * @throws org.apache.hudi.exception.HoodieException for a name that Spark could not tell from
     *     another one, an ordering column that would change its type, and a type inside a column
     *     that would become wider, with which Spark does not read the files that are there (F373)
     */
    static void require(StructType batch, StructType table, List<String> ordering) {
        requireNames("", batch, table);
        for (StructField field : batch.fields()) {
            DataType there = KeyTypes.inner(table, field.name());
            if (there == null) {
                continue;
            }
            if (ordering.contains(field.name()) && !isTaken(field.dataType(), there)) {
                throw refusal(field.name(), field.dataType(), there, "an ordering column keeps its type");
            }
            requireNested(field.name(), field.dataType(), there, false);
        }
    }

    private static void requireNames(String path, StructType batch, StructType table) {
        Map<String, String> spelled = new HashMap<>();
        for (StructField field : table.fields()) {
            spelled.put(field.name().toLowerCase(Locale.ROOT), field.name());
        }
        Set<String> seen = new HashSet<>();
        for (StructField field : batch.fields()) {
            String lower = field.name().toLowerCase(Locale.ROOT);
            String there = spelled.getOrDefault(lower, field.name());
            if (!seen.add(lower) || !there.equals(field.name())) {
                throw Statements.refusal(
                        "a write of rows with the column " + path + field.name() + " beside "
                                + (there.equals(field.name()) ? "another one of that name" : "the table's " + there)
                                + " (most readers do not tell upper from lower case)",
                        "one spelling");
            }
        }
    }

    private static void requireNested(String name, DataType given, DataType there, boolean isInner) {
        if (given instanceof StructType && there instanceof StructType) {
            requireNames(name + ".", (StructType) given, (StructType) there);
            for (StructField field : ((StructType) given).fields()) {
                DataType inner = KeyTypes.inner((StructType) there, field.name());
                if (inner != null) {
                    requireNested(name + "." + field.name(), field.dataType(), inner, true);
                }
            }
        } else if (given instanceof ArrayType && there instanceof ArrayType) {
            requireNested(
                    name + ".element", ((ArrayType) given).elementType(), ((ArrayType) there).elementType(), true);
        } else if (given instanceof MapType && there instanceof MapType) {
            requireNested(name + ".value", ((MapType) given).valueType(), ((MapType) there).valueType(), true);
        } else if (isInner && !there.equals(DataTypes.StringType) && !isTaken(given, there)) {
            throw refusal(name, given, there, "inside a struct, an array or a map no type changes");
        }
    }

    /** Whether the table's type has each value of the given one, so that it stays unchanged. */
    static boolean isTaken(DataType given, DataType there) {
        if (given.equals(there) || given.equals(DataTypes.NullType)) {
            return true;
        }
        int whole = WHOLE.indexOf(given);
        if (there instanceof DecimalType) {
            DecimalType needed = (DecimalType) there;
            int scale = given instanceof DecimalType ? ((DecimalType) given).scale() : 0;
            int digits = given instanceof DecimalType
                    ? ((DecimalType) given).precision() - scale
                    : whole < 0 ? Integer.MAX_VALUE : DIGITS[whole];
            return scale <= needed.scale() && digits <= needed.precision() - needed.scale();
        }
        boolean isNarrower = whole >= 0 && whole <= WHOLE.indexOf(there);
        boolean isInDouble = whole >= 0 && whole <= 2 || given.equals(DataTypes.FloatType);
        return isNarrower || isInDouble && there.equals(DataTypes.DoubleType);
    }

    private static RuntimeException refusal(String name, DataType given, DataType there, String rule) {
        return Statements.refusal(
                "a write of rows whose column " + name + " is of type " + given.simpleString() + ", which is of type "
                        + there.simpleString() + " in the table: " + rule,
                "a cast to the table's type");
    }
}
