package io.hudioperator.statements;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.apache.hudi.common.table.HoodieTableConfig;
import org.apache.hudi.exception.HoodieException;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

/** Which column marks a deleted row, so that the table gets no other one (F326). */
class DeletionMarkTest {
    private static final Map<String, DataType> TYPES = Map.of(
            "string", DataTypes.StringType,
            "boolean", DataTypes.BooleanType,
            "int", DataTypes.IntegerType,
            "bigint", DataTypes.LongType,
            "double", DataTypes.DoubleType,
            "float", DataTypes.FloatType,
            "date", DataTypes.DateType,
            "binary", DataTypes.BinaryType);

    private static HoodieTableConfig table(String... more) {
        HoodieTableConfig table = new HoodieTableConfig();
        table.setValue(HoodieTableConfig.RECORDKEY_FIELDS, "id");
        table.setValue(HoodieTableConfig.PARTITION_FIELDS, "p");
        table.setValue(HoodieTableConfig.ORDERING_FIELDS, "ts");
        for (int i = 0; i < more.length; i += 2) {
            table.setValue(HoodieTableConfig.RECORD_MERGE_PROPERTY_PREFIX + more[i], more[i + 1]);
        }
        return table;
    }

    /** A mark of a table with more columns, {@code name type} each. */
    private static DeletionMark of(String columns, String... more) {
        StructType schema = new StructType();
        for (String column : ("_hoodie_record_key string, id string, p string, ts bigint" + columns).split(", ")) {
            String[] parts = column.split(" ");
            schema = schema.add(parts[0], TYPES.get(parts[1]));
        }
        return DeletionMark.of(schema, table(more));
    }

    @Test
    void aColumnThatIsNeitherKeyNorPartitionNorOrderingValue() {
        assertEquals("w", of(", v int, w string, x string").column);
        assertEquals("deleted", of(", w string").options().get("hoodie.payload.delete.marker"));
        assertEquals("w", of(", w string").options().get("hoodie.payload.delete.field"));
        for (String type : new String[] {"boolean:true", "int:0", "bigint:0", "double:0.0", "float:0.0"}) {
            String[] typed = type.split(":");
            DeletionMark mark = of(", d date, v " + typed[0]);
            assertEquals("v", mark.column);
            assertEquals(typed[1], mark.options().get("hoodie.payload.delete.marker"));
            assertEquals(typed[1], mark.value.toString());
        }
    }

    @Test
    void theTablesOwnMarkComesFirst() {
        DeletionMark built = of(", v string, _hoodie_is_deleted boolean");
        assertEquals("_hoodie_is_deleted", built.column);
        assertTrue(built.options().isEmpty());
        String[] own = {"hoodie.payload.delete.field", "op", "hoodie.payload.delete.marker", "D"};
        DeletionMark custom = of(", v string, op string", own);
        assertEquals("op", custom.column);
        assertEquals("D", custom.value);
        assertTrue(custom.options().isEmpty());
    }

    @Test
    void aTableWithoutSuchAColumnIsRefused() {
        for (String columns : new String[] {"", ", d date", ", v binary"}) {
            HoodieException refused = assertThrows(HoodieException.class, () -> of(columns));
            assertTrue(refused.getMessage().contains("[HUDIOP-STATEMENT]"), refused.getMessage());
        }
        String[] own = {"hoodie.payload.delete.field", "op", "hoodie.payload.delete.marker", "1"};
        assertThrows(HoodieException.class, () -> of(", v string, op int", own));
    }
}
