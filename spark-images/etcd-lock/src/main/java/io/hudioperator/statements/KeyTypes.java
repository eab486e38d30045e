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
 * numbers that differ after the 53rd bit, or of a text that is no number and null (F327). Where
 * Hudi compares, it compares texts: {@code 3} is not {@code 3.0}, nor {@code 1.50} {@code 1.5}. A
 * delete finds no record then (F366), and an upsert that makes the column wider adds a second one
 * (F367).
 */
final class KeyTypes {
    private static final Set<DataType> WHOLE =
            Set.of(DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType);

    private KeyTypes() {}

    /**
     * @param batch rows of a delete
     * @param names columns of the table's record key and partition
     */
    static void require(StructType batch, StructType table, List<String> names) {
        for (String name : names) {
            DataType given = type(batch, name);
            DataType needed = type(table, name);
            boolean isWhole = WHOLE.contains(given) && WHOLE.contains(needed);
            if (!given.equals(needed) && !isWhole && !given.equals(DataTypes.NullType)) {
                throw Statements.refusal(
                        "a delete of rows whose column " + name + " is of type " + given.simpleString()
                                + ", which is of type " + needed.simpleString() + " in the table",
                        "a cast to the table's type");
            }
        }
    }

    /**
     * A write may widen a column. Where that changes its values' texts, a record that is there has
     * another key than its next version, and another partition.
     *
     * @param batch rows of any other write; Hudi casts them where the table's type is the wider one
     */
    static void requireSameTexts(StructType batch, StructType table, List<String> names) {
        for (String name : names) {
            DataType given = type(batch, name);
            DataType needed = type(table, name);
            if (isOtherText(given, needed)) {
                throw Statements.refusal(
                        "a write of rows whose column " + name + " is of type " + given.simpleString()
                                + ", wider than the table's " + needed.simpleString()
                                + ": the records that are there would keep their keys",
                        "a cast to the table's type");
            }
        }
    }

    private static boolean isOtherText(DataType given, DataType needed) {
        if (given instanceof DecimalType && needed instanceof DecimalType) {
            return ((DecimalType) given).scale() != ((DecimalType) needed).scale();
        }
        boolean isFraction = given instanceof DecimalType || given.equals(DataTypes.DoubleType);
        return WHOLE.contains(needed)
                ? isFraction || given.equals(DataTypes.FloatType)
                : needed.equals(DataTypes.FloatType) && isFraction;
    }

    /** Of a nested field the names are parted by dots. */
    private static DataType type(StructType schema, String name) {
        DataType found = schema;
        for (String part : name.split("\\.")) {
            found = found instanceof StructType ? inner((StructType) found, part) : DataTypes.NullType;
        }
        return found;
    }

    /** Names of columns are case-sensitive in Hudi's keys; a missing one is refused elsewhere. */
    private static DataType inner(StructType schema, String name) {
        for (StructField field : schema.fields()) {
            if (field.name().equals(name)) {
                return field.dataType();
            }
        }
        return DataTypes.NullType;
    }
}
