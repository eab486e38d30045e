package io.hudioperator.support;

import com.fasterxml.jackson.databind.JsonNode;
import io.grpc.ManagedChannel;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.NegotiationType;
import io.grpc.netty.NettyChannelBuilder;
import io.hudioperator.contract.Json;
import io.hudioperator.etcd.EtcdException;
import io.hudioperator.etcd.EtcdSettings;
import io.hudioperator.etcd.GrpcEtcdClient;
import io.hudioperator.etcd.Pause;
import io.hudioperator.etcd.Txn;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/**
 * A real etcd, one process for each member, on free ports of the loopback interface. Members can be
 * killed, restarted, frozen, and, when they are connected through proxies, cut off.
 *
 * <p>The {@link #shared() shared} one is set up as the chart does it: mutual TLS, and users with
 * the roles of docs/design/contracts.md. Tests act there as the operator, and sessions with the
 * identity of the gateway, the only one with which pods reach etcd. The others have neither TLS nor
 * users.
 */
public final class EtcdServer implements AutoCloseable {
    private static final AtomicInteger NEXT_PORT =
            new AtomicInteger(ThreadLocalRandom.current().nextInt(1000));
    private static EtcdServer shared;

    private final List<Process> members = new ArrayList<>();
    private final List<List<String>> commands = new ArrayList<>();
    private final List<String> endpoints = new ArrayList<>();
    private final List<String> ids = new ArrayList<>();
    private final List<Integer> clientPorts = new ArrayList<>();
    private final List<DropProxy> clientLinks = new ArrayList<>();
    private final List<DropProxy> peerLinks = new ArrayList<>();
    private final Path folder;
    private final String scheme;
    /** Where the identities of the chart's users are; null where etcd asks for none. */
    private final Path certificates;

    private EtcdServer(int count, boolean links, Path certificates, List<String> more) throws IOException {
        folder = Files.createTempDirectory("etcd-test");
        this.certificates = certificates;
        scheme = more.contains("--client-cert-auth") ? "https" : "http";
        List<Integer> peerPorts = new ArrayList<>();
        List<String> peers = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            clientPorts.add(freePort());
            peerPorts.add(freePort());
            if (links) {
                clientLinks.add(new DropProxy(clientPorts.get(i), scheme));
                peerLinks.add(new DropProxy(peerPorts.get(i), "http"));
            }
            peers.add(links ? peerLinks.get(i).endpoint() : "http://127.0.0.1:" + peerPorts.get(i));
        }
        StringBuilder cluster = new StringBuilder();
        for (int i = 0; i < count; i++) {
            cluster.append(i == 0 ? "" : ",").append("m").append(i).append("=").append(peers.get(i));
        }
        for (int i = 0; i < count; i++) {
            String client = scheme + "://127.0.0.1:" + clientPorts.get(i);
            List<String> command = new ArrayList<>(List.of(
                    binary(),
                    "--name",
                    "m" + i,
                    "--data-dir",
                    folder.resolve("m" + i).toString()));
            command.addAll(List.of("--listen-client-urls", client, "--advertise-client-urls", client));
            command.addAll(List.of(
                    "--listen-peer-urls",
                    "http://127.0.0.1:" + peerPorts.get(i),
                    "--initial-advertise-peer-urls",
                    peers.get(i)));
            command.addAll(List.of("--initial-cluster", cluster.toString()));
            command.addAll(List.of(
                    "--log-level",
                    "error",
                    "--unsafe-no-fsync",
                    "--heartbeat-interval",
                    "100",
                    "--election-timeout",
                    "1000"));
            command.addAll(more);
            commands.add(command);
            endpoints.add(links ? clientLinks.get(i).endpoint() : client);
            members.add(start(command));
        }
        Runtime.getRuntime().addShutdownHook(new Thread(this::close));
    }

    private Process start(List<String> command) throws IOException {
        ProcessBuilder.Redirect log =
                ProcessBuilder.Redirect.appendTo(folder.resolve("log").toFile());
        return new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(log)
                .start();
    }

    /**
     * The single member that most tests share; each test has its own table. It has the users and
     * roles that the operator's own set-up ({@code hudi_operator.etcd_auth}) creates.
     */
    public static synchronized EtcdServer shared() {
        if (shared == null) {
            try {
                shared = startedAsInTheChart();
            } catch (IOException e) {
                throw new IllegalStateException("cannot start etcd", e);
            }
        }
        return shared;
    }

    private static EtcdServer startedAsInTheChart() throws IOException {
        Path repository = repository();
        Path certificates = Files.createTempDirectory("etcd-certificates");
        run(repository, Map.of(), repository.resolve("hack/certificates/pki").toString(), certificates.toString());
        EtcdServer server = new EtcdServer(1, false, certificates, secured(certificates, "ca.crt", "server"));
        Map<String, String> root = server.identity("root");
        server.awaitReady(root);
        String python =
                run(repository, Map.of(), repository.resolve("hack/setup/venv").toString()) + "/bin/python";
        Map<String, String> environment = Map.of(
                "PYTHONPATH",
                repository.resolve("operator").toString(),
                "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION",
                "python",
                "HUDI_OPERATOR_ETCD_ENDPOINTS",
                server.endpoints(),
                "HUDI_OPERATOR_ETCD_CA",
                root.get("ca"),
                "HUDI_OPERATOR_ETCD_CERT",
                root.get("cert"),
                "HUDI_OPERATOR_ETCD_KEY",
                root.get("key"));
        run(repository, environment, python, "-m", "hudi_operator.etcd_auth");
        return server;
    }

    /** The folder of this repository, in which the tests run, or above it. */
    private static Path repository() {
        for (Path folder = Path.of("").toAbsolutePath(); folder != null; folder = folder.getParent()) {
            if (Files.isExecutable(folder.resolve("hack/certificates/pki"))) {
                return folder;
            }
        }
        throw new AssertionError("no hack/certificates/pki above " + Path.of("").toAbsolutePath());
    }

    /** The last line that it prints. */
    private static String run(Path folder, Map<String, String> environment, String... command) throws IOException {
        Path log = Files.createTempFile("etcd-set-up", ".log");
        ProcessBuilder builder = new ProcessBuilder(command)
                .directory(folder.toFile())
                .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()));
        builder.environment().putAll(environment);
        Process process = builder.start();
        String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
        if (process.onExit().join().exitValue() != 0) {
            throw new IllegalStateException(String.join(" ", command) + " failed: " + printed + Files.readString(log));
        }
        return printed.substring(printed.lastIndexOf('\n') + 1);
    }

    private static List<String> secured(Path certificates, String authority, String name) {
        return List.of(
                "--cert-file",
                certificates.resolve(name + ".crt").toString(),
                "--key-file",
                certificates.resolve(name + ".key").toString(),
                "--trusted-ca-file",
                certificates.resolve(authority).toString(),
                "--client-cert-auth");
    }

    private Map<String, String> identity(String name) {
        return certificates == null
                ? Map.of()
                : Map.of(
                        "ca",
                        certificates.resolve("ca.crt").toString(),
                        "cert",
                        certificates.resolve(name + ".crt").toString(),
                        "key",
                        certificates.resolve(name + ".key").toString());
    }

    /** Settings with which the sessions of pods get to it, as the gateway does for them. */
    public Map<String, String> settings() {
        Map<String, String> settings = new HashMap<>(identity("gateway"));
        settings.put("endpoints", endpoints());
        settings.put("rpcTimeoutSeconds", "2");
        return settings;
    }

    public static EtcdServer started(int count, String... more) {
        return started(count, false, more);
    }

    /** Each member can be cut off, from the others and from its clients. */
    public static EtcdServer startedWithLinks(int count) {
        return started(count, true);
    }

    private static EtcdServer started(int count, boolean links, String... more) {
        try {
            EtcdServer server = new EtcdServer(count, links, null, List.of(more));
            server.awaitReady(Map.of());
            for (int i = 0; i < count; i++) {
                server.ids.add(hex(server.call(i, "maintenance/status", "{}")
                        .path("header")
                        .path("member_id")
                        .asText()));
            }
            return server;
        } catch (IOException e) {
            throw new IllegalStateException("cannot start etcd", e);
        }
    }

    /** Requires client certificates that are signed by {@code ca}. */
    public static EtcdServer startedWithTls(Path certificates, String ca, String name, Map<String, String> client)
            throws IOException {
        EtcdServer server = new EtcdServer(1, false, null, secured(certificates, ca, name));
        server.awaitReady(client);
        return server;
    }

    private static String binary() {
        String named = System.getenv("HUDI_OPERATOR_ETCD");
        List<String> candidates = new ArrayList<>();
        if (named != null && !named.isEmpty()) {
            candidates.add(named);
        }
        candidates.add(System.getProperty("user.home") + "/.cache/hudi-operator/bin/etcd");
        for (String dir : System.getenv("PATH").split(File.pathSeparator)) {
            candidates.add(dir + "/etcd");
        }
        for (String candidate : candidates) {
            if (Files.isExecutable(Path.of(candidate))) {
                return candidate;
            }
        }
        throw new AssertionError(
                "these tests need a real etcd: set HUDI_OPERATOR_ETCD or put etcd on PATH; looked at " + candidates);
    }

    /**
     * A port on which nobody listens, and that no earlier call in this process returned (a server
     * may not listen yet); not of those that outgoing connections take (from 32768), or that tests
     * in Python draw (up to 28999).
     */
    public static int freePort() throws IOException {
        while (true) {
            int port = 29_000 + NEXT_PORT.getAndIncrement() % 1000;
            try (ServerSocket socket = new ServerSocket(port)) {
                return socket.getLocalPort();
            } catch (BindException taken) {
                // another one
            }
        }
    }

    public String endpoints() {
        return String.join(",", endpoints);
    }

    int port() {
        return clientPorts.get(0);
    }

    /** A proxy before the first member. */
    public DropProxy proxy() throws IOException {
        return new DropProxy(port(), scheme);
    }

    /** To the first member, as the gateway. */
    ManagedChannel channel() throws IOException {
        NettyChannelBuilder builder = NettyChannelBuilder.forAddress("127.0.0.1", port());
        if (certificates == null) {
            return builder.negotiationType(NegotiationType.PLAINTEXT).build();
        }
        Map<String, String> files = identity("gateway");
        SslContextBuilder ssl = SslContextBuilder.forClient()
                .trustManager(new File(files.get("ca")))
                .keyManager(new File(files.get("cert")), new File(files.get("key")));
        return builder.sslContext(
                        GrpcSslContexts.configure(ssl, SslProvider.JDK).build())
                .build();
    }

    /** The operator's client, where etcd knows users. */
    public GrpcEtcdClient client() {
        Map<String, String> settings = settings();
        settings.putAll(identity("operator"));
        return new GrpcEtcdClient(EtcdSettings.of(settings, Map.of()));
    }

    public int size() {
        return members.size();
    }

    String endpoint(int member) {
        return endpoints.get(member);
    }

    public void kill(int member) {
        members.get(member).destroyForcibly();
        members.get(member).onExit().join();
    }

    /** Restarts a member that was killed, with its previous data. */
    public void restart(int member) {
        try {
            members.set(member, start(commands.get(member)));
        } catch (IOException e) {
            throw new IllegalStateException("cannot start etcd", e);
        }
    }

    public void freeze(int member) {
        signal(member, "STOP");
    }

    /** Resumes all members and reconnects them. */
    public void repair() {
        peerLinks.forEach(link -> link.stall(source -> false));
        clientLinks.forEach(link -> link.stall(source -> false));
        for (int i = 0; i < members.size(); i++) {
            if (members.get(i).isAlive()) {
                signal(i, "CONT");
            } else {
                restart(i);
            }
        }
        awaitReady(Map.of());
    }

    private void signal(int member, String name) {
        try {
            new ProcessBuilder(
                            "kill",
                            "-" + name,
                            String.valueOf(members.get(member).pid()))
                    .start()
                    .onExit()
                    .join();
        } catch (IOException e) {
            throw new IllegalStateException("cannot send a signal", e);
        }
    }

    /** Nothing passes between a member and the others; its clients still reach it. */
    public void cutOffFromPeers(int member) {
        String id = ids.get(member);
        for (int i = 0; i < peerLinks.size(); i++) {
            boolean itself = i == member;
            peerLinks.get(i).stall(source -> itself || id.equals(source));
        }
    }

    public void cutOffFromClients(int member) {
        clientLinks.get(member).stall(source -> true);
    }

    /**
     * The member that the asked member considers the leader; -1 when it knows none or does not
     * answer.
     */
    public int leader(int asked) {
        try {
            return ids.indexOf(
                    hex(call(asked, "maintenance/status", "{}").path("leader").asText()));
        } catch (IllegalStateException e) {
            return -1;
        }
    }

    private static String hex(String decimal) {
        return Long.toHexString(Long.parseUnsignedLong(decimal.isEmpty() ? "0" : decimal));
    }

    /** One request to etcd's JSON gateway, bypassing the proxies. */
    public JsonNode call(int member, String method, String body) {
        URI uri = URI.create("http://127.0.0.1:" + clientPorts.get(member) + "/v3/" + method);
        HttpRequest request = HttpRequest.newBuilder(uri)
                .timeout(Duration.ofSeconds(5))
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
        try {
            return Json.parse(HttpClient.newHttpClient()
                    .send(request, HttpResponse.BodyHandlers.ofString())
                    .body());
        } catch (IOException e) {
            throw new IllegalStateException("no answer to " + method, e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /**
     * Number of messages that a member has received from clients so far: requests, and messages on
     * open streams (watches, keep-alives).
     */
    public long messages(int member) {
        HttpRequest request = HttpRequest.newBuilder(
                        URI.create("http://127.0.0.1:" + clientPorts.get(member) + "/metrics"))
                .build();
        try {
            return HttpClient.newHttpClient()
                    .send(request, HttpResponse.BodyHandlers.ofLines())
                    .body()
                    .filter(line -> line.startsWith("grpc_server_msg_received_total{"))
                    .mapToLong(line -> Math.round(Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1))))
                    .sum();
        } catch (IOException e) {
            throw new IllegalStateException("no metrics", e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** A copy of the data of a stopped member: a backup. */
    public Path backup(int member) {
        Path copy = folder.resolve("backup-of-m" + member);
        copy(folder.resolve("m" + member), copy);
        return copy;
    }

    /** Replaces the data of a stopped member with a backup. */
    public void restore(int member, Path backup) {
        Path data = folder.resolve("m" + member);
        try (Stream<Path> files = Files.walk(data)) {
            files.sorted(Comparator.reverseOrder())
                    .forEach(file -> file.toFile().delete());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        copy(backup, data);
    }

    private static void copy(Path from, Path to) {
        try (Stream<Path> files = Files.walk(from)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                Files.copy(file, to.resolve(from.relativize(file).toString()));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private String log() {
        try {
            return Files.readString(folder.resolve("log"));
        } catch (IOException e) {
            return "no log in " + folder;
        }
    }

    private void awaitReady(Map<String, String> client) {
        Map<String, String> settings = new HashMap<>(client);
        settings.put("endpoints", endpoints());
        settings.put("rpcTimeoutSeconds", "1");
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        try (GrpcEtcdClient probe = new GrpcEtcdClient(EtcdSettings.of(settings, Map.of()))) {
            while (true) {
                try {
                    probe.txn(Txn.when().then(Txn.Op.get("/probe")));
                    return;
                } catch (EtcdException e) {
                    if (System.nanoTime() - end > 0 || !members.stream().allMatch(Process::isAlive)) {
                        throw new AssertionError("etcd did not start: " + log(), e);
                    }
                    Pause.millis(50);
                }
            }
        }
    }

    @Override
    public void close() {
        members.forEach(Process::destroyForcibly);
        for (DropProxy link : clientLinks) {
            close(link);
        }
        for (DropProxy link : peerLinks) {
            close(link);
        }
    }

    private static void close(DropProxy link) {
        try {
            link.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
