package io.hudioperator.commit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.session.OwnDeletes;
import io.hudioperator.support.TestTable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.hudi.common.config.ConfigProperty;
import org.apache.hudi.common.config.HoodieConfig;
import org.apache.hudi.exception.HoodieException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Which options of a write may differ from its table (F32), and that the list of Hudi's options is
 * complete.
 */
class WriteOptionsTest {
    private static final Map<String, String> RENDERED = Map.of(
            "hoodie.metadata.enable", "true",
            "hoodie.index.type", "SIMPLE",
            "hoodie.datasource.write.recordkey.field", "id",
            "hoodie.datasource.write.keygenerator.class", "org.apache.hudi.keygen.SimpleKeyGenerator",
            "hoodie.clean.failed.writes.policy", "LAZY",
            "hoodie.table.services.enabled", "false",
            "hoodie.write.markers.type", "DIRECT");
    private static final Map<String, String> OF_THE_TABLE =
            Map.of("hoodie.record.merge.mode", "EVENT_TIME_ORDERING", "hoodie.table.ordering.fields", "ts");

    // true with Spark
    private static final Set<String> OF_SPARK =
            Set.of("hoodie.metadata.index.column.stats.enable", "hoodie.metadata.streaming.write.enabled");

    @TempDir
    private Path conf;

    private List<String> problems(Map<String, String> write) throws Exception {
        StringBuilder lines = new StringBuilder("# rendered\n");
        RENDERED.forEach((k, v) -> lines.append(k).append('=').append(v).append('\n'));
        Files.writeString(conf.resolve("hudi-defaults.conf"), lines.toString());
        Files.writeString(
                conf.resolve("job.json"),
                "{\"hudiOptions\": {\"hoodie.parquet.outputtimestamptype\": \"TIMESTAMP_MILLIS\"}}");
        Map<String, String> env = Map.of(
                "HUDI_CONF_DIR",
                conf.toString(),
                "HUDI_OPERATOR_JOB",
                conf.resolve("job.json").toString());
        return WriteOptions.of(env).problems(properties(write), properties(OF_THE_TABLE));
    }

    private static Properties properties(Map<String, String> options) {
        Properties properties = new Properties();
        properties.putAll(options);
        return properties;
    }

    private void passes(String name, String value) throws Exception {
        assertEquals(List.of(), problems(Map.of(name, value)));
    }

    private void refused(String name, String value, String rule) throws Exception {
        List<String> found = problems(Map.of(name, value));
        assertEquals(1, found.size(), name);
        assertTrue(found.get(0).startsWith(name + " = '" + value + "': "), found.get(0));
        assertTrue(found.get(0).endsWith(rule), found.get(0));
    }

    @Test
    void onlyTheDeletesOfThisProcessMarkRows() throws Exception {
        Map<String, String> own = new HashMap<>(OwnDeletes.options("v", "deleted"));
        for (String operation : List.of("insert", "bulk_insert", "insert_overwrite")) {
            own.put("hoodie.datasource.write.operation", operation);
            assertEquals(2, problems(own).size(), "an " + operation + " would store the rows");
        }
        own.put("hoodie.datasource.write.operation", "upsert");
        assertEquals(List.of(), problems(own));
        Map<String, String> others = new HashMap<>(own);
        others.replaceAll((name, value) -> name.startsWith("hoodie.write.lock.etcd.") ? "another" : value);
        assertEquals(2, problems(others).size());
    }

    @Test
    void whatTheOperatorHasRenderedStays() throws Exception {
        for (Map.Entry<String, String> option : RENDERED.entrySet()) {
            passes(option.getKey(), option.getValue());
            refused(option.getKey(), "another", "it must be " + option.getValue());
        }
        passes("hoodie.metadata.enable", "TRUE");
        refused("hoodie.metadata.enable", "false", "it must be true");
        refused("hoodie.datasource.write.recordkey.field", "ID", "it must be id");
    }

    @Test
    void otherNamesOfAnOptionAreTheOption() throws Exception {
        refused("hoodie.cleaner.policy.failed.writes", "EAGER", "it must be LAZY");
        passes("hoodie.cleaner.policy.failed.writes", "lazy");
    }

    @Test
    void whatTheTablesPropertiesSayStays() throws Exception {
        passes("hoodie.record.merge.mode", "EVENT_TIME_ORDERING");
        refused("hoodie.record.merge.mode", "COMMIT_TIME_ORDERING", "not be set");
        passes("hoodie.table.ordering.fields", "ts");
        refused("hoodie.table.ordering.fields", "id", "not be set");
    }

    @Test
    void thePayloadClassIsTheOneOfTheMergeMode() throws Exception {
        String payload = "hoodie.datasource.write.payload.class";
        passes(payload, "org.apache.hudi.common.model.DefaultHoodieRecordPayload");
        refused(payload, "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload", "not be set");
        passes("hoodie.write.record.merge.mode", "EVENT_TIME_ORDERING");
        refused("hoodie.write.record.merge.mode", "COMMIT_TIME_ORDERING", "not be set");
    }

    @Test
    void thePayloadClassOfOtherMergeModes() {
        Map<String, String> payloads = Map.of(
                "COMMIT_TIME_ORDERING", "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
                "CUSTOM", "org.apache.hudi.common.model.DefaultHoodieRecordPayload");
        payloads.forEach((mode, payload) -> {
            Properties write = new Properties();
            List.of(
                            "hoodie.datasource.write.payload.class",
                            "hoodie.compaction.payload.class",
                            "_hoodie.merger.payload.class")
                    .forEach(n -> write.setProperty(n, payload));
            assertEquals(
                    List.of(),
                    new WriteOptions(Map.of()).problems(write, properties(Map.of("hoodie.record.merge.mode", mode))),
                    mode);
        });
    }

    @Test
    void whatMergeIntoSetsIsForMergeInto() throws Exception {
        String classes = "hoodie.write.record.merge.custom.implementation.classes";
        String merger = "org.apache.hudi.common.model.HoodieAvroRecordMerger";
        refused(classes, merger, "not be set");
        String expressions = "org.apache.spark.sql.hudi.command.payload.ExpressionPayload";
        assertEquals(
                List.of(), problems(Map.of(classes, merger, "hoodie.datasource.write.payload.class", expressions)));
    }

    /** F297: only MERGE INTO says with which schema Hudi writes, and nobody writes some columns. */
    @Test
    void noWriteSaysWhichColumnsItsFilesHave() throws Exception {
        String schema = "{\"type\":\"record\",\"name\":\"r\",\"fields\":[]}";
        refused("hoodie.write.schema", schema, "not be set");
        refused("hoodie.write.partial.update.schema", schema, "not be set");
        passes("hoodie.write.partial.update.schema", "");
        Map<String, String> merge = new TreeMap<>(Map.of(
                "hoodie.datasource.write.payload.class",
                "org.apache.spark.sql.hudi.command.payload.ExpressionPayload",
                "hoodie.write.schema",
                schema));
        assertEquals(List.of(), problems(merge));
        merge.put("hoodie.write.partial.update.schema", schema);
        assertEquals(1, problems(merge).size());
    }

    @Test
    void theLayoutOfABucketIndexIsForABucketIndex() throws Exception {
        refused("hoodie.storage.layout.type", "BUCKET", "it must be DEFAULT");
        WriteOptions ofBuckets = new WriteOptions(Map.of("hoodie.index.type", Set.of("BUCKET")));
        assertEquals(
                List.of(),
                ofBuckets.problems(properties(Map.of("hoodie.storage.layout.type", "BUCKET")), new Properties()));
    }

    /** An insert looks no key up, and an overwrite keeps both rows of a key (F478). */
    @Test
    void aProgramWritesNoKeyTwice() throws Exception {
        WriteOptions once = new WriteOptions(Map.of(), true);
        String operation = "hoodie.datasource.write.operation";
        for (String inserts : List.of("insert", "bulk_insert", "INSERT")) {
            List<String> told = once.problems(properties(Map.of(operation, inserts)), new Properties());
            assertEquals(1, told.size());
            assertTrue(told.get(0).contains("use upsert, or set duplicates: Allow"), told.get(0));
        }
        for (String overwrites : List.of("insert_overwrite", "insert_overwrite_table")) {
            List<String> told = once.problems(properties(Map.of(operation, overwrites)), new Properties());
            assertEquals(1, told.size());
            assertTrue(told.get(0).contains("it must be true, or set duplicates: Allow"), told.get(0));
            Map<String, String> combined = Map.of(operation, overwrites, "hoodie.combine.before.insert", "true");
            assertEquals(List.of(), once.problems(properties(combined), new Properties()));
        }
        for (String others : List.of("upsert", "delete", "delete_partition")) {
            assertEquals(List.of(), once.problems(properties(Map.of(operation, others)), new Properties()));
        }
        // F496: with these, Hudi makes an insert of an upsert.
        for (Map.Entry<String, String> option : Map.of(
                        "hoodie.datasource.write.insert.drop.duplicates", "true",
                        "hoodie.datasource.insert.dup.policy", "drop")
                .entrySet()) {
            Map<String, String> upsert = Map.of(operation, "upsert", option.getKey(), option.getValue());
            assertEquals(List.of(true), combining(once, upsert, "false"));
            assertEquals(List.of(), combining(once, upsert, "true"));
        }
        Map<String, String> ofRuntime = Map.of(operation, "insert", "hoodie.write.lock.etcd.progress_writer", "w");
        assertEquals(List.of(), once.problems(properties(ofRuntime), new Properties()));
        passes(operation, "insert");
    }

    /** Of the problems about combining rows before an insert, whether they say what to do. */
    private static List<Boolean> combining(WriteOptions options, Map<String, String> write, String combines)
            throws Exception {
        Map<String, String> all = new HashMap<>(write);
        all.put("hoodie.combine.before.insert", combines);
        return options.problems(properties(all), new Properties()).stream()
                .filter(problem -> problem.startsWith("hoodie.combine.before.insert"))
                .map(problem -> problem.contains("it must be true, or set duplicates: Allow"))
                .collect(Collectors.toList());
    }

    /** Which jobs these are. */
    @Test
    void codeOfAUserWritesNoKeyTwiceUnlessItMay(@TempDir Path folder) throws Exception {
        Files.writeString(folder.resolve("hudi-defaults.conf"), "");
        Properties insert = properties(Map.of("hoodie.datasource.write.operation", "insert"));
        String program = "'application': {'mainFile': '/a.py'}";
        String python = "'source': {'python': {'file': '/a.py'}}";
        for (String[] job : new String[][] {
            {"1", program, "'Fail'", "['id']"},
            {"1", program, "null", "['id']"},
            {"1", python, "'Drop'", "['id']"},
            {"0", program, "'Allow'", "['id']"},
            {"0", program, "'Fail'", "[]"},
            {"0", "'application': null, 'source': {'files': {}, 'python': null}", "'Fail'", "['id']"},
        }) {
            String text =
                    "{" + job[1] + ", 'duplicates': " + job[2] + ", 'table': {'recordKeyFields': " + job[3] + "}}";
            Path file = Files.writeString(folder.resolve("job.json"), text.replace('\'', '"'));
            WriteOptions found =
                    WriteOptions.of(Map.of("HUDI_CONF_DIR", folder.toString(), "HUDI_OPERATOR_JOB", file.toString()));
            assertEquals(
                    Integer.parseInt(job[0]),
                    found.problems(insert, new Properties()).size(),
                    text);
        }
    }

    /**
     * Hudi's bulk insert puts rows of an existing bucket into a second file group. Every later
     * writer that looks up the bucket fails (F75).
     */
    @Test
    void nobodyBulkInsertsIntoBuckets() throws Exception {
        WriteOptions ofBuckets = new WriteOptions(Map.of("hoodie.index.type", Set.of("BUCKET")));
        for (String operation : List.of("bulk_insert", "BULK_INSERT")) {
            List<String> told = ofBuckets.problems(
                    properties(Map.of("hoodie.datasource.write.operation", operation)), new Properties());
            assertEquals(1, told.size());
            assertTrue(told.get(0).contains("it must be insert or upsert"), told.get(0));
        }
        assertEquals(
                List.of(),
                ofBuckets.problems(
                        properties(Map.of("hoodie.datasource.write.operation", "insert")), new Properties()));
        passes("hoodie.datasource.write.operation", "bulk_insert");
    }

    /** F92: for a timestamp the row writer generates a different key than every other write. */
    @Test
    void aBulkInsertMakesNoKeysOfItsOwn() {
        String time = "[\"null\",{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}]";
        String schema = "{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"id\",\"type\":\"int\"},"
                + "{\"name\":\"seen\",\"type\":" + time
                + "},{\"name\":\"k\",\"type\":[\"null\",{\"type\":\"record\",\"name\":\"s\","
                + "\"fields\":[{\"name\":\"at\",\"type\":" + time + "}]}]}]}";
        Map<String, String> write =
                new TreeMap<>(Map.of("hoodie.datasource.write.operation", "BULK_INSERT", "hoodie.avro.schema", schema));
        WriteOptions options =
                new WriteOptions(Map.of("hoodie.datasource.write.recordkey.field", Set.of("id", "seen", "id,k.at")));
        for (String keys : List.of("seen", "id,k.at")) {
            write.put("hoodie.datasource.write.recordkey.field", keys);
            write.remove("hoodie.datasource.write.row.writer.enable");
            List<String> told = options.problems(properties(write), new Properties());
            assertEquals(1, told.size());
            assertTrue(
                    told.get(0)
                            .startsWith(
                                    "hoodie.datasource.write.row.writer.enable = '': for a table with a timestamp in"
                                            + " its key"),
                    told.get(0));
            write.put("hoodie.datasource.write.row.writer.enable", "false");
            assertEquals(List.of(), options.problems(properties(write), new Properties()));
        }
        write.put("hoodie.datasource.write.recordkey.field", "id");
        write.put("hoodie.datasource.write.row.writer.enable", "true");
        assertEquals(List.of(), options.problems(properties(write), new Properties()));
        write.remove("hoodie.datasource.write.recordkey.field");
        assertEquals(
                1,
                options.problems(properties(write), properties(Map.of("hoodie.table.recordkey.fields", "seen")))
                        .size());
    }

    @Test
    void whatNobodySaysIsHudisOwn() throws Exception {
        passes("hoodie.clean.commits.retained", "10");
        refused("hoodie.clean.commits.retained", "1", "it must be 10");
        refused("hoodie.write.record.merge.custom.implementation.classes", "my.Merger", "not be set");
        refused("hoodie.populate.meta.fields", "false", "it must be true");
        refused("hoodie.allow.operation.metadata.field", "true", "it must be false");
    }

    @Test
    void whatDecidesNothingIsFree() throws Exception {
        passes("hoodie.upsert.shuffle.parallelism", "7");
        passes("hoodie.parquet.max.file.size", "1");
        passes("hoodie.datasource.write.operation", "delete");
        passes("spark.anything", "else");
        passes("hoodie.write.lock.etcd.progress_base", "0");
    }

    @Test
    void whatAHudiWriterMaySayItsWritesMaySay() throws Exception {
        passes("hoodie.parquet.outputtimestamptype", "TIMESTAMP_MILLIS");
        refused("hoodie.parquet.outputtimestamptype", "INT96", "it must be TIMESTAMP_MILLIS");
    }

    @Test
    void anOptionThatNobodyHasLookedAtIsRefused() throws Exception {
        refused("hoodie.brand.new", "1", "the operator does not know this option: it must not be set");
        assertEquals(
                2,
                problems(Map.of(
                                "hoodie.brand.new",
                                "1",
                                "hoodie.metadata.enable",
                                "false",
                                "hoodie.parquet.block.size",
                                "1"))
                        .size(),
                "each is named");
    }

    @Test
    void withoutWhatTheOperatorHasRenderedNothingIsWritten() {
        HoodieException e = assertThrows(
                HoodieException.class,
                () -> WriteOptions.of(
                        Map.of("HUDI_CONF_DIR", conf.resolve("none").toString())));
        TestTable.assertCode(ErrorCode.OPTION, e);
    }

    @Test
    void everyOptionOfHudisClassesIsOnTheList() throws Exception {
        HudiOptions hudi = HudiOptions.ofTheJar();
        assertTrue(hudi.found.size() > 600, () -> hudi.found.size() + " options found, not read: " + hudi.unreadable);
        assertEquals(List.of(), hudi.without(WriteOptions.names()), "decide for each of these in hudi_options.tsv");
        Set<String> needHive =
                Set.of("org.apache.hudi.hive.HiveSyncConfig", "org.apache.hudi.hive.replication.GlobalHiveSyncConfig");
        assertEquals(needHive, hudi.unreadable, "only the names of these options are known");
        WriteOptions nothing = new WriteOptions(Map.of());
        Map<String, String> defaults = new TreeMap<>();
        hudi.found.forEach((name, property) -> {
            if (property.hasDefaultValue() && !OF_SPARK.contains(name)) {
                defaults.put(name, String.valueOf(property.defaultValue()));
            }
        });
        assertEquals(
                List.of(),
                nothing.problems(properties(defaults), new Properties()),
                "Hudi's defaults when nothing is set");
    }

    /** A class that a later Hudi might add. */
    static final class LaterConfig extends HoodieConfig {
        static final ConfigProperty<String> LATER =
                ConfigProperty.key("hoodie.later.option").defaultValue("1").withAlternatives("hoodie.later.name");
    }

    @Test
    void anOptionThatALaterHudiBringsIsMissed() throws Exception {
        HudiOptions hudi = HudiOptions.ofTheJar();
        hudi.add(LaterConfig.class.getName());
        assertEquals(List.of("hoodie.later.name", "hoodie.later.option"), hudi.without(WriteOptions.names()));
    }
}
