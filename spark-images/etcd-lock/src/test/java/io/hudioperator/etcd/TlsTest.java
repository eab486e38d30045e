package io.hudioperator.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerInterceptors;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.rpc.KVGrpc;
import io.hudioperator.rpc.TxnRequest;
import io.hudioperator.rpc.TxnResponse;
import io.hudioperator.support.EtcdServer;
import io.hudioperator.support.TestTable;
import java.io.File;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.Test;

/** etcd accepts only connections with a client certificate of its authority. */
class TlsTest {
    private final Path folder;

    TlsTest() throws IOException {
        folder = Files.createTempDirectory("tls-");
    }

    private void openssl(String... arguments) throws Exception {
        List<String> command = new java.util.ArrayList<>(List.of("openssl"));
        command.addAll(Arrays.asList(arguments));
        Process process = new ProcessBuilder(command)
                .directory(folder.toFile())
                .redirectErrorStream(true)
                .start();
        String output = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), () -> String.join(" ", command) + "\n" + output);
    }

    private void authority(String name) throws Exception {
        openssl(
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=" + name,
                "-keyout",
                name + ".key",
                "-out",
                name + ".crt");
    }

    private void issue(String name, String authority, String extensions) throws Exception {
        Files.writeString(folder.resolve(name + ".ext"), extensions);
        openssl(
                "req",
                "-new",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-subj",
                "/CN=" + name,
                "-keyout",
                name + ".key",
                "-out",
                name + ".csr");
        openssl(
                "x509",
                "-req",
                "-in",
                name + ".csr",
                "-CA",
                authority + ".crt",
                "-CAkey",
                authority + ".key",
                "-CAcreateserial",
                "-days",
                "2",
                "-extfile",
                name + ".ext",
                "-out",
                name + ".crt");
    }

    private String file(String name) {
        return folder.resolve(name).toString();
    }

    private Map<String, String> identity(String ca, String name) {
        Map<String, String> identity = new HashMap<>();
        identity.put("ca", file(ca + ".crt"));
        if (name != null) {
            identity.put("cert", file(name + ".crt"));
            identity.put("key", file(name + ".key"));
        }
        return identity;
    }

    private static String read(EtcdServer etcd, Map<String, String> identity) throws EtcdException {
        Map<String, String> settings = new HashMap<>(identity);
        settings.put("endpoints", etcd.endpoints());
        settings.put("rpcTimeoutSeconds", "2");
        try (GrpcEtcdClient client = new GrpcEtcdClient(EtcdSettings.of(settings, Map.of()))) {
            client.txn(Txn.when().then(Txn.Op.put("/k", "v", 0)));
            return client.txn(Txn.when().then(Txn.Op.get("/k"))).one(0).value();
        }
    }

    /** The same key in the form that Helm (RSA) and cert-manager write. */
    private void issueTraditional(String name, String algorithm) throws Exception {
        Files.writeString(folder.resolve(name + ".ext"), "extendedKeyUsage=clientAuth\n");
        String[] newKey = algorithm.equals("rsa")
                ? new String[] {"rsa:2048"}
                : new String[] {"ec", "-pkeyopt", "ec_paramgen_curve:secp384r1"};
        List<String> request = new java.util.ArrayList<>(List.of("req", "-new", "-newkey"));
        request.addAll(Arrays.asList(newKey));
        request.addAll(
                List.of("-nodes", "-subj", "/CN=hudi-writer", "-keyout", name + ".pkcs8", "-out", name + ".csr"));
        openssl(request.toArray(new String[0]));
        openssl(
                "x509",
                "-req",
                "-in",
                name + ".csr",
                "-CA",
                "ca.crt",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-days",
                "2",
                "-extfile",
                name + ".ext",
                "-out",
                name + ".crt");
        List<String> convert =
                new java.util.ArrayList<>(List.of(algorithm, "-in", name + ".pkcs8", "-out", name + ".key"));
        if (algorithm.equals("rsa")) {
            convert.add("-traditional");
        }
        openssl(convert.toArray(new String[0]));
        String begin = "-----BEGIN " + algorithm.toUpperCase(java.util.Locale.ROOT) + " PRIVATE KEY-----";
        assertTrue(Files.readString(folder.resolve(name + ".key")).contains(begin));
    }

    @Test
    void anEncryptedOrMissingKeyIsAnError() throws Exception {
        authority("ca");
        Map<String, String> settings = new HashMap<>(identity("ca", "ca"));
        settings.put("endpoints", "https://127.0.0.1:1");
        Files.writeString(
                folder.resolve("ca.key"),
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
        HoodieException e =
                assertThrows(HoodieException.class, () -> new GrpcEtcdClient(EtcdSettings.of(settings, Map.of())));
        TestTable.assertCode(ErrorCode.OPTION, e);
    }

    @Test
    void onlyAnIdentityOfTheAuthorityIsServed() throws Exception {
        authority("ca");
        authority("other");
        issue("server", "ca", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n");
        issue("hudi-writer", "ca", "extendedKeyUsage=clientAuth\n");
        issue("stranger", "other", "extendedKeyUsage=clientAuth\n");
        issueTraditional("pkcs1", "rsa");
        issueTraditional("sec1", "ec");
        Map<String, String> writer = identity("ca", "hudi-writer");
        try (EtcdServer etcd = EtcdServer.startedWithTls(folder, "ca.crt", "server", writer)) {
            assertEquals("v", read(etcd, writer));
            assertEquals("v", read(etcd, identity("ca", "pkcs1")));
            assertEquals("v", read(etcd, identity("ca", "sec1")));
            assertThrows(EtcdException.class, () -> read(etcd, identity("ca", null)), "no certificate");
            assertThrows(
                    EtcdException.class,
                    () -> read(etcd, identity("ca", "stranger")),
                    "certificate of another authority");
            EtcdException refused = assertThrows(
                    EtcdException.class,
                    () -> read(etcd, identity("other", "hudi-writer")),
                    "server of another authority");
            assertTrue(refused.getMessage().contains("CertPathBuilderException"), refused.getMessage());
            assertFalse(refused.getMessage().contains("\n"), refused.getMessage());
        }
    }

    /** What a server is shown with each call. */
    private static final class Shown extends KVGrpc.KVImplBase implements ServerInterceptor {
        final List<String> authorization = new java.util.concurrent.CopyOnWriteArrayList<>();

        @Override
        public void txn(TxnRequest request, StreamObserver<TxnResponse> answer) {
            answer.onNext(TxnResponse.newBuilder().setSucceeded(true).build());
            answer.onCompleted();
        }

        @Override
        public <Q, R> ServerCall.Listener<Q> interceptCall(
                ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
            authorization.add(headers.get(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER)));
            return next.startCall(call, headers);
        }
    }

    @Test
    void theTokenIsShownOverTlsOnly() throws Exception {
        authority("ca");
        issue("server", "ca", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n");
        Path token = folder.resolve("token");
        Files.writeString(token, "first\n");
        Shown shown = new Shown();
        Server server = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0))
                .useTransportSecurity(new File(file("server.crt")), new File(file("server.key")))
                .addService(ServerInterceptors.intercept(shown, shown))
                .build()
                .start();
        Map<String, String> settings = identity("ca", null);
        settings.put("token", token.toString());
        settings.put("endpoints", "https://127.0.0.1:" + server.getPort());
        try (GrpcEtcdClient client = new GrpcEtcdClient(EtcdSettings.of(settings, Map.of()))) {
            assertTrue(client.txn(Txn.when().then(Txn.Op.get("/k"))).succeeded);
        } finally {
            server.shutdownNow();
        }
        assertEquals(List.of("Bearer first"), shown.authorization);
        settings.put("endpoints", "http://127.0.0.1:1");
        HoodieException e =
                assertThrows(HoodieException.class, () -> new GrpcEtcdClient(EtcdSettings.of(settings, Map.of())));
        TestTable.assertCode(ErrorCode.OPTION, e);
        settings.put("endpoints", "https://127.0.0.1:1");
        settings.put("token", file("absent"));
        assertThrows(HoodieException.class, () -> new GrpcEtcdClient(EtcdSettings.of(settings, Map.of())));
    }

    private Server server(String name, int port) throws IOException {
        Shown shown = new Shown();
        return NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", port))
                .useTransportSecurity(new File(file(name + ".crt")), new File(file(name + ".key")))
                .addService(shown)
                .build()
                .start();
    }

    private static boolean answers(GrpcEtcdClient client) {
        try {
            return client.txn(Txn.when().then(Txn.Op.get("/k"))).succeeded;
        } catch (EtcdException e) {
            return false;
        }
    }

    /** grpc connects again after a pause that grows up to two minutes; a second is enough here. */
    private static boolean answersSoon(GrpcEtcdClient client) throws InterruptedException {
        for (long end = System.nanoTime() + 30_000_000_000L; System.nanoTime() < end; Thread.sleep(200)) {
            if (answers(client)) {
                return true;
            }
        }
        return false;
    }

    @Test
    void anAuthorityThatIsReplacedIsTrustedByClientsThatRun() throws Exception {
        String extensions = "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n";
        authority("ca");
        authority("next");
        authority("foreign");
        issue("server", "ca", extensions);
        issue("successor", "next", extensions);
        issue("stranger", "foreign", extensions);
        Path trusted = folder.resolve("trusted.crt");
        Files.copy(folder.resolve("ca.crt"), trusted);
        int port = EtcdServer.freePort(); // nobody may take it between two servers
        Server server = server("server", port);
        Map<String, String> settings =
                Map.of("ca", trusted.toString(), "endpoints", "https://127.0.0.1:" + port, "rpcTimeoutSeconds", "2");
        try (GrpcEtcdClient client = new GrpcEtcdClient(EtcdSettings.of(settings, Map.of()))) {
            assertTrue(answers(client));
            String both = Files.readString(folder.resolve("ca.crt")) + Files.readString(folder.resolve("next.crt"));
            Files.writeString(trusted, both);
            server = replaced(server, "successor", port);
            assertTrue(answersSoon(client), "of the authority that was added");
            Files.writeString(trusted, "");
            server = replaced(server, "server", port);
            assertTrue(answersSoon(client), "the file is being replaced: those that were read last");
            Files.copy(folder.resolve("next.crt"), trusted, StandardCopyOption.REPLACE_EXISTING);
            for (String refused : List.of("server", "stranger")) {
                server = replaced(server, refused, port);
                for (int i = 0; i < 5; i++) {
                    assertFalse(answers(client), refused);
                    Thread.sleep(500);
                }
            }
            server = replaced(server, "successor", port);
            assertTrue(answersSoon(client));
        } finally {
            server.shutdownNow();
        }
    }

    private Server replaced(Server server, String name, int port) throws Exception {
        assertTrue(server.shutdownNow().awaitTermination(10, TimeUnit.SECONDS));
        return server(name, port);
    }

    @Test
    void aRenewedTokenIsReadAndALostOneOutlived() throws Exception {
        Path token = folder.resolve("token");
        Files.writeString(token, "first");
        Shown shown = new Shown();
        Server server = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0))
                .addService(ServerInterceptors.intercept(shown, shown))
                .build()
                .start();
        ManagedChannel channel = NettyChannelBuilder.forAddress("127.0.0.1", server.getPort())
                .usePlaintext()
                .intercept(new BearerToken(token, 0))
                .build();
        try {
            KVGrpc.KVBlockingStub kv = KVGrpc.newBlockingStub(channel);
            Files.writeString(token, "second");
            kv.txn(TxnRequest.getDefaultInstance());
            Files.delete(token);
            kv.txn(TxnRequest.getDefaultInstance());
            Files.writeString(token, "");
            kv.txn(TxnRequest.getDefaultInstance());
            Files.writeString(token, "third");
            kv.txn(TxnRequest.getDefaultInstance());
        } finally {
            channel.shutdownNow();
            server.shutdownNow();
        }
        assertEquals(List.of("Bearer second", "Bearer second", "Bearer second", "Bearer third"), shown.authorization);
    }
}
