package io.hudioperator.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.session.Session;
import io.hudioperator.support.EtcdServer;
import io.hudioperator.support.TestTable;
import java.util.List;
import java.util.Map;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * The etcd of these tests has the chart's users and roles, so a session that wrote a key of the
 * operator would fail in any of them (I2).
 */
class RolesTest {
    private final TestTable table = new TestTable();

    @AfterEach
    void close() {
        table.close();
    }

    @Test
    void aSessionWritesNoKeyOfTheOperator() {
        Session session = table.session("ns.a");
        KeyValue gate = table.etcd.get(table.keys.gate());
        for (String key : List.of(table.keys.gate(), table.keys.admit("ns.b"), table.keys.fence(session.inc()))) {
            HoodieException refused =
                    assertThrows(HoodieException.class, () -> session.etcd().put(key, gate.value()));
            assertTrue(refused.getMessage().contains("permission denied"), refused.getMessage());
            assertThrows(HoodieException.class, () -> session.etcd().delete(key, 0));
        }
        assertEquals(gate.modRevision(), session.etcd().get(table.keys.gate()).modRevision(), "it may read it");
        session.etcd().put("report/ns.a", "{}");
        assertEquals("{}", table.etcd.get("report/ns.a").value(), "and write its table's");
    }

    @Test
    void whoShowsNoCertificateIsNotServed() {
        Map<String, String> settings = EtcdServer.shared().settings();
        settings.remove("cert");
        settings.remove("key");
        try (GrpcEtcdClient client = new GrpcEtcdClient(EtcdSettings.of(settings, Map.of()))) {
            assertThrows(EtcdException.class, () -> client.txn(Txn.when().then(Txn.Op.get(table.keys.gate()))));
        }
    }
}
