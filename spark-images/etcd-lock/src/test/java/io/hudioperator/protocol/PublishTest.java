package io.hudioperator.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.session.Session;
import io.hudioperator.support.FaultyEtcd;
import io.hudioperator.support.TestTable;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * A publication moves the clock once, however often it is requested: a lost request that is
 * executed later moves nothing (F38, I10).
 */
class PublishTest {
    private final TestTable table = new TestTable();
    private final Session session = table.session("ns.agent", Map.of("role", "agent"));

    @AfterEach
    void close() {
        table.close();
    }

    private String begun(int after) throws TimelineRefusedException {
        String instant = TestTable.time(after);
        session.instants().beforeRequested(instant, "compaction");
        return instant;
    }

    @Test
    void aRequestThatIsExecutedAfterItsRepetitionMovesNothing() throws Exception {
        assertTrue(table.acquire(session));
        String first = begun(0);
        table.faults(session).hold(FaultyEtcd.puts(table.keys.clock()));
        session.instants()
                .beforeCompleted(first, TestTable.time(10), "commit", () -> 1)
                .completed();
        assertTrue(table.faults(session).holdsSomething(), "the first request had no answer");
        String second = begun(20);
        assertEquals(second, table.clock());
        assertFalse(
                table.faults(session).deliver(table.client), "when it is executed, the table's clock has passed it");
        assertEquals(second, table.clock());
    }

    @Test
    void anAnswerThatIsLostAfterTheRequestWasExecutedIsASuccess() throws Exception {
        assertTrue(table.acquire(session));
        String first = begun(0);
        String completion = TestTable.time(10);
        table.faults(session).loseAnswerOf(FaultyEtcd.puts(table.keys.clock()));
        session.instants().beforeCompleted(first, completion, "commit", () -> 1).completed();
        assertEquals(completion, table.clock());
        session.release();
        assertEquals(null, table.instant(first));
    }
}
