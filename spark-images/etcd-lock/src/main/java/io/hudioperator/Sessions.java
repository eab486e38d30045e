package io.hudioperator;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The sessions of this JVM, and how a base path becomes a table id. */
public final class Sessions {
  private static final Pattern SCHEME = Pattern.compile("^([A-Za-z][A-Za-z0-9+.-]*):/*(.*)$", Pattern.DOTALL);
  private static final Map<String, Session> BY_TABLE = new ConcurrentHashMap<>();
  private static volatile Session driver;

  static {
    MetadataSchema.pin(); // an agent has no plugin
  }

  private Sessions() {}

  /** Registers at a table and starts the heartbeat; settings are listed in API.md. The open session when there is one. */
  public static Session open(Map<String, String> settings) {
    return open(settings, System.getenv(), Sessions::haltJvm);
  }

  static synchronized Session open(Map<String, String> given, Map<String, String> env, Liveness.Halt halt) {
    Map<String, String> settings = new HashMap<>(given);
    settings.computeIfAbsent("tableId", k -> env.get("HUDI_OPERATOR_TABLE_ID"));
    settings.computeIfAbsent("basePath", k -> env.get("HUDI_OPERATOR_TABLE_PATH"));
    settings.values().removeIf(java.util.Objects::isNull);
    Session open = settings.get("tableId") == null ? null : BY_TABLE.get(settings.get("tableId"));
    if (open != null) {
      return open;
    }
    EtcdSettings etcdSettings = EtcdSettings.of(settings, env);
    Session session = open(settings, env, new GrpcEtcdClient(etcdSettings), etcdSettings, halt);
    register(session);
    return session;
  }

  /** Without an entry in this JVM's table of sessions. */
  static Session open(
      Map<String, String> settings, Map<String, String> env, EtcdClient etcd, EtcdSettings etcdSettings, Liveness.Halt halt) {
    boolean opened = false;
    try {
      Session session = new Session(settings, env, etcd, etcdSettings, halt);
      session.start();
      opened = true;
      return session;
    } finally {
      if (!opened) {
        etcd.close();
      }
    }
  }

  /** The session of a driver: opened once, from the environment, by the Spark plugin. */
  static synchronized Session openDriver(Map<String, String> env, Map<String, String> settings, Liveness.Halt halt) {
    if (driver == null) {
      driver = open(settings, env, halt);
    }
    return driver;
  }

  static void haltJvm(int exitCode, String why) {
    System.err.println("halting: " + why);
    Runtime.getRuntime().halt(exitCode);
  }

  /** The driver's session; null in other processes. */
  public static Session current() {
    return driver;
  }

  public static Session byTable(String tableId) {
    return BY_TABLE.get(tableId);
  }

  /** Session of the table with this base path, in any spelling; null = none is open in this JVM. */
  public static Session byPath(String basePath) {
    String wanted = comparable(basePath);
    for (Session session : BY_TABLE.values()) {
      if (comparable(session.basePath()).equals(wanted)) {
        return session;
      }
    }
    return null;
  }

  static List<Session> all() {
    return new ArrayList<>(BY_TABLE.values());
  }

  /** etcd without a table, for an agent that looks for its tables. */
  public static EtcdFacade etcd(Map<String, String> settings) {
    EtcdSettings etcdSettings = EtcdSettings.of(settings, System.getenv());
    String prefix = new TableKeys(etcdSettings.prefix, "").prefix();
    return new EtcdFacade(new GrpcEtcdClient(etcdSettings), prefix, prefix + "/", prefix + "/control/");
  }

  static void register(Session session) {
    BY_TABLE.put(session.tableId(), session);
  }

  static void closed(Session session) {
    BY_TABLE.remove(session.tableId(), session);
  }

  /** One spelling of a base path: scheme lower case, s3 and s3n as s3a, no doubled and no trailing slash. */
  public static String canonical(String path) {
    Matcher m = SCHEME.matcher(path.strip());
    if (!m.matches()) {
      String plain = path.strip().replaceAll("/{2,}", "/");
      return plain.endsWith("/") ? plain.substring(0, plain.length() - 1) : plain;
    }
    String scheme = m.group(1).toLowerCase(Locale.ROOT);
    if (scheme.equals("s3") || scheme.equals("s3n")) {
      scheme = "s3a";
    }
    return scheme + "://" + m.group(2).replaceAll("/{2,}", "/").replaceAll("^/|/$", "");
  }

  /** Hudi names a local table with and without {@code file:}, depending on the caller. */
  static String comparable(String path) {
    String canonical = canonical(path);
    return canonical.startsWith("/") ? canonical("file:" + canonical) : canonical;
  }

  /** First 16 hexadecimal digits of SHA-256 of the canonical path. */
  public static String tableId(String path) {
    try {
      byte[] hash = MessageDigest.getInstance("SHA-256").digest(canonical(path).getBytes(StandardCharsets.UTF_8));
      StringBuilder hex = new StringBuilder();
      for (int i = 0; i < 8; i++) {
        hex.append(String.format("%02x", hash[i]));
      }
      return hex.toString();
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
