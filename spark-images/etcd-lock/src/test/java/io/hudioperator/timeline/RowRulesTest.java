package io.hudioperator.timeline;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.TimelineRefusedException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.storage.StoragePath;
import org.junit.jupiter.api.Test;

/** The rows of programs (F212). Their files are read in tests/tiers/hudi/test_values.py. */
class RowRulesTest {
    private static final String[] UNSAFE = {
        "a//b", "/abs", "a/", ".", "..", "../victim/a", "a/../b", "x:y", "x=y", "a\\b", "a\nb", "a%41"
    };
    private static final String[] SAFE = {"a b", "50%", "#x", "a?b", "*", "ü", "2024/01/02", "007", "-1", "true"};

    private static RowRules rules(String... changes) {
        Map<String, String> told = new HashMap<>(Map.of(
                "rows.type", "MERGE_ON_READ",
                "rows.keys", "id",
                "rows.partitions", "p",
                "rows.hiveStyle", "false",
                "rows.ordering", "ts,at.ms",
                "rows.ignoresNulls", "false"));
        for (int n = 0; n < changes.length; n += 2) {
            told.put("rows." + changes[n], changes[n + 1]);
        }
        return RowRules.of(told);
    }

    @Test
    void aPartitionIsAValueThatItsPathPreserves() {
        RowRules plain = rules();
        for (String value : UNSAFE) {
            TimelineRefusedException refused =
                    assertThrows(TimelineRefusedException.class, () -> plain.requirePartition(value, "file"), value);
            assertTrue(refused.getMessage().contains("the partition of a row is '"), refused.getMessage());
        }
        for (String value : SAFE) {
            assertDoesNotThrow(() -> plain.requirePartition(value, "file"), value);
        }
    }

    @Test
    void aFolderOfHiveStyleNamesItsField() {
        RowRules hive = rules("hiveStyle", "true", "partitions", "p,q");
        assertDoesNotThrow(() -> hive.requirePartition("p=a/q=b", "file"));
        for (String value : new String[] {"p=x=y/q=b", "p=a/q=x:y", "r=a/q=b", "p=a//q=b"}) {
            assertThrows(TimelineRefusedException.class, () -> hive.requirePartition(value, "file"), value);
        }
    }

    @Test
    void eachPartitionColumnHasOneFolder() {
        RowRules two = rules("partitions", "p,q");
        RowRules hive = rules("hiveStyle", "true");
        assertDoesNotThrow(() -> two.requirePartition("a/b", "file"));
        assertDoesNotThrow(() -> hive.requirePartition("p=a", "file"));
        for (String value : new String[] {"a/b/c", "a"}) {
            TimelineRefusedException refused =
                    assertThrows(TimelineRefusedException.class, () -> two.requirePartition(value, "file"), value);
            assertTrue(refused.getMessage().contains("folders for 2 partition columns"), refused.getMessage());
        }
        assertThrows(TimelineRefusedException.class, () -> hive.requirePartition("p=a/b", "file"));
    }

    @Test
    void orderingColumnsHaveAValueUnlessNullsAreIgnored() {
        assertEquals(List.of("ts", "at.ms"), rules().neverNull());
        assertEquals(List.of(), rules("ignoresNulls", "true").neverNull());
        assertEquals(List.of(), rules("ordering", "").neverNull());
    }

    private static HoodieSchema keys(String id) {
        return HoodieSchema.parse("{\"type\": \"record\", \"name\": \"r\", \"fields\": ["
                + "{\"name\": \"id\", \"type\": [\"null\", \"" + id + "\"]}, {\"name\": \"v\", \"type\": \"string\"},"
                + " {\"name\": \"p\", \"type\": [\"null\", \"string\"]}, {\"name\": \"d\", \"type\": \"double\"}]}");
    }

    /** F377: only where two of a table's columns, or two texts of a number, can be confused. */
    @Test
    void valuesOfKeysAndPartitionsAreLookedAtWhereTwoCouldBeOne() {
        StoragePath file = new StoragePath("s3a://lake/t/a/f.parquet");
        StoragePath none = new StoragePath("s3a://lake/t/__HIVE_DEFAULT_PARTITION__/f.parquet");
        assertEquals(List.of(), rules().confused(keys("string"), file));
        assertEquals(List.of("id"), rules().confused(keys("float"), file));
        assertEquals(List.of("p"), rules().confused(keys("string"), none));
        assertEquals(List.of(), rules("partitions", "").confused(keys("string"), none));
        assertEquals(List.of("v", "d"), rules("keys", "id,v,d").confused(keys("long"), file));
        assertEquals(
                List.of("id", "p"), rules("keys", "id", "partitions", "x,p").confused(keys("double"), none));
    }

    @Test
    void twoRecordsHaveTwoKeysAndTwoPartitions() {
        RowRules two = rules("keys", "id,v");
        for (Object good : new Object[] {"a:1", "1, v:2", ",w:", "null", 0.0, 1L, "-0.0"}) {
            assertEquals("", two.problem("id", good), String.valueOf(good));
        }
        assertEquals("", two.problem("id", null));
        for (Object bad : new Object[] {"__null__", "__empty__", "1,v:2", "x,id:", -0.0, -0.0f}) {
            assertFalse(two.problem("id", bad).isEmpty(), String.valueOf(bad));
        }
        assertEquals("", rules().problem("id", "1,v:2"), "a key of one column has no names in it");
        assertEquals("", two.problem("p", null));
        for (Object bad : new Object[] {"", "__HIVE_DEFAULT_PARTITION__"}) {
            assertFalse(two.problem("p", bad).isEmpty(), String.valueOf(bad));
        }
    }

    private static HoodieSchema schema(String ordering) {
        return HoodieSchema.parse(
                "{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"id\",\"type\":\"string\"},"
                        + "{\"name\":\"p\",\"type\":[\"null\",\"string\"]},{\"name\":\"ts\",\"type\":[\"null\","
                        + ordering
                        + "]}]}");
    }

    @Test
    void columnsHaveTypesWithOneTextAndOneOrder() {
        String day = "{\"type\":\"int\",\"logicalType\":\"date\"}";
        for (String type : new String[] {"\"long\"", "\"string\"", day}) {
            assertDoesNotThrow(() -> rules().requireTypes(schema(type), "file"), type);
        }
        for (String type : new String[] {"\"bytes\"", "{\"type\":\"array\",\"items\":\"int\"}"}) {
            TimelineRefusedException refused = assertThrows(
                    TimelineRefusedException.class, () -> rules().requireTypes(schema(type), "file"), type);
            assertTrue(refused.getMessage().contains("column ts: it is "), refused.getMessage());
        }
        RowRules copied = rules("type", "COPY_ON_WRITE");
        assertThrows(TimelineRefusedException.class, () -> copied.requireTypes(schema(day), "file"));
    }
}
