package io.hudioperator;

import java.io.File;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A real etcd, one process for each member, on free ports of the loopback interface. */
final class EtcdServer implements AutoCloseable {
  private static EtcdServer shared;

  private final List<Process> members = new ArrayList<>();
  private final List<List<String>> commands = new ArrayList<>();
  private final List<String> endpoints = new ArrayList<>();
  private final Path folder;

  private EtcdServer(int count, List<String> tls) throws IOException {
    folder = Files.createTempDirectory("etcd-test");
    String scheme = tls.isEmpty() ? "http" : "https";
    List<Integer> clients = new ArrayList<>();
    List<Integer> peers = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      clients.add(freePort());
      peers.add(freePort());
    }
    StringBuilder cluster = new StringBuilder();
    for (int i = 0; i < count; i++) {
      cluster.append(i == 0 ? "" : ",").append("m").append(i).append("=http://127.0.0.1:").append(peers.get(i));
    }
    for (int i = 0; i < count; i++) {
      String client = scheme + "://127.0.0.1:" + clients.get(i);
      String peer = "http://127.0.0.1:" + peers.get(i);
      List<String> command = new ArrayList<>(List.of(binary(), "--name", "m" + i, "--data-dir", folder.resolve("m" + i).toString()));
      command.addAll(List.of("--listen-client-urls", client, "--advertise-client-urls", client));
      command.addAll(List.of("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster.toString()));
      command.addAll(List.of("--log-level", "error", "--unsafe-no-fsync", "--heartbeat-interval", "100", "--election-timeout", "1000"));
      command.addAll(tls);
      commands.add(command);
      endpoints.add(client);
      members.add(start(command));
    }
    Runtime.getRuntime().addShutdownHook(new Thread(this::close));
  }

  private Process start(List<String> command) throws IOException {
    return new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(folder.resolve("log").toFile()).start();
  }

  /** The one member that most tests share; each test has a table of its own. */
  static synchronized EtcdServer shared() {
    if (shared == null) {
      shared = started(1);
    }
    return shared;
  }

  static EtcdServer started(int count) {
    try {
      EtcdServer server = new EtcdServer(count, List.of());
      server.awaitReady(Map.of());
      return server;
    } catch (IOException e) {
      throw new IllegalStateException("cannot start etcd", e);
    }
  }

  /** With client certificates required, signed by {@code ca}. */
  static EtcdServer startedWithTls(String ca, String cert, String key, Map<String, String> client) throws IOException {
    EtcdServer server =
        new EtcdServer(1, List.of("--cert-file", cert, "--key-file", key, "--trusted-ca-file", ca, "--client-cert-auth"));
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
    throw new AssertionError("these tests need a real etcd: set HUDI_OPERATOR_ETCD or put etcd on PATH; looked at " + candidates);
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }

  String endpoints() {
    return String.join(",", endpoints);
  }

  int port() {
    return Integer.parseInt(endpoints.get(0).substring(endpoints.get(0).lastIndexOf(':') + 1));
  }

  GrpcEtcdClient client() {
    return new GrpcEtcdClient(EtcdSettings.of(Map.of("endpoints", endpoints(), "rpcTimeoutSeconds", "2"), Map.of()));
  }

  int size() {
    return members.size();
  }

  String endpoint(int member) {
    return endpoints.get(member);
  }

  void kill(int member) {
    members.get(member).destroyForcibly();
  }

  private void awaitReady(Map<String, String> client) {
    Map<String, String> settings = new java.util.HashMap<>(client);
    settings.put("endpoints", endpoints());
    settings.put("rpcTimeoutSeconds", "1");
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    try (GrpcEtcdClient probe = new GrpcEtcdClient(EtcdSettings.of(settings, Map.of()))) {
      while (true) {
        try {
          probe.txn(Txn.when().then(Txn.Op.get("/probe")));
          return;
        } catch (EtcdException e) {
          if (System.nanoTime() - end > 0) {
            throw new AssertionError("etcd did not start, its log is in " + folder, e);
          }
          Pause.millis(50);
        }
      }
    }
  }

  @Override
  public void close() {
    members.forEach(Process::destroyForcibly);
  }
}
