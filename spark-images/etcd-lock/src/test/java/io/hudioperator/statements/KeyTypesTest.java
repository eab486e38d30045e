package io.hudioperator.statements;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.hudi.exception.HoodieException;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

/** The rows of a write name records as the table does (F327, F366, F367). */
class KeyTypesTest {
    private static final DataType CENTS = DataTypes.createDecimalType(10, 2);
    private static final DataType NAMED = new StructType().add("id", DataTypes.StringType);
    private static final StructType TABLE = of(DataTypes.DoubleType, CENTS, DataTypes.IntegerType, NAMED);
    private static final List<String> KEYS = List.of("d", "n", "i", "r.id");

    private static StructType of(DataType d, DataType n, DataType i, DataType r) {
        return new StructType().add("d", d).add("n", n).add("i", i).add("r", r);
    }

    private static void refused(String column, StructType batch) {
        String said = assertThrows(HoodieException.class, () -> KeyTypes.require(batch, TABLE, KEYS))
                .getMessage();
        assertTrue(said.contains("a delete of rows whose column " + column + " is of type "), said);
    }

    @Test
    void theTablesTypesAndWholeNumbersOfAnySize() {
        DataType more = new StructType().add("x", DataTypes.LongType).add("id", DataTypes.StringType);
        KeyTypes.require(of(DataTypes.DoubleType, CENTS, DataTypes.LongType, more), TABLE, KEYS);
        DataType none = DataTypes.NullType;
        KeyTypes.require(of(none, none, none, none), TABLE, KEYS);
    }

    @Test
    void noOtherType() {
        refused("d", of(DataTypes.IntegerType, CENTS, DataTypes.IntegerType, NAMED));
        DataType digits = DataTypes.createDecimalType(12, 4);
        refused("n", of(DataTypes.DoubleType, digits, DataTypes.IntegerType, NAMED));
        refused("i", of(DataTypes.DoubleType, CENTS, DataTypes.StringType, NAMED));
        DataType number = new StructType().add("id", DataTypes.LongType);
        refused("r.id", of(DataTypes.DoubleType, CENTS, DataTypes.IntegerType, number));
    }

    private static boolean isWritten(DataType given, DataType there) {
        StructType batch = of(given, CENTS, DataTypes.IntegerType, NAMED);
        try {
            KeyTypes.requireSameTexts(batch, of(there, CENTS, DataTypes.IntegerType, NAMED), KEYS);
            return true;
        } catch (HoodieException e) {
            assertTrue(e.getMessage().contains("a write of rows whose column d is of type "), e.getMessage());
            return false;
        }
    }

    @Test
    void noTypeThatGivesAKeyAnotherText() {
        DataType digits = DataTypes.createDecimalType(12, 4);
        DataType longer = DataTypes.createDecimalType(12, 2);
        for (DataType whole : new DataType[] {DataTypes.IntegerType, DataTypes.LongType}) {
            for (DataType wide : new DataType[] {DataTypes.FloatType, DataTypes.DoubleType, CENTS}) {
                assertFalse(isWritten(wide, whole));
                assertTrue(isWritten(whole, wide)); // Hudi casts it first
            }
            assertTrue(isWritten(DataTypes.LongType, whole));
            assertTrue(isWritten(DataTypes.StringType, whole)); // Hudi refuses it
        }
        assertFalse(isWritten(DataTypes.DoubleType, DataTypes.FloatType));
        assertFalse(isWritten(digits, DataTypes.FloatType));
        assertTrue(isWritten(DataTypes.FloatType, DataTypes.DoubleType));
        assertFalse(isWritten(digits, CENTS));
        assertTrue(isWritten(longer, CENTS));
        assertTrue(isWritten(DataTypes.DoubleType, CENTS));
    }
}
