package io.hudioperator.commit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import io.hudioperator.contract.Environment;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InsertOptions;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.Words.Duplicates;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.OwnDeletes;
import io.hudioperator.session.Session;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.hudi.common.config.HoodieMetadataConfig;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.table.HoodieTableConfig;
import org.apache.hudi.common.table.HoodieTableMetaClient;

/**
 * Compares the options of a write with the properties of its table. hudi_options.tsv lists every
 * option of the Hudi release. A {@code free} option decides nothing about the table. A {@code
 * fixed} option must have the value that the operator rendered, or that the table's properties
 * have, or, when neither sets it, Hudi's default. An option that the list does not contain is
 * refused.
 *
 * <p>Hudi passes all options of a write to the lock provider of each lock cycle, so the first cycle
 * refuses the write before anything is written.
 */
public final class WriteOptions {
    private static final String DATA = "/io/hudioperator/contract/hudi_options.tsv";
    private static final String OURS = "hoodie.write.lock.etcd.";
    private static final Pattern OF_HUDI = Pattern.compile("_?hoodie\\..*");
    private static final Pattern ANY_CASE = Pattern.compile("true|false|[A-Z][A-Z0-9_]*");
    private static final int VALUE_LIMIT = 80;
    private static final String ANY = "*";
    private static final String INDEX = "hoodie.index.type";
    private static final String ROW_WRITER = "hoodie.datasource.write.row.writer.enable";
    private static final String RECORD_KEY = "hoodie.datasource.write.recordkey.field";
    private static final String SCHEMA = "hoodie.avro.schema";
    private static final String OPERATION = "hoodie.datasource.write.operation";
    private static final String COMBINES = "hoodie.combine.before.insert";
    /** The runtime's own writes have it. They look their keys up before. */
    private static final String OF_RUNTIME = OURS + "progress_writer";

    private static final String PAYLOAD = "hoodie.datasource.write.payload.class";
    private static final Set<String> OF_PAYLOADS =
            Set.of(PAYLOAD, "hoodie.compaction.payload.class", "_hoodie.merger.payload.class");
    private static final Map<String, String> PAYLOADS = Map.of(
            "EVENT_TIME_ORDERING", "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
            "CUSTOM", "org.apache.hudi.common.model.DefaultHoodieRecordPayload", // has no effect in this mode
            "COMMIT_TIME_ORDERING", "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload");
    private static final Map<String, Rule> RULES = load();

    private final Map<String, Set<String>> rendered;
    /** Whether a program writes no key twice (F478). */
    private final boolean keysOnce;

    /** The rule for one option. */
    private static final class Rule {
        final String name;
        final boolean free;
        /** Hudi's default, used when nothing sets the option. */
        final Set<String> own = new HashSet<>();
        /** Values that Hudi always sets by itself. */
        final Set<String> always = new HashSet<>();
        /** Values that Hudi's MERGE INTO sets; {@code *}: any. */
        final Set<String> merging = new HashSet<>();
        /** Values that Hudi sets for a bucket index. */
        final Set<String> buckets = new HashSet<>();
        /** Properties of the table that set the same thing. */
        final Set<String> properties = new HashSet<>();

        Rule(String name, boolean free, String values) {
            this.name = name;
            this.free = free;
            properties.add(name);
            for (String value : values.isEmpty() ? new String[0] : values.split("\\|")) {
                Map<Character, Set<String>> marked = Map.of('+', always, '~', merging, '#', buckets, '@', properties);
                Set<String> kind = marked.get(value.charAt(0));
                (kind == null ? own : kind).add(kind == null ? value : value.substring(1));
            }
        }
    }

    /**
     * The options of this driver's pod, read once from the files that the operator rendered, and
     * its table's properties at the last read.
     */
    private static final class OfThisDriver {
        static final WriteOptions FOUND = of(System.getenv());
        static volatile Properties table = new Properties();
    }

    /** @param rendered names and values of options that the operator rendered for this writer */
    WriteOptions(Map<String, Set<String>> rendered) {
        this(rendered, false);
    }

    /**
     * @param keysOnce whether this driver runs code of a user for a table with record keys, and its
     *     HudiWriter does not allow duplicates
     */
    WriteOptions(Map<String, Set<String>> rendered, boolean keysOnce) {
        this.keysOnce = keysOnce;
        this.rendered = new HashMap<>();
        rendered.forEach((name, values) -> this.rendered
                .computeIfAbsent(canonical(name), k -> new HashSet<>())
                .addAll(values));
    }

    /**
     * Reads hudi-defaults.conf, and the HudiWriter's own options from job.json. A file that cannot
     * be read is an error.
     */
    static WriteOptions of(Map<String, String> env) {
        Map<String, Set<String>> rendered = new HashMap<>();
        try {
            for (String line : Files.readAllLines(
                    Path.of(env.getOrDefault("HUDI_CONF_DIR", "/etc/hudi/conf"), "hudi-defaults.conf"))) {
                int end = line.indexOf('=');
                if (end > 0 && !line.startsWith("#")) {
                    rendered.computeIfAbsent(line.substring(0, end).strip(), k -> new HashSet<>())
                            .add(line.substring(end + 1).strip());
                }
            }
            String job = env.getOrDefault(Environment.JOB, "");
            JsonNode told = job.isEmpty() ? MissingNode.getInstance() : Json.parse(Files.readString(Path.of(job)));
            told.path("hudiOptions")
                    .fields()
                    .forEachRemaining(f -> rendered.computeIfAbsent(f.getKey(), k -> new HashSet<>())
                            .add(f.getValue().asText()));
            return new WriteOptions(rendered, hasKeysOnce(told));
        } catch (IOException e) {
            throw ErrorCode.OPTION.exception(
                    "cannot read the options that the operator rendered for this writer: " + e.getMessage(), e);
        }
    }

    private static boolean hasKeysOnce(JsonNode job) {
        boolean ofUser = job.hasNonNull("application") || job.path("source").hasNonNull("python");
        return ofUser
                && !Duplicates.ALLOW.is(Json.text(job, "duplicates"))
                && !job.path("table").path("recordKeyFields").isEmpty();
    }

    private static Map<String, Rule> load() {
        Map<String, Rule> rules = new HashMap<>();
        try (InputStream in = WriteOptions.class.getResourceAsStream(DATA);
                BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith("#") || line.isBlank()) {
                    continue;
                }
                String[] parts = line.split("\t", -1);
                Rule same = parts[1].equals("alias") ? rules.get(parts[2]) : null;
                rules.put(parts[0], same != null ? same : new Rule(parts[0], parts[1].equals("free"), parts[2]));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return rules;
    }

    private static String canonical(String name) {
        Rule rule = RULES.get(name);
        return rule == null ? name : rule.name;
    }

    /** All names in the list, including alternative spellings of an option. */
    static Set<String> names() {
        return Collections.unmodifiableSet(RULES.keySet());
    }

    /**
     * Refuses a writer's own options that would change what the table is. An agent gets its options
     * from the operator only.
     *
     * @param table reads the table's own properties
     */
    public static void require(Session session, Properties props, Supplier<HoodieTableConfig> table) {
        if (session != OpenSessions.current() || !session.isWriter()) {
            return;
        }
        List<String> problems = OfThisDriver.FOUND.problems(props, OfThisDriver.table);
        if (!problems.isEmpty()) {
            OfThisDriver.table = table.get().getProps();
            problems = OfThisDriver.FOUND.problems(props, OfThisDriver.table);
        }
        if (!problems.isEmpty()) {
            throw ErrorCode.OPTION.exception(String.join("; ", problems));
        }
    }

    /**
     * Refuses a commit that does not update an existing metadata table. Readers, and the index of
     * later writers, use the metadata table, so they would not see the rows.
     */
    public static void requireMetadataTable(HoodieTableMetaClient metaClient, TypedProperties props) {
        HoodieMetadataConfig config =
                HoodieMetadataConfig.newBuilder().fromProperties(props).build();
        if (!config.isEnabled() && metaClient.getTableConfig().isMetadataTableAvailable()) {
            throw ErrorCode.OPTION.exception(HoodieMetadataConfig.ENABLE.key()
                    + " = 'false': it must be true; the table has a metadata table, which every write must update");
        }
    }

    /**
     * Returns one sentence for each wrong option, with its name, value and rule; empty when all
     * options are allowed. {@code table}: the table's own properties.
     */
    List<String> problems(Properties props, Properties table) {
        Map<String, String> problems = new TreeMap<>();
        boolean merges = RULES.get(PAYLOAD).merging.contains(props.getProperty(PAYLOAD, ""));
        boolean hasBuckets = rendered.getOrDefault(INDEX, Set.of()).contains("BUCKET");
        for (Map.Entry<Object, Object> option : props.entrySet()) {
            String name = String.valueOf(option.getKey());
            String value = String.valueOf(option.getValue()).strip();
            if (RULES.containsKey(name) || OF_HUDI.matcher(name).matches() && !name.startsWith(OURS)) {
                Rule rule = RULES.getOrDefault(name, new Rule(name, false, ""));
                Set<String> needed = rendered.getOrDefault(rule.name, rule.own);
                boolean unset = needed.isEmpty() && value.isEmpty();
                Set<String> allowed = new HashSet<>(needed);
                allowed.addAll(rule.always);
                allowed.addAll(merges ? rule.merging : Set.of());
                allowed.addAll(hasBuckets ? rule.buckets : Set.of());
                allowed.addAll(inTable(rule, table));
                boolean any = rule.free || merges && rule.merging.contains(ANY) || OwnDeletes.has(props, name);
                if (!any && !unset && allowed.stream().noneMatch(v -> same(v, value))) {
                    problems.put(name, sentence(name, value, needed));
                }
            }
        }
        if (hasBuckets
                && "bulk_insert"
                        .equalsIgnoreCase(props.getProperty(OPERATION, "").strip())) { // F75
            problems.put(
                    OPERATION,
                    OPERATION
                            + " = 'bulk_insert': for a table with a bucket index it must be insert or upsert; Hudi"
                            + " would create a second file group for a bucket");
        }
        // F92
        if ("bulk_insert".equalsIgnoreCase(props.getProperty(OPERATION, "").strip())
                && !"false".equalsIgnoreCase(props.getProperty(ROW_WRITER, ""))
                && isTimeInKey(props, table)) {
            problems.put(
                    ROW_WRITER,
                    ROW_WRITER + " = '" + props.getProperty(ROW_WRITER, "")
                            + "': for a table with a timestamp in its key it must be false; Hudi would generate"
                            + " different keys");
        }
        if (keysOnce && props.getProperty(OF_RUNTIME, "").isEmpty()) {
            requireKeysOnce(props, problems);
        }
        return new ArrayList<>(problems.values());
    }

    /** Hudi's inserts look no key up, and keep by default both rows of a key in one batch. */
    private static void requireKeysOnce(Properties props, Map<String, String> problems) {
        String operation = props.getProperty(OPERATION, "").strip();
        if ("insert".equalsIgnoreCase(operation) || "bulk_insert".equalsIgnoreCase(operation)) {
            problems.put(
                    OPERATION,
                    OPERATION + " = '" + operation + "': a key that the table has already would exist twice: use"
                            + " upsert, or set duplicates: Allow in the HudiWriter (an application, or operation"
                            + " Insert)");
        }
        boolean overwrites =
                "insert_overwrite".equalsIgnoreCase(operation) || "insert_overwrite_table".equalsIgnoreCase(operation);
        if ((overwrites || isInsertAfterAll(props)) && !"true".equalsIgnoreCase(props.getProperty(COMBINES, "false"))) {
            problems.put(
                    COMBINES,
                    COMBINES + " = '" + props.getProperty(COMBINES, "false") + "': a key that the rows have twice"
                            + " would exist twice: it must be true, or set duplicates: Allow in the HudiWriter");
        }
    }

    /** With these, Hudi carries an upsert out as an insert; its name still says upsert (F496). */
    private static boolean isInsertAfterAll(Properties props) {
        String drops = props.getProperty(InsertOptions.DROPS, "false").strip();
        String policy = props.getProperty(InsertOptions.POLICY, "none").strip();
        return "true".equalsIgnoreCase(drops) || !"none".equalsIgnoreCase(policy);
    }

    /** Determined from the JSON schema of the write; without one the answer is not known. */
    private static boolean isTimeInKey(Properties props, Properties table) {
        String keys = props.getProperty(RECORD_KEY, table.getProperty(HoodieTableConfig.RECORDKEY_FIELDS.key(), ""));
        String schema = props.getProperty(SCHEMA, "");
        return !schema.isEmpty()
                && Arrays.stream(keys.split(","))
                        .anyMatch(key -> isTime(Json.parse(schema), key.strip().split("\\.")));
    }

    private static boolean isTime(JsonNode schema, String... path) {
        JsonNode found = schema;
        for (String name : path) {
            JsonNode fields = found.findPath("fields");
            found = MissingNode.getInstance();
            for (JsonNode field : fields) {
                found = name.equals(field.path("name").asText()) ? field.path("type") : found;
            }
        }
        return found.findValuesAsText("logicalType").stream().anyMatch(type -> type.contains("timestamp"));
    }

    /**
     * The values that the table's properties set for an option. Hudi itself passes to writes the
     * payload class that corresponds to the table's merge mode.
     */
    private static Set<String> inTable(Rule rule, Properties table) {
        Set<String> found = rule.properties.stream()
                .map(table::getProperty)
                .filter(Objects::nonNull)
                .map(String::strip)
                .collect(Collectors.toSet());
        if (OF_PAYLOADS.contains(rule.name)) {
            found.add(PAYLOADS.getOrDefault(table.getProperty(HoodieTableConfig.RECORD_MERGE_MODE.key(), ""), ""));
        }
        return found;
    }

    private static boolean same(String known, String value) {
        return known.equals(value) || ANY_CASE.matcher(known).matches() && known.equalsIgnoreCase(value);
    }

    private static String sentence(String name, String value, Set<String> needed) {
        String shown = value.length() <= VALUE_LIMIT ? value : value.substring(0, VALUE_LIMIT) + "…"; // F493
        String rule = RULES.containsKey(name)
                ? "it decides what becomes of the table: it must "
                : "the operator does not know this option: it must ";
        return name + " = '" + shown + "': " + rule
                + (needed.isEmpty() ? "not be set" : "be " + String.join(" or ", new TreeSet<>(needed)));
    }
}
