package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hudioperator.catalog.PartitionValues;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Values of partition columns, as a catalog gets them. */
class PartitionValuesTest {
    @Test
    void thePathOfOneColumnIsItsValue() {
        PartitionValues.Whole values = new PartitionValues.Whole();
        assertEquals(List.of("a"), values.extractPartitionValuesInPath("a"));
        assertEquals(List.of("2026/01/05"), values.extractPartitionValuesInPath("2026/01/05"));
        assertEquals(List.of("x=y"), values.extractPartitionValuesInPath("x=y"));
        assertEquals(List.of(), values.extractPartitionValuesInPath(""));
    }

    @Test
    void inHiveStyleTheValueFollowsTheName() {
        PartitionValues.NamedWhole values = new PartitionValues.NamedWhole();
        assertEquals(List.of("a"), values.extractPartitionValuesInPath("p=a"));
        assertEquals(List.of("2026/01/05=x"), values.extractPartitionValuesInPath("p=2026/01/05=x"));
        assertEquals(List.of(), values.extractPartitionValuesInPath("a"));
    }

    @Test
    void ofSeveralColumnsEachHasALevel() {
        PartitionValues.Levels values = new PartitionValues.Levels();
        assertEquals(List.of("a", "b"), values.extractPartitionValuesInPath("a/b"));
        assertEquals(List.of("a", "b", "x=y"), values.extractPartitionValuesInPath("a/b/x=y"));
        assertEquals(List.of(), values.extractPartitionValuesInPath(""));
        PartitionValues.NamedLevels named = new PartitionValues.NamedLevels();
        assertEquals(List.of("a", "b"), named.extractPartitionValuesInPath("p=a/q=b"));
        assertEquals(List.of("a", "b"), named.extractPartitionValuesInPath("p=a/x/q=b"));
    }
}
