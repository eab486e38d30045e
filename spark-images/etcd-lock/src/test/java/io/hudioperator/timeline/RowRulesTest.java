package io.hudioperator.timeline;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.TimelineRefusedException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hudi.common.schema.HoodieSchema;
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
