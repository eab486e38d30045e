package io.hudioperator.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.etcd.EtcdFacade;
import io.hudioperator.etcd.EtcdSettings;
import io.hudioperator.etcd.GrpcEtcdClient;
import io.hudioperator.etcd.Pause;
import io.hudioperator.protocol.TableStorage;
import io.hudioperator.support.EtcdServer;
import io.hudioperator.support.TestTable;
import java.time.Duration;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;

/** Losing one of three members causes a short wait, never an error. */
class FailoverTest {

    @Test
    void aSessionSurvivesTheLossOfTheMemberItIsConnectedTo() throws Exception {
        try (EtcdServer etcd = EtcdServer.started(3);
                TestTable shared = new TestTable()) {
            Map<String, String> settings = shared.settings("ns.a");
            settings.putAll(Map.of(
                    "endpoints", etcd.endpoints(), "rpcTimeoutSeconds", "1", "leaseSeconds", "9", "drainSeconds", "1"));
            EtcdSettings etcdSettings = EtcdSettings.of(settings, Map.of());
            GrpcEtcdClient client = new GrpcEtcdClient(etcdSettings);
            EtcdFacade facade = new EtcdFacade(client, "/hudi", shared.keys.tablePrefix(), shared.keys.controlPrefix());
            facade.put(shared.keys.gate(), "{\"state\":\"open\",\"protocolVersion\":1}");
            facade.put(shared.keys.admit("ns.a"), "{}");
            Session session = OpenSessions.open(
                    settings,
                    Map.of(),
                    new GrpcEtcdClient(etcdSettings),
                    etcdSettings,
                    (code, why) -> shared.halts.add(code));
            long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
            int cycles = 0;
            boolean killed = false;
            while (cycles < 60 && System.nanoTime() - end < 0) {
                assertTrue(session.acquire(
                        Duration.ofSeconds(10).toNanos(), new TableStorage(shared.basePath(), new Configuration())));
                session.release();
                if (++cycles == 20) {
                    etcd.kill(0); // the member that this session is connected to
                    killed = true;
                }
                Pause.millis(10);
            }
            assertTrue(killed && cycles == 60, cycles + " cycles");
            assertTrue(shared.halts.isEmpty());
            TestTable.await(
                    Duration.ofSeconds(5), "it is live", () -> session.state().equals("LIVE"));
            assertTrue(session.close());
            assertEquals(0, facade.range("writer/").size());
            client.close();
        }
    }
}
