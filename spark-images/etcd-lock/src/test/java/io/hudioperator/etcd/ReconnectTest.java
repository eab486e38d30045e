package io.hudioperator.etcd;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** While an endpoint is away, it is tried about twice a second, for as long as somebody asks. */
class ReconnectTest {
    private static final Duration AWAY = Duration.ofSeconds(15);

    /** After 0, 1, 2.6, 5.2, 9.3 seconds, give or take a fifth, and after 15.9. */
    private static final int BY_GRPC_ALONE = 6;

    @Test
    void anEndpointThatIsAwayIsTriedAgainAndAgain() throws IOException {
        AtomicInteger connections = new AtomicInteger();
        long seconds;
        try (ServerSocket closing = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            Thread server = new Thread(() -> {
                while (!closing.isClosed()) {
                    try {
                        closing.accept().close();
                        connections.incrementAndGet();
                    } catch (IOException ended) {
                        return;
                    }
                }
            });
            server.start();
            String endpoint = "http://127.0.0.1:" + closing.getLocalPort();
            try (GrpcEtcdClient client = new GrpcEtcdClient(
                    EtcdSettings.of(Map.of("endpoints", endpoint, "rpcTimeoutSeconds", "1"), Map.of()))) {
                long begin = System.nanoTime();
                while (connections.get() <= BY_GRPC_ALONE + 1 && System.nanoTime() - begin < AWAY.toNanos()) {
                    assertThrows(EtcdException.class, () -> client.grantLease(10));
                    Pause.millis(100);
                }
                seconds = Duration.ofNanos(System.nanoTime() - begin).toSeconds() + 1;
            }
        }
        String seen = connections + " connections in " + seconds + " s: ";
        assertTrue(connections.get() > BY_GRPC_ALONE + 1, seen + "heartbeats come too late");
        assertTrue(connections.get() <= 3 * seconds, seen + "a gateway that starts would be flooded");
    }
}
