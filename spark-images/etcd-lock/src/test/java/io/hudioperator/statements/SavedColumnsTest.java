package io.hudioperator.statements;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.hudi.exception.HoodieException;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

/** What a program saves does not change the table so that others cannot read it (F372, F373). */
class SavedColumnsTest {
    private static final DataType CENTS = DataTypes.createDecimalType(10, 2);
    private static final DataType PAIR =
            new StructType().add("a", DataTypes.IntegerType).add("b", DataTypes.StringType);
    private static final StructType TABLE = new StructType()
            .add("ts", DataTypes.IntegerType)
            .add("v", DataTypes.IntegerType)
            .add("s", PAIR)
            .add("l", DataTypes.createArrayType(CENTS))
            .add("m", DataTypes.createMapType(DataTypes.StringType, PAIR));

    private static void taken(String name, DataType type) {
        SavedColumns.require(new StructType().add(name, type), TABLE, List.of("ts"));
    }

    private static void refused(String what, String name, DataType type) {
        String said =
                assertThrows(HoodieException.class, () -> taken(name, type)).getMessage();
        assertTrue(said.contains("a write of rows " + what), said);
    }

    @Test
    void anOrderingColumnKeepsItsType() {
        for (DataType given : List.of(DataTypes.ShortType, DataTypes.IntegerType, DataTypes.NullType)) {
            taken("ts", given);
        }
        for (DataType given :
                List.of(DataTypes.LongType, DataTypes.DoubleType, DataTypes.StringType, DataTypes.TimestampType)) {
            refused("whose column ts is of type ", "ts", given);
            taken("v", given); // Hudi refuses what the column cannot become
        }
    }

    @Test
    void nothingInsideAColumnBecomesWider() {
        taken("s", new StructType().add("c", DataTypes.LongType).add("a", DataTypes.ByteType));
        refused("whose column s.a is of type bigint", "s", new StructType().add("a", DataTypes.LongType));
        refused("whose column s.a is of type string", "s", new StructType().add("a", DataTypes.StringType));
        taken("s", new StructType().add("b", DataTypes.LongType)); // is a text then
        taken("l", DataTypes.createArrayType(DataTypes.createDecimalType(9, 1)));
        taken("l", DataTypes.createArrayType(DataTypes.ShortType));
        for (DataType given : List.of(
                DataTypes.createDecimalType(12, 2), DataTypes.createDecimalType(10, 3), DataTypes.IntegerType)) {
            refused("whose column l.element is of type ", "l", DataTypes.createArrayType(given));
        }
        DataType wider = new StructType().add("a", DataTypes.DoubleType);
        refused("whose column m.value.a is of type double", "m", DataTypes.createMapType(DataTypes.StringType, wider));
    }

    @Test
    void aNameHasOneSpelling() {
        taken("new", DataTypes.LongType);
        refused("with the column V beside the table's v", "V", DataTypes.IntegerType);
        refused("with the column s.A beside the table's a", "s", new StructType().add("A", DataTypes.IntegerType));
        StructType twice = new StructType().add("x", DataTypes.LongType).add("X", DataTypes.LongType);
        String said = assertThrows(HoodieException.class, () -> SavedColumns.require(twice, TABLE, List.of()))
                .getMessage();
        assertTrue(said.contains("with the column X beside another one of that name"), said);
    }
}
