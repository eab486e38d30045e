package io.hudioperator.commit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.Json;
import io.hudioperator.session.OpenSessions;
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
 * The options of a write, compared with what the table is. hudi_options.tsv names every option of the Hudi release: {@code free} ones decide
 * nothing about the table; a {@code fixed} one must have the value that the operator has rendered, that the table's properties have, or, where
 * neither says anything, Hudi's own. An option that the list does not name is refused.
 *
 * <p>Hudi hands all options of a write to the lock provider of each lock cycle, so the first one refuses before anything is written.
 */
public final class WriteOptions {
  private static final String DATA = "/io/hudioperator/contract/hudi_options.tsv";
  private static final String OURS = "hoodie.write.lock.etcd.";
  private static final Pattern OF_HUDI = Pattern.compile("_?hoodie\\..*");
  private static final Pattern ANY_CASE = Pattern.compile("true|false|[A-Z][A-Z0-9_]*");
  private static final int VALUE_LIMIT = 80;
  private static final String INDEX = "hoodie.index.type";
  private static final String ROW_WRITER = "hoodie.datasource.write.row.writer.enable";
  private static final String RECORD_KEY = "hoodie.datasource.write.recordkey.field";
  private static final String SCHEMA = "hoodie.avro.schema";
  private static final String OPERATION = "hoodie.datasource.write.operation";
  private static final String PAYLOAD = "hoodie.datasource.write.payload.class";
  private static final Set<String> OF_PAYLOADS = Set.of(PAYLOAD, "hoodie.compaction.payload.class", "_hoodie.merger.payload.class");
  private static final Map<String, String> PAYLOADS =
      Map.of(
          "EVENT_TIME_ORDERING", "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
          "CUSTOM", "org.apache.hudi.common.model.DefaultHoodieRecordPayload", // of no meaning there
          "COMMIT_TIME_ORDERING", "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload");
  private static final Map<String, Rule> RULES = load();

  private final Map<String, Set<String>> said;

  /** What is known of one option. */
  private static final class Rule {
    final String name;
    final boolean free;
    /** Hudi's own, when nobody says anything. */
    final Set<String> own = new HashSet<>();
    /** What Hudi sets by itself, whoever says what. */
    final Set<String> always = new HashSet<>();
    /** What Hudi's MERGE INTO sets. */
    final Set<String> merging = new HashSet<>();
    /** What Hudi sets for a bucket index. */
    final Set<String> buckets = new HashSet<>();
    /** Properties of the table that say it, too. */
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

  /** The options of this driver's pod, read once from files that the operator has rendered; its table's properties as they were last. */
  private static final class OfThisDriver {
    static final WriteOptions FOUND = of(System.getenv());
    static volatile Properties table = new Properties();
  }

  /** @param said name and values of options that the operator has rendered for this writer */
  WriteOptions(Map<String, Set<String>> said) {
    this.said = new HashMap<>();
    said.forEach((name, values) -> this.said.computeIfAbsent(canonical(name), k -> new HashSet<>()).addAll(values));
  }

  /** From hudi-defaults.conf, and from job.json what the HudiWriter says of its own. What cannot be read is an error. */
  static WriteOptions of(Map<String, String> env) {
    Map<String, Set<String>> said = new HashMap<>();
    try {
      for (String line : Files.readAllLines(Path.of(env.getOrDefault("HUDI_CONF_DIR", "/etc/hudi/conf"), "hudi-defaults.conf"))) {
        int end = line.indexOf('=');
        if (end > 0 && !line.startsWith("#")) {
          said.computeIfAbsent(line.substring(0, end).strip(), k -> new HashSet<>()).add(line.substring(end + 1).strip());
        }
      }
      String job = env.getOrDefault("HUDI_OPERATOR_JOB", "");
      JsonNode options = job.isEmpty() ? null : Json.parse(Files.readString(Path.of(job))).get("hudiOptions");
      if (options != null) {
        options.fields().forEachRemaining(f -> said.computeIfAbsent(f.getKey(), k -> new HashSet<>()).add(f.getValue().asText()));
      }
    } catch (IOException e) {
      throw ErrorCode.OPTION.exception("cannot read what the operator has rendered for this writer: " + e.getMessage(), e);
    }
    return new WriteOptions(said);
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

  /** The names that the list has; other spellings of an option among them. */
  static Set<String> names() {
    return Collections.unmodifiableSet(RULES.keySet());
  }

  /**
   * Refuses options of a writer's own that decide what becomes of the table. An agent has its options from the operator alone.
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
   * A commit that leaves out a metadata table that stands: readers and the index of later writers go by it, so they would not see the rows.
   */
  public static void requireMetadataTable(HoodieTableMetaClient metaClient, TypedProperties props) {
    HoodieMetadataConfig config = HoodieMetadataConfig.newBuilder().fromProperties(props).build();
    if (!config.isEnabled() && metaClient.getTableConfig().isMetadataTableAvailable()) {
      throw ErrorCode.OPTION.exception(HoodieMetadataConfig.ENABLE.key() + " = 'false': the table has a metadata table, and every write must keep it up");
    }
  }

  /** What is wrong with these options, a sentence each with name, value and rule; none: nothing. {@code table}: its own properties. */
  List<String> problems(Properties props, Properties table) {
    Map<String, String> problems = new TreeMap<>();
    boolean merges = RULES.get(PAYLOAD).merging.contains(props.getProperty(PAYLOAD, ""));
    boolean hasBuckets = said.getOrDefault(INDEX, Set.of()).contains("BUCKET");
    for (Map.Entry<Object, Object> option : props.entrySet()) {
      String name = String.valueOf(option.getKey());
      String value = String.valueOf(option.getValue()).strip();
      if (RULES.containsKey(name) || OF_HUDI.matcher(name).matches() && !name.startsWith(OURS)) {
        Rule rule = RULES.getOrDefault(name, new Rule(name, false, ""));
        Set<String> needed = said.getOrDefault(rule.name, rule.own);
        boolean unset = needed.isEmpty() && value.isEmpty();
        Set<String> allowed = new HashSet<>(needed);
        allowed.addAll(rule.always);
        allowed.addAll(merges ? rule.merging : Set.of());
        allowed.addAll(hasBuckets ? rule.buckets : Set.of());
        allowed.addAll(inTable(rule, table));
        if (!rule.free && !unset && allowed.stream().noneMatch(v -> same(v, value))) {
          problems.put(name, sentence(name, value, needed));
        }
      }
    }
    if (hasBuckets && "bulk_insert".equalsIgnoreCase(props.getProperty(OPERATION, "").strip())) { // F75
      problems.put(
          OPERATION, OPERATION + " = 'bulk_insert': of a table with a bucket index it must be insert or upsert; Hudi would make a second file group for a bucket");
    }
    if ("bulk_insert".equalsIgnoreCase(props.getProperty(OPERATION, "").strip()) && !"false".equalsIgnoreCase(props.getProperty(ROW_WRITER, "")) // F92
        && isTimeInKey(props, table)) {
      problems.put(
          ROW_WRITER,
          ROW_WRITER + " = '" + props.getProperty(ROW_WRITER, "") + "': of a table with a timestamp in its key it must be false; Hudi would give records other keys");
    }
    return new ArrayList<>(problems.values());
  }

  /** By the schema of the write, in JSON; without one nothing is known. */
  private static boolean isTimeInKey(Properties props, Properties table) {
    String keys = props.getProperty(RECORD_KEY, table.getProperty(HoodieTableConfig.RECORDKEY_FIELDS.key(), ""));
    String schema = props.getProperty(SCHEMA, "");
    return !schema.isEmpty() && Arrays.stream(keys.split(",")).anyMatch(key -> isTime(Json.parse(schema), key.strip().split("\\.")));
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

  /** What the table's properties say of an option; Hudi itself tells writes the payload class that stands for the table's merge mode. */
  private static Set<String> inTable(Rule rule, Properties table) {
    Set<String> found = rule.properties.stream().map(table::getProperty).filter(Objects::nonNull).map(String::strip).collect(Collectors.toSet());
    if (OF_PAYLOADS.contains(rule.name)) {
      found.add(PAYLOADS.getOrDefault(table.getProperty(HoodieTableConfig.RECORD_MERGE_MODE.key(), ""), ""));
    }
    return found;
  }

  private static boolean same(String known, String value) {
    return known.equals(value) || ANY_CASE.matcher(known).matches() && known.equalsIgnoreCase(value);
  }

  private static String sentence(String name, String value, Set<String> needed) {
    String shown = value.length() <= VALUE_LIMIT ? value : value.substring(0, VALUE_LIMIT);
    String rule = RULES.containsKey(name) ? "it decides what becomes of the table: it must " : "the operator does not know this option: it must ";
    return name + " = '" + shown + "': " + rule + (needed.isEmpty() ? "not be set" : "be " + String.join(" or ", new TreeSet<>(needed)));
  }
}
