package io.hudioperator.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.support.FaultyEtcd;
import io.hudioperator.support.TestTable;
import java.io.IOException;
import java.util.Map;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** etcd as the Python side of a pod sees it. */
class EtcdFacadeTest {
    private final TestTable table = new TestTable();

    @AfterEach
    void close() {
        table.close();
    }

    @Test
    void compareAndSet() {
        long first = table.etcd.casPut("done/x", "1", 0);
        assertTrue(first > 0);
        assertEquals(-1, table.etcd.casPut("done/x", "2", 0));
        long second = table.etcd.casPut("done/x", "2", first);
        assertTrue(second > first);
        KeyValue kv = table.etcd.get("done/x");
        assertEquals("2", kv.value());
        assertEquals(second, kv.modRevision());
        assertEquals(first, kv.createRevision());
        assertEquals("/hudi/tables/" + table.id + "/done/x", kv.key());
        assertEquals("2", table.etcd.get(kv.key()).value());
        assertFalse(table.etcd.delete("done/x", first));
        assertTrue(table.etcd.delete("done/x", second));
        assertNull(table.etcd.get("done/x"));
    }

    @Test
    void aRange() {
        table.etcd.put("report/b", "2");
        table.etcd.put("report/a", "1");
        table.etcd.put("reports", "no");
        assertEquals(2, table.etcd.range("report/").size());
        assertEquals("1", table.etcd.range("report/").get(0).value());
    }

    @Test
    void aRangeForPython() throws IOException {
        String value = "{\"text\":\"\u00e4 'quoted' \\\"twice\\\"\"}";
        long revision = table.etcd.put("report/a", value);
        JsonNode found = new ObjectMapper().readTree(table.etcd.rangeAsJson("report/"));
        assertEquals(1, found.size());
        assertEquals(
                "/hudi/tables/" + table.id + "/report/a", found.get(0).get(0).textValue());
        assertEquals(value, found.get(0).get(1).textValue());
        assertEquals(revision, found.get(0).get(2).longValue());
        assertEquals("[]", table.etcd.rangeAsJson("nothing/"));
    }

    /** As they were at one revision. */
    @Test
    void rangesForPython() throws IOException {
        table.etcd.put("report/a", "1");
        table.etcd.put("alive/b", "2");
        JsonNode found = new ObjectMapper().readTree(table.etcd.rangesAsJson("alive/\nnothing/\nreport/"));
        assertEquals(3, found.size());
        assertEquals("2", found.get(0).get(0).get(1).textValue());
        assertEquals(0, found.get(1).size());
        assertEquals(table.etcd.rangeAsJson("report/"), found.get(2).toString());
    }

    @Test
    void aRangeThatIsTooLargeIsNotCutOff() throws Exception {
        for (int first = 0; first < 10_000; first += 100) {
            Txn txn = Txn.when();
            for (int i = first; i < first + 100; i++) {
                txn.then(Txn.Op.put(table.keys.tablePrefix() + "many/" + i, "", 0));
            }
            table.client.txn(txn);
        }
        assertEquals(10_000, table.etcd.range("many/").size());
        table.etcd.put("many/one-more", "");
        HoodieException e = assertThrows(HoodieException.class, () -> table.etcd.range("many/"));
        assertTrue(e.getMessage().contains("more than 10000 keys"), e.getMessage());
    }

    @Test
    void aLostAnswerOfCompareAndSetIsFoundOut() {
        FaultyEtcd faulty = new FaultyEtcd(table.client);
        EtcdFacade facade =
                new EtcdFacade(faulty, table.keys.prefix(), table.keys.tablePrefix(), table.keys.controlPrefix());
        faulty.loseAnswerOf(t -> true);
        long revision = facade.casPut("done/x", "1", 0);
        assertEquals(table.etcd.get("done/x").modRevision(), revision);
    }

    @Test
    void nobodyAnswers() {
        EtcdSettings nobody =
                EtcdSettings.of(Map.of("endpoints", "http://127.0.0.1:1", "rpcTimeoutSeconds", "1"), Map.of());
        try (GrpcEtcdClient client = new GrpcEtcdClient(nobody)) {
            EtcdFacade facade = new EtcdFacade(client, "/hudi", "/hudi/tables/x/", "/hudi/control/x/");
            TestTable.assertCode(ErrorCode.ETCD_SILENT, assertThrows(HoodieException.class, () -> facade.get("a")));
        }
    }
}
