package io.hudioperator.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hudioperator.etcd.EtcdException;
import io.hudioperator.etcd.Txn;
import io.hudioperator.support.TestTable;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Which pending instants take precedence: those of living incarnations of a higher priority,
 * according to one read of a real etcd.
 */
class PrecedenceTest {
    private final TestTable table = new TestTable();

    @BeforeEach
    void writers() {
        writer("high", 10, true);
        writer("low", -5, true);
        writer("dead", 20, false);
        table.etcd.put("writer/plain", "{}");
        table.etcd.put("alive/plain", "{}");
        for (String inc : new String[] {"high", "low", "dead", "plain"}) {
            instant("of-" + inc, "{\"inc\":\"" + inc + "\",\"state\":\"Pending\"}");
        }
        instant("given-up", "{\"inc\":\"high\",\"state\":\"Abandoned\"}");
        instant("claimed-by-high", "{\"inc\":\"low\",\"state\":\"Pending\",\"claimedBy\":\"high\"}");
        instant("claimed-by-low", "{\"inc\":\"high\",\"state\":\"Pending\",\"claimedBy\":\"low\"}");
    }

    @AfterEach
    void close() {
        table.close();
    }

    private void writer(String inc, int priority, boolean alive) {
        table.etcd.put("writer/" + inc, "{\"priority\":" + priority + "}");
        if (alive) {
            table.etcd.put("alive/" + inc, "{}");
        }
    }

    private void instant(String time, String record) {
        table.etcd.put("instant/" + time, record);
    }

    private Set<String> ahead(int priority) throws EtcdException {
        Txn read = Txn.when()
                .then(Txn.Op.range(table.keys.writer("")))
                .then(Txn.Op.range(table.keys.alive("")))
                .then(Txn.Op.range(table.keys.instant("")));
        return new Precedence(table.keys, table.client.txn(read)).pendingAhead(priority);
    }

    @Test
    void theLivingWithAHigherPriority() throws EtcdException {
        assertEquals(Set.of("of-high", "claimed-by-high"), ahead(0));
        assertEquals(Set.of("of-high", "claimed-by-high"), ahead(9));
        assertEquals(Set.of("of-high", "claimed-by-high", "of-plain"), ahead(-1), "without a word the priority is 0");
        assertEquals(Set.of("of-high", "claimed-by-high", "of-plain", "of-low", "claimed-by-low"), ahead(-6));
    }

    @Test
    void nobodyGoesBeforeAnEqual() throws EtcdException {
        assertEquals(Set.of(), ahead(10));
    }
}
