package io.hudioperator.statements;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.hudi.exception.HoodieException;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

/** The rows of a write name records as the table does (F327, F366, F367, F371). */
class KeyTypesTest {
    private static final DataType CENTS = DataTypes.createDecimalType(10, 2);
    private static final DataType NAMED = new StructType().add("id", DataTypes.StringType);
    private static final StructType TABLE = of(DataTypes.DoubleType, CENTS, DataTypes.IntegerType, NAMED);
    private static final List<String> KEYS = List.of("d", "n", "i", "r.id");

    private static StructType of(DataType d, DataType n, DataType i, DataType r) {
        return new StructType().add("d", d).add("n", n).add("i", i).add("r", r);
    }

    private static void refused(String what, StructType batch) {
        String said = assertThrows(HoodieException.class, () -> KeyTypes.require("a write", batch, TABLE, KEYS))
                .getMessage();
        assertTrue(said.contains("a write of rows " + what), said);
    }

    @Test
    void theTablesTypesAndWholeNumbersOfAnySize() {
        DataType more = new StructType().add("x", DataTypes.LongType).add("id", DataTypes.StringType);
        DataType longer = DataTypes.createDecimalType(12, 2);
        KeyTypes.require("a write", of(DataTypes.DoubleType, longer, DataTypes.LongType, more), TABLE, KEYS);
        DataType none = DataTypes.NullType;
        DataType named = new StructType().add("id", none);
        KeyTypes.require("a write", of(none, none, none, named), TABLE, KEYS);
    }

    /** Also where one of the two could be cast to the other, with the same values or not. */
    @Test
    void noTypeThatGivesAKeyAnotherText() {
        DataType digits = DataTypes.createDecimalType(12, 4);
        for (DataType given :
                List.of(DataTypes.IntegerType, DataTypes.LongType, DataTypes.FloatType, CENTS, DataTypes.StringType)) {
            refused("whose column d is of type ", of(given, CENTS, DataTypes.IntegerType, NAMED));
        }
        for (DataType given : List.of(digits, DataTypes.IntegerType, DataTypes.DoubleType)) {
            refused("whose column n is of type ", of(DataTypes.DoubleType, given, DataTypes.IntegerType, NAMED));
        }
        for (DataType given : List.of(DataTypes.StringType, DataTypes.DoubleType, CENTS, DataTypes.DateType)) {
            refused("whose column i is of type ", of(DataTypes.DoubleType, CENTS, given, NAMED));
        }
        DataType number = new StructType().add("id", DataTypes.LongType);
        refused("whose column r.id is of type ", of(DataTypes.DoubleType, CENTS, DataTypes.IntegerType, number));
    }

    /** F371: a column in another spelling was taken for one of null, and compared as Spark does. */
    @Test
    void noRowsWithoutAColumn() {
        StructType spelled = new StructType()
                .add("D", DataTypes.DoubleType)
                .add("n", CENTS)
                .add("i", DataTypes.IntegerType)
                .add("r", NAMED);
        refused("without the column d,", spelled);
        DataType empty = new StructType().add("ID", DataTypes.StringType);
        refused("without the column r.id,", of(DataTypes.DoubleType, CENTS, DataTypes.IntegerType, empty));
    }
}
