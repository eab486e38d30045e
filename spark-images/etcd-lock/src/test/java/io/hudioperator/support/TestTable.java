package io.hudioperator.support;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InstantTime;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.TableKeys;
import io.hudioperator.etcd.EtcdFacade;
import io.hudioperator.etcd.EtcdSettings;
import io.hudioperator.etcd.GrpcEtcdClient;
import io.hudioperator.etcd.KeyValue;
import io.hudioperator.etcd.Pause;
import io.hudioperator.protocol.TableStorage;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import io.hudioperator.testing.GuardedLocalFileSystem;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.junit.jupiter.api.Assertions;

/**
 * A table with its own keys in etcd (the shared etcd unless another one is given), including the
 * keys that the operator would have put, and a folder for its files.
 */
public final class TestTable implements AutoCloseable {
    public static final String AUTHORITY = "authority-of-the-test";

    /** A valid completed file: Avro with one record. */
    public static final byte[] COMPLETED = avro(1);

    public final String id = UUID.randomUUID().toString().replace("-", "").substring(0, 16);
    public final TableKeys keys = new TableKeys("/hudi", id);
    public final GrpcEtcdClient client;
    public final EtcdFacade etcd;
    public final Path folder;
    public final List<Integer> halts = new CopyOnWriteArrayList<>();
    private final EtcdServer server;
    private final List<Session> sessions = new ArrayList<>();
    private final List<FaultyEtcd> clients = new ArrayList<>();
    // kept so that their sessions end when they see the fence
    private static final List<Object> NEVER_COLLECTED = new ArrayList<>();

    public TestTable() {
        this(EtcdServer.shared());
    }

    public TestTable(EtcdServer server) {
        this.server = server;
        client = server.client();
        etcd = new EtcdFacade(client, keys.prefix(), keys.tablePrefix(), keys.controlPrefix());
        try {
            folder = Files.createTempDirectory("table-");
            Files.createDirectories(folder.resolve(".hoodie/timeline/history"));
            Files.createDirectories(folder.resolve(".hoodie/metadata/.hoodie/timeline"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        gate("open", "PodTermination");
    }

    /** An Avro file with that many records. */
    public static byte[] avro(int records) {
        Schema schema = SchemaBuilder.record("metadata")
                .fields()
                .requiredString("operationType")
                .endRecord();
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        try (DataFileWriter<GenericRecord> writer =
                new DataFileWriter<>(new GenericDatumWriter<GenericRecord>(schema)).create(schema, content)) {
            for (int i = 0; i < records; i++) {
                writer.append(new GenericRecordBuilder(schema)
                        .set("operationType", "UPSERT")
                        .build());
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return content.toByteArray();
    }

    /** Creates the file with that content. */
    public static void write(FileSystem fs, org.apache.hadoop.fs.Path path, byte[] content) throws IOException {
        FSDataOutputStream out = fs.create(path, false);
        out.write(content);
        out.close();
    }

    /** Creates a Hudi table through the storage wrapper. */
    public HoodieTableMetaClient create(HoodieTableType type) throws IOException {
        return HoodieTableMetaClient.newTableBuilder()
                .setTableType(type)
                .setTableName("t")
                .initTable(HadoopFSUtils.getStorageConf(conf(true)), basePath());
    }

    public String basePath() {
        return folder.toUri().toString();
    }

    /** Opens the gate with that concurrency mode. */
    public void concurrency(String mode) {
        gateSays("concurrency", mode);
    }

    /** Opens the gate, pinned to that release of Hudi. */
    public void pin(String hudiVersion) {
        gateSays("hudiVersion", hudiVersion);
    }

    public void gateSays(String name, String value) {
        ObjectNode gate = (ObjectNode) Json.parse(etcd.get(keys.gate()).value());
        etcd.put(keys.gate(), gate.put(name, value).toString());
    }

    /** Closes the gate for that restore. */
    public void restoring(String nonce) {
        gate("closed", "PodTermination");
        String value = etcd.get(keys.gate()).value();
        etcd.put(keys.gate(), value.substring(0, value.length() - 1) + ",\"restoring\":\"" + nonce + "\"}");
    }

    public long gate(String state, String mode, String... admitted) {
        StringBuilder list = new StringBuilder();
        for (String attempt : admitted) {
            list.append(list.length() == 0 ? "" : ",")
                    .append('"')
                    .append(attempt)
                    .append('"');
        }
        return etcd.put(
                keys.gate(),
                "{\"state\":\"" + state + "\",\"mode\":\"" + mode + "\",\"admitted\":[" + list
                        + "],\"protocolVersion\":1,\"authority\":\"" + AUTHORITY
                        + "\",\"lock\":{\"leaseSeconds\":5,\"keepAliveSeconds\":1,\"rpcTimeoutSeconds\":2,"
                        + "\"silenceSeconds\":60,\"maxClockSkewSeconds\":2,\"drainSeconds\":1}}");
    }

    public void admit(String attempt) {
        etcd.put(keys.admit(attempt), "{\"attempt\":\"" + attempt + "\"}");
    }

    public void fence(String inc) {
        etcd.put(keys.fence(inc), "{\"inc\":\"" + inc + "\",\"reason\":\"Test\"}");
    }

    public void clock(String value) {
        etcd.put(keys.clock(), "{\"value\":\"" + value + "\"}");
    }

    public String clock() {
        KeyValue kv = etcd.get(keys.clock());
        return kv == null ? null : Json.text(Json.parse(kv.value()), "value");
    }

    public KeyValue lock() {
        return etcd.get(keys.lock());
    }

    public KeyValue instant(String time) {
        return etcd.get(keys.instant(time));
    }

    public String state(String time) {
        KeyValue kv = instant(time);
        return kv == null ? null : Json.text(Json.parse(kv.value()), "state");
    }

    public Map<String, String> settings(String attempt) {
        Map<String, String> settings = server.settings();
        settings.put("tableId", id);
        settings.put("basePath", basePath());
        settings.put("attempt", attempt);
        return settings;
    }

    /**
     * An admitted, open session. The first one becomes this JVM's session for the table, which the
     * storage wrapper asks.
     */
    public Session session(String attempt) {
        return session(attempt, Map.of());
    }

    public Session session(String attempt, Map<String, String> more) {
        admit(attempt);
        Map<String, String> settings = settings(attempt);
        settings.putAll(more);
        EtcdSettings etcdSettings = EtcdSettings.of(settings, Map.of());
        FaultyEtcd faulty = new FaultyEtcd(new GrpcEtcdClient(etcdSettings));
        Session session = OpenSessions.open(settings, Map.of(), faulty, etcdSettings, (code, why) -> halts.add(code));
        if (sessions.isEmpty()) {
            OpenSessions.register(session);
        }
        sessions.add(session);
        clients.add(faulty);
        NEVER_COLLECTED.add(faulty);
        NEVER_COLLECTED.add(client);
        return session;
    }

    public FaultyEtcd faults(Session session) {
        return clients.get(sessions.indexOf(session));
    }

    /** Hadoop's configuration, with or without the storage wrapper. */
    public static Configuration conf(boolean guarded) {
        Configuration conf = new Configuration();
        conf.setBoolean("fs.file.impl.disable.cache", true);
        if (guarded) {
            conf.set("fs.file.impl", GuardedLocalFileSystem.class.getName());
        }
        return conf;
    }

    TableStorage storage() {
        return new TableStorage(basePath(), new Configuration());
    }

    public boolean acquire(Session session) {
        return acquire(session, 5000);
    }

    public boolean acquire(Session session, long millis) {
        return acquire(session, millis, false);
    }

    public boolean acquire(Session session, long millis, boolean again) {
        try {
            return session.acquire(TimeUnit.MILLISECONDS.toNanos(millis), storage(), again);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    public String timeline(String name) {
        return folder.resolve(".hoodie/timeline").resolve(name).toUri().toString();
    }

    public static String time(long offsetMillis) {
        return InstantTime.of(System.currentTimeMillis() + offsetMillis);
    }

    public static void await(Duration limit, String what, BooleanSupplier condition) {
        long end = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - end > 0) {
                Assertions.fail("waited " + limit + " in vain until " + what);
            }
            Pause.millis(10);
        }
    }

    public static void assertCode(ErrorCode code, Throwable error) {
        Assertions.assertTrue(
                String.valueOf(error.getMessage()).startsWith("[" + code.code() + "]"),
                "expected " + code.code() + ", got " + error);
    }

    /** Ends the sessions as the operator would: their heartbeat stops when it sees the fence. */
    @Override
    public void close() {
        for (Session session : sessions) {
            OpenSessions.closed(session);
            fence(session.inc());
        }
    }
}
