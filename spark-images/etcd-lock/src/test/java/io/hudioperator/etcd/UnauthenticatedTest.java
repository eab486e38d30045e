package io.hudioperator.etcd;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Server;
import io.grpc.Status;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.ProtocolLog;
import io.hudioperator.contract.TableKeys;
import io.hudioperator.protocol.DefiniteTxn;
import io.hudioperator.protocol.Identity;
import io.hudioperator.protocol.InstantProtocol;
import io.hudioperator.rpc.KVGrpc;
import io.hudioperator.rpc.ResponseHeader;
import io.hudioperator.rpc.TxnRequest;
import io.hudioperator.rpc.TxnResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** F413: a gateway whose clock is wrong takes good tokens for expired, or not yet valid. */
class UnauthenticatedTest {
    private final List<Server> servers = new ArrayList<>();
    private final AtomicInteger refused = new AtomicInteger();

    @AfterEach
    void close() {
        servers.forEach(Server::shutdownNow);
    }

    private String gateway(Status answers) throws IOException {
        Server server = NettyServerBuilder.forPort(0)
                .addService(new KVGrpc.KVImplBase() {
                    @Override
                    public void txn(TxnRequest request, StreamObserver<TxnResponse> answer) {
                        if (!answers.isOk()) {
                            refused.incrementAndGet();
                            answer.onError(answers.asRuntimeException());
                            return;
                        }
                        answer.onNext(TxnResponse.newBuilder()
                                .setSucceeded(true)
                                .setHeader(ResponseHeader.newBuilder()
                                        .setClusterId(1)
                                        .setRevision(5))
                                .build());
                        answer.onCompleted();
                    }
                })
                .build()
                .start();
        servers.add(server);
        return "http://127.0.0.1:" + server.getPort();
    }

    private static GrpcEtcdClient client(String... endpoints) {
        // an answer that is late on a busy machine is still the one that is expected
        return new GrpcEtcdClient(
                EtcdSettings.of(Map.of("endpoints", String.join(",", endpoints), "rpcTimeoutSeconds", "60"), Map.of()));
    }

    private static Status notYet() {
        return Status.UNAUTHENTICATED.withDescription("token used before issued");
    }

    @Test
    void theOtherGatewayIsAsked() throws Exception {
        try (GrpcEtcdClient client = client(gateway(notYet()), gateway(Status.OK))) {
            assertThrows(EtcdException.class, () -> client.txn(Txn.when()));
            assertTrue(client.txn(Txn.when()).succeeded);
            assertTrue(client.txn(Txn.when()).succeeded, "and stays so");
        }
        assertEquals(1, refused.get());
    }

    /** The right is missing, whichever gateway is asked. */
    @Test
    void aDeniedRequestIsNotRepeated() throws Exception {
        try (GrpcEtcdClient client = client(gateway(Status.PERMISSION_DENIED), gateway(Status.OK))) {
            for (int call = 0; call < 2; call++) {
                EtcdException e = assertThrows(EtcdException.class, () -> client.txn(Txn.when()));
                assertEquals(EtcdException.Outcome.DENIED, e.outcome());
            }
        }
        assertEquals(2, refused.get());
    }

    @Test
    void whenBothRefuseItIsRepeatedUntilTheLimit() throws Exception {
        try (GrpcEtcdClient client = client(gateway(notYet()), gateway(notYet()))) {
            TableKeys keys = new TableKeys("/hudi", "t");
            Identity me = new Identity(Map.of("attempt", "ns.a"), Map.of());
            ProtocolLog log = new ProtocolLog("t", "i", "writer");
            DefiniteTxn definite = new DefiniteTxn(client, keys, log, () -> refused.get() >= 4);
            HoodieException e = assertThrows(
                    HoodieException.class, () -> new InstantProtocol(keys, me, log, definite).pendingInstants());
            assertCode(ErrorCode.ETCD_SILENT, e);
            assertTrue(e.getMessage().contains("token used before issued"), e.getMessage());
        }
        assertEquals(4, refused.get());
    }
}
