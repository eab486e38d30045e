package io.hudioperator.contract;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.etcd.EtcdSettings;
import io.hudioperator.etcd.GrpcEtcdClient;
import io.hudioperator.protocol.Durations;
import io.hudioperator.protocol.InsertRule;
import io.hudioperator.support.TestTable;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.Test;

/** The names that other parts also compute. */
class ProtocolDataTest {

    /** Kinds of keys that the operator, or the agent's Python, alone reads and writes. */
    private static final Set<String> KEYS_OF_OTHERS = Set.of("request", "seen", "report", "done");

    private static final Set<String> RANGES = Set.of("prefix", "tablePrefix", "controlPrefix");

    private static final Map<String, Word[]> WORDS = Map.of(
            "GateState", Words.GateState.values(),
            "FencingMode", Words.FencingMode.values(),
            "Concurrency", Words.Concurrency.values(),
            "InsertConflicts", InsertRule.values(),
            "Role", Words.Role.values(),
            "InstantState", Words.InstantState.values(),
            "Duplicates", Words.Duplicates.values(),
            "Phase", Words.Phase.values());

    /** Of settle records, which this module does not write. */
    private static final Set<String> WORDS_OF_OTHERS = Set.of("Outcome");

    private static Set<String> named(String section) {
        Set<String> names = new TreeSet<>();
        ProtocolData.data().get(section).fieldNames().forEachRemaining(names::add);
        return names;
    }

    @Test
    void everyErrorCodeIsInTheDataFileAndTheOtherWayRound() {
        Set<String> raised =
                Arrays.stream(ErrorCode.values()).map(ErrorCode::code).collect(Collectors.toCollection(TreeSet::new));
        assertEquals(named("errors"), raised);
    }

    /** The operator compares its own with the same file. */
    @Test
    void everyStatePhaseRoleAndModeIsInTheDataFileAndTheOtherWayRound() {
        Set<String> known = new TreeSet<>(WORDS_OF_OTHERS);
        known.addAll(WORDS.keySet());
        assertEquals(named("words"), known);
        WORDS.forEach((name, values) -> {
            List<String> told = new ArrayList<>();
            ProtocolData.data().get("words").get(name).forEach(word -> told.add(word.asText()));
            assertEquals(told, Arrays.stream(values).map(Word::word).collect(Collectors.toList()), name);
        });
    }

    /** Python reads a few that this module does not need. */
    @Test
    void everyEnvironmentVariableIsInTheDataFile() throws IllegalAccessException {
        for (Field field : Environment.class.getFields()) {
            assertEquals(
                    ProtocolData.data().get("environment").path(field.getName()).asText(),
                    field.get(null),
                    field.getName());
        }
    }

    @Test
    void everyKindOfKeyIsInTheDataFileAndTheOtherWayRound() {
        Set<String> known = new TreeSet<>(KEYS_OF_OTHERS);
        Arrays.stream(TableKeys.class.getDeclaredMethods())
                .filter(m -> Modifier.isPublic(m.getModifiers()) && !Modifier.isStatic(m.getModifiers()))
                .map(Method::getName)
                .filter(name -> !RANGES.contains(name))
                .forEach(known::add);
        assertEquals(named("keys"), known);
    }

    @Test
    void keys() {
        TableKeys keys = new TableKeys("/hudi/", "0123");
        assertEquals("/hudi/control/0123/gate", keys.gate());
        assertEquals("/hudi/control/0123/admit/ns.pod", keys.admit("ns.pod"));
        assertEquals("/hudi/control/0123/fence/i", keys.fence("i"));
        assertEquals("/hudi/tables/0123/writer/i", keys.writer("i"));
        assertEquals("/hudi/tables/0123/alive/i", keys.alive("i"));
        assertEquals("/hudi/tables/0123/lock", keys.lock());
        assertEquals("/hudi/tables/0123/queue/i-n", keys.queue("i-n"));
        assertEquals("/hudi/tables/0123/instant/t", keys.instant("t"));
        assertEquals("/hudi/tables/0123/clock", keys.clock());
        assertEquals("/hudi/tables/0123/settle/i", keys.settle("i"));
    }

    @Test
    void canonicalPaths() {
        assertEquals("s3a://Lake/a/B", TablePath.canonical("S3://Lake//a/B/"));
        assertEquals("s3a://lake/a", TablePath.canonical("s3n://lake/a"));
        assertEquals("hdfs://ns/a", TablePath.canonical("hdfs://ns/a//"));
        assertEquals("file://tmp/x", TablePath.canonical("file:///tmp/x"));
        assertEquals("file://tmp/x", TablePath.canonical("file:/tmp/x"));
        assertEquals("/tmp/x", TablePath.canonical("/tmp//x/"));
        assertEquals(TablePath.comparable("/tmp/x"), TablePath.comparable("file:///tmp/x"));
        assertEquals(TablePath.tableId("s3://lake/a/"), TablePath.tableId("s3a://lake/a"));
        // printf s3a://lake/flights | sha256sum
        assertEquals("f36cb7a236448a3c222773f785e13669", TablePath.tableId("s3a://lake/flights"));
    }

    /** F427; as test_naming.py for the operator. */
    @Test
    void pathsOfOnePlace() {
        assertEquals("hdfs://nn/Lake/t", TablePath.comparable("hdfs://NN:8020/Lake//t/"));
        assertEquals("hdfs://nn/Lake/t", TablePath.comparable("hdfs://nn./Lake/t"));
        assertEquals("hdfs://nn:9000/t", TablePath.comparable("hdfs://nn:9000/t"));
        assertEquals("abfs://c@h/t", TablePath.comparable("abfss://c@H:443/t"));
        assertEquals("s3a://lake", TablePath.comparable("s3://Lake/"));
        assertEquals("file://Tmp/x", TablePath.comparable("/Tmp/x"));
        assertEquals("file://Tmp/x", TablePath.comparable("file:///Tmp/x"));
    }

    @Test
    void instantTimes() {
        assertEquals("20250102030405006", InstantTime.of(1735787045006L));
        assertEquals(1735787045006L, InstantTime.millis("20250102030405006"));
        assertTrue(InstantTime.isAfter("20250102030405", "20250102030405006"));
        assertTrue(InstantTime.isAfter("20250102030405007", "20250102030405006"));
    }

    @Test
    void durationsComeFromTheSettingThenTheGateThenTheDataFile() {
        Durations d = Durations.of(
                Map.of("drainSeconds", "3"), Json.parse("{\"lock\":{\"drainSeconds\":4,\"silenceSeconds\":5}}"));
        assertEquals(3, d.drain);
        assertEquals(5, d.silence);
        assertEquals(ProtocolData.duration("leaseSeconds"), d.lease);
    }

    @Test
    void endpointsMustBeUrls() {
        EtcdSettings bare = EtcdSettings.of(Map.of("endpoints", "127.0.0.1:2379"), Map.of());
        TestTable.assertCode(ErrorCode.OPTION, assertThrows(HoodieException.class, () -> new GrpcEtcdClient(bare)));
        TestTable.assertCode(
                ErrorCode.OPTION, assertThrows(HoodieException.class, () -> EtcdSettings.of(Map.of(), Map.of())));
    }
}
