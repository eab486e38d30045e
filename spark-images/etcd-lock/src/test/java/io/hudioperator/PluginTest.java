package io.hudioperator;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.timeline.TimelineGuard;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** F503: who deletes a file of a timeline that a task wants to go. */
class PluginTest {
    private static final Path PENDING =
            new Path("s3a://lake/t/.hoodie/metadata/.hoodie/timeline/20260101000000000.deltacommit.requested");

    private final List<Object> asked = new ArrayList<>();

    @AfterEach
    void nobodyIsAskedAnyMore() {
        TimelineGuard.removedBy(null);
    }

    private void begin(String executor) {
        HudiOperatorPlugin.removedByDriver(executor, message -> {
            asked.add(message);
            return true;
        });
    }

    private static boolean deleted() throws IOException {
        return TimelineGuard.delete(PENDING, () -> {
            throw new AssertionError("it is the driver's to delete");
        });
    }

    @Test
    void anExecutorAsksItsDriver() throws IOException {
        begin("1");
        assertTrue(deleted());
        assertEquals(List.of("remove " + PENDING), asked);
    }

    /** It would wait for itself, and the thread that answers would never be free again. */
    @Test
    void aDriverThatComputesLocallyDoesNotAskItself() {
        begin("driver");
        IOException refused = assertThrows(IOException.class, PluginTest::deleted);
        assertCode(ErrorCode.NOT_OWNER, refused);
        assertEquals(List.of(), asked);
    }
}
