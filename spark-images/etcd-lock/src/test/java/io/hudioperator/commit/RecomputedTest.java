package io.hudioperator.commit;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.session.LostExecutors;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.Test;

/** Rows that differ each time they are computed are committed as they were computed once (F106). */
class RecomputedTest {
    private static TypedProperties since(long recomputed) {
        TypedProperties props = new TypedProperties();
        props.setProperty(CommitChecks.RECOMPUTED, Long.toString(recomputed));
        return props;
    }

    @Test
    void whatWasComputedOnceIsCommitted() {
        assertDoesNotThrow(() -> CommitChecks.requireComputedOnce(new TypedProperties()));
        assertDoesNotThrow(() -> CommitChecks.requireComputedOnce(since(LostExecutors.recomputed())));
    }

    @Test
    void whatMayHaveBeenComputedTwiceIsNot() {
        for (long before : new long[] {LostExecutors.recomputed() + 1, LostExecutors.UNKNOWN}) {
            HoodieException refused =
                    assertThrows(HoodieException.class, () -> CommitChecks.requireComputedOnce(since(before)));
            String said = refused.getMessage();
            assertTrue(said.startsWith("[HUDIOP-RECOMPUTED] an executor was lost, or a stage was repeated"), said);
        }
    }
}
