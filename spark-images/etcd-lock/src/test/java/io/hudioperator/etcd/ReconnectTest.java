package io.hudioperator.etcd;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.support.EtcdServer;
import io.hudioperator.support.TestTable;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** An endpoint that was away is used when it is there again, not after a pause that has grown. */
class ReconnectTest {
    /** gRPC by itself would try after 1, 2.6, 5.2 and 9.3 seconds, give or take a fifth. */
    private static final Duration AWAY = Duration.ofSeconds(6);

    @Test
    void anEndpointThatComesBackIsUsedAtOnce() {
        try (EtcdServer etcd = EtcdServer.started(1);
                GrpcEtcdClient client = new GrpcEtcdClient(
                        EtcdSettings.of(Map.of("endpoints", etcd.endpoints(), "rpcTimeoutSeconds", "1"), Map.of()))) {
            granted(client);
            etcd.kill(0);
            long back = System.nanoTime() + AWAY.toNanos();
            while (System.nanoTime() - back < 0) {
                assertThrows(EtcdException.class, () -> client.grantLease(10));
                Pause.millis(200);
            }
            etcd.restart(0);
            TestTable.await(Duration.ofSeconds(1), "an answer", () -> granted(client));
        }
    }

    private static boolean granted(GrpcEtcdClient client) {
        try {
            assertTrue(client.grantLease(10) != 0);
            return true;
        } catch (EtcdException e) {
            return false;
        }
    }
}
