package io.hudioperator.catalog;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.apache.hudi.common.schema.HoodieSchema;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What no catalog of Hive's types can describe is refused by column and rule. */
class HeldTest {
    private static HoodieSchema table(String fields) {
        return HoodieSchema.parse("{\"type\":\"record\",\"name\":\"t\",\"fields\":[" + fields + "]}");
    }

    private static String field(String name, String type) {
        return "{\"name\":\"" + name + "\",\"type\":" + type + "}";
    }

    private static String struct(String fields) {
        return "{\"type\":\"record\",\"name\":\"s\",\"fields\":[" + fields + "]}";
    }

    private static String refused(String fields) {
        return assertThrows(Held.NotHeld.class, () -> Held.check(table(fields))).getMessage();
    }

    @Test
    void ordinaryColumnsAreHeld() {
        String decimal = "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":38,\"scale\":18}";
        String optional = "[\"null\"," + struct(field("A", "\"int\"")) + "]";
        assertDoesNotThrow(() -> Held.check(table(field("id", "\"int\"") + "," + field("größe", decimal) + ","
                + field("s", optional) + ","
                + field("m", "{\"type\":\"map\",\"values\":{\"type\":\"array\",\"items\":\"long\"}}"))));
    }

    @Test
    void namesThatDifferByCaseAreNot() {
        assertEquals(
                "column 'a': another one differs only by upper and lower case, which Hive does not tell apart",
                refused(field("A", "\"int\"") + "," + field("a", "\"int\"")));
        String inside = struct(field("Ab", "\"int\"") + "," + field("aB", "\"int\""));
        assertEquals(
                "column 'm.value.element.aB': another one differs only by upper and lower case, which Hive does not "
                        + "tell apart",
                refused(field("m", "{\"type\":\"map\",\"values\":{\"type\":\"array\",\"items\":" + inside + "}}")));
    }

    @Test
    void typesThatHiveDoesNotHave() {
        assertEquals(
                "column 'u': it is of type UNION, which Hive does not have",
                refused(field("u", "[\"null\",\"int\",\"string\"]")));
        assertEquals("column 'n': it is of type NULL, which Hive does not have", refused(field("n", "\"null\"")));
        assertEquals(
                "column 's': it is a struct without a field, which Hive does not have",
                refused(field("s", struct(""))));
        assertEquals(
                "column 'd': it is a decimal of 60 digits, Hive's have 38",
                refused(field("d", "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":60,\"scale\":1}")));
    }

    @ParameterizedTest
    @CsvSource({
        "1, int, true",
        "-2147483648, int, true",
        "2147483648, int, false",
        "2147483648, bigint, true",
        "99999999999999999999, bigint, false",
        "1.0, int, false",
        "2026-01-31, DATE, true",
        "2026-02-31, DATE, false",
        "20484, DATE, false",
        "2026/01/31, DATE, false",
        "true, boolean, true",
        "1, boolean, false",
        "1.50, 'DECIMAL(10,2)', true",
        "x, 'DECIMAL(10,2)', false",
        "2026-01-31 10:00:00.0, TIMESTAMP, true",
        "1767225600000000, TIMESTAMP, false",
        "anything at all, string, true",
        "__HIVE_DEFAULT_PARTITION__, int, true",
    })
    void aValueOfAPartitionIsOfItsColumnsType(String value, String type, boolean read) {
        assertEquals(read, Held.reads(value, type));
    }
}
