package io.hudioperator.statements;

import java.util.List;
import java.util.Set;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Types of the columns that say which record a row belongs to.
 *
 * <p>A comparison of two types casts one of them, and a cast can give two values the same: of two
 * numbers that differ after the 53rd bit, or of a text that is no number and null (F327). Hudi
 * compares texts: {@code 3} differs from {@code 3.0}, and {@code 1.50} from {@code 1.5}. A delete
 * finds no record then (F366), and an upsert that makes the column wider adds a second one (F367).
 */
final class KeyTypes {
    private static final Set<DataType> WHOLE =
            Set.of(DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType);

    private KeyTypes() {}

    /**
     * Also narrower types are refused: Hudi casts them to the table's in some writes, and takes the
     * key from the rows as they are in others (F371).
     *
     * @param what the write, as in "a delete"
     * @param names columns of the table's record key and partition
     */
    static void require(String what, StructType batch, StructType table, List<String> names) {
        for (String name : names) {
            DataType given = type(batch, name);
            DataType needed = type(table, name);
            if (given == null) {
                throw Statements.refusal(
                        what + " of rows without the column " + name
                                + ", which is part of the table's record key or partition",
                        "rows with that column (names of columns are case-sensitive here)");
            }
            if (needed != null && !isSameText(given, needed) && !given.equals(DataTypes.NullType)) {
                throw Statements.refusal(
                        what + " of rows whose column " + name + " is of type " + given.simpleString()
                                + ", which is of type " + needed.simpleString() + " in the table",
                        "a cast to the table's type");
            }
        }
    }

    /** Whether equal values of both types are one text, and no cast makes two values equal. */
    static boolean isSameText(DataType given, DataType needed) {
        if (given instanceof DecimalType && needed instanceof DecimalType) {
            return ((DecimalType) given).scale() == ((DecimalType) needed).scale();
        }
        return given.equals(needed) || WHOLE.contains(given) && WHOLE.contains(needed);
    }

    /** Null when there is no such column. The names of a nested field are separated by dots. */
    private static DataType type(StructType schema, String name) {
        DataType found = schema;
        for (String part : name.split("\\.")) {
            found = found instanceof StructType ? inner((StructType) found, part) : null;
        }
        return found;
    }

    /** Null when there is none of exactly this name: Hudi's keys are case-sensitive. */
    static DataType inner(StructType schema, String name) {
        for (StructField field : schema.fields()) {
            if (field.name().equals(name)) {
                return field.dataType();
            }
        }
        return null;
    }
}
