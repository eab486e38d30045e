package io.hudioperator.session;

import io.hudioperator.contract.Environment;
import io.hudioperator.contract.TablePath;
import io.hudioperator.etcd.EtcdClient;
import io.hudioperator.etcd.EtcdSettings;
import io.hudioperator.etcd.GrpcEtcdClient;
import io.hudioperator.protocol.Liveness;
import io.hudioperator.workarounds.MetadataSchema;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The sessions of this JVM: one for each table. */
public final class OpenSessions {
    private static final Map<String, Session> BY_TABLE = new ConcurrentHashMap<>();
    /** Base path to the instants that closed sessions of this JVM had given up. */
    private static final Map<String, Set<String>> GIVEN_UP = new ConcurrentHashMap<>();

    /** One monitor for each table: one that etcd refuses for long keeps no other waiting. */
    private static final Map<String, Object> OPENING = new ConcurrentHashMap<>();

    private static volatile Session driver;

    static {
        MetadataSchema.pin(); // an agent does not load the Spark plugin
    }

    private OpenSessions() {}

    /**
     * Registers at a table and starts the heartbeat, or returns the open session of that table.
     * Table id and base path may come from the environment.
     */
    public static Session open(Map<String, String> given, Map<String, String> env, Liveness.Halt halt) {
        Map<String, String> settings = new HashMap<>(given);
        settings.computeIfAbsent("tableId", k -> env.get(Environment.TABLE_ID));
        settings.computeIfAbsent("basePath", k -> env.get(Environment.TABLE_PATH));
        settings.values().removeIf(java.util.Objects::isNull);
        String tableId = settings.getOrDefault("tableId", "");
        synchronized (OPENING.computeIfAbsent(tableId, id -> new Object())) {
            Session open = BY_TABLE.get(tableId);
            if (open != null) {
                return open;
            }
            EtcdSettings etcdSettings = EtcdSettings.of(settings, env);
            Session session = open(settings, env, GrpcEtcdClient.shared(etcdSettings), etcdSettings, halt);
            register(session);
            return session;
        }
    }

    /** Opens a session without adding it to this JVM's sessions. */
    public static Session open(
            Map<String, String> settings,
            Map<String, String> env,
            EtcdClient etcd,
            EtcdSettings etcdSettings,
            Liveness.Halt halt) {
        boolean opened = false;
        try {
            Session session = new Session(settings, env, etcd, etcdSettings, halt, OpenSessions::closed);
            session.start();
            opened = true;
            return session;
        } finally {
            if (!opened) {
                etcd.close();
            }
        }
    }

    /** The session of a driver; the Spark plugin opens it once, from the environment. */
    public static synchronized Session openDriver(
            Map<String, String> env, Map<String, String> settings, Liveness.Halt halt) {
        if (driver == null) {
            driver = open(settings, env, halt);
        }
        return driver;
    }

    public static void haltJvm(int exitCode, String why) {
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

    /**
     * The session of the table with this base path, in any spelling; null when this JVM has none
     * open.
     */
    public static Session byPath(String basePath) {
        String wanted = TablePath.comparable(basePath);
        for (Session session : BY_TABLE.values()) {
            if (TablePath.comparable(session.basePath()).equals(wanted)) {
                return session;
            }
        }
        return null;
    }

    /**
     * A statement begins to read what it writes, in this thread.
     *
     * @param target path of the table that it writes; null when none of Hudi's, or not known
     */
    public static void statementBegins(String target) {
        Session own = target == null ? null : byPath(target);
        all().forEach(session -> session.reads().statementBegins(session == own));
    }

    /** Whether this process runs code of users. An agent does not. */
    public static boolean hasWriter() {
        return BY_TABLE.values().stream().anyMatch(Session::isWriter);
    }

    public static List<Session> all() {
        return new ArrayList<>(BY_TABLE.values());
    }

    public static void register(Session session) {
        BY_TABLE.put(session.tableId(), session);
    }

    /**
     * Whether a session of this JVM has given up the instant of the table with this base path. A
     * closed session counts, too: Hudi's timers live until the JVM ends. An instant that an open
     * session has claimed since then does not count.
     */
    public static boolean hasGivenUp(String basePath, String instant) {
        Session open = byPath(basePath);
        if (open != null && open.instants().pending().contains(instant)) {
            return false;
        }
        return (open != null && open.instants().hasGivenUp(instant))
                || GIVEN_UP.getOrDefault(TablePath.comparable(basePath), Set.of())
                        .contains(instant);
    }

    public static void closed(Session session) {
        GIVEN_UP.computeIfAbsent(TablePath.comparable(session.basePath()), path -> ConcurrentHashMap.newKeySet())
                .addAll(session.instants().givenUp());
        BY_TABLE.remove(session.tableId(), session);
    }
}
