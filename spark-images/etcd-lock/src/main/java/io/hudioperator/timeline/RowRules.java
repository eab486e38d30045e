package io.hudioperator.timeline;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TimelineRefusedException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.schema.HoodieSchemaField;
import org.apache.hudi.common.schema.HoodieSchemaType;
import org.apache.hudi.common.table.HoodieTableConfig;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.StoragePath;

/**
 * Rules for the rows of one table. They are read from the table's properties in the driver before
 * user code runs, and sent to its executors. The runtime checks the rows of sources by the same
 * rules before Hudi gets them (values.py); these are for programs, which write their rows
 * themselves.
 */
final class RowRules {
    private static final String TYPE = "rows.type";
    private static final String KEYS = "rows.keys";
    private static final String PARTITIONS = "rows.partitions";
    private static final String HIVE_STYLE = "rows.hiveStyle";
    private static final String ORDERING = "rows.ordering";
    private static final String IGNORES_NULLS = "rows.ignoresNulls";

    /** Hudi's folder for rows without a value; readers take null from it. */
    private static final String NO_VALUE = "__HIVE_DEFAULT_PARTITION__";
    /** Hudi's words for null and for an empty text in a key of several columns. */
    private static final Set<String> KEY_WORDS = Set.of("__null__", "__empty__");

    private static final Map<Pattern, String> UNSAFE = new LinkedHashMap<>();

    static {
        UNSAFE.put(Pattern.compile("[\\x00-\\x1f\\x7f]"), "a partition's value has no control characters");
        UNSAFE.put(Pattern.compile("(^|/)\\."), "no folder of a partition begins with a dot");
        UNSAFE.put(Pattern.compile("^/|//|/$"), "a partition's value does not begin or end with /, and has no //");
        UNSAFE.put(Pattern.compile("[:=\\\\]"), "a partition's value has no colon, no equals sign and no backslash");
        UNSAFE.put(
                Pattern.compile("%[0-9A-Fa-f]{2}"),
                "a partition's value has no % before two hexadecimal digits: Spark would read them as one"
                        + " character");
    }

    private static final Set<HoodieSchemaType> OF_PARTITIONS = EnumSet.of(
            HoodieSchemaType.STRING,
            HoodieSchemaType.INT,
            HoodieSchemaType.LONG,
            HoodieSchemaType.BOOLEAN,
            HoodieSchemaType.DATE);
    private static final Set<HoodieSchemaType> PLAIN = EnumSet.of(
            HoodieSchemaType.STRING,
            HoodieSchemaType.INT,
            HoodieSchemaType.LONG,
            HoodieSchemaType.BOOLEAN,
            HoodieSchemaType.DATE,
            HoodieSchemaType.TIMESTAMP,
            HoodieSchemaType.DECIMAL,
            HoodieSchemaType.FLOAT,
            HoodieSchemaType.DOUBLE);
    private static final Set<HoodieSchemaType> NOT_UPDATED =
            EnumSet.of(HoodieSchemaType.DECIMAL, HoodieSchemaType.DATE);

    private final boolean mergesOnRead;
    private final List<String> keys;
    private final List<String> partitions;
    private final boolean hiveStyle;
    private final List<String> ordering;
    private final boolean ignoresNulls;

    private RowRules(Map<String, String> told) {
        mergesOnRead = HoodieTableType.MERGE_ON_READ.name().equals(told.get(TYPE));
        keys = split(told.get(KEYS));
        partitions = split(told.get(PARTITIONS));
        hiveStyle = Boolean.parseBoolean(told.get(HIVE_STYLE));
        ordering = split(told.get(ORDERING));
        ignoresNulls = Boolean.parseBoolean(told.get(IGNORES_NULLS));
    }

    /** As text, for the executors. Throws HoodieException when the table cannot be read. */
    static Map<String, String> read(StorageConfiguration<?> conf, String basePath) {
        HoodieTableConfig table = HoodieTableMetaClient.builder()
                .setConf(conf.newInstance())
                .setBasePath(basePath)
                .build()
                .getTableConfig();
        return Map.of(
                TYPE, table.getTableType().name(),
                KEYS, join(table.getRecordKeyFields()),
                PARTITIONS, join(table.getPartitionFields()),
                HIVE_STYLE, String.valueOf(table.getHiveStylePartitioningEnable()),
                ORDERING, String.join(",", table.getOrderingFields()),
                IGNORES_NULLS, String.valueOf(table.getPartialUpdateMode().isPresent()));
    }

    static RowRules of(Map<String, String> told) {
        return new RowRules(told);
    }

    private static String join(Option<String[]> fields) {
        return String.join(",", fields.isPresent() ? fields.get() : new String[0]);
    }

    private static List<String> split(String joined) {
        return joined == null || joined.isEmpty() ? List.of() : List.of(joined.split(","));
    }

    /**
     * The columns that must have a value in each row. Hudi's readers cannot compare null with the
     * value of another version of the record.
     */
    List<String> neverNull() {
        return ignoresNulls ? List.of() : ordering;
    }

    List<String> keys() {
        return keys;
    }

    /**
     * Columns of key and partition whose values two records could have in common although they
     * differ (F377): those of a key of several columns, a number with two zeros, and the partition
     * of rows without one.
     *
     * @param file of the rows
     */
    List<String> confused(HoodieSchema schema, StoragePath file) {
        List<String> found = new ArrayList<>();
        for (String key : keys) {
            HoodieSchemaType type = typeOf(schema, key);
            boolean isFraction = type == HoodieSchemaType.FLOAT || type == HoodieSchemaType.DOUBLE;
            if (isFraction || keys.size() > 1 && type == HoodieSchemaType.STRING) {
                found.add(key);
            }
        }
        if (file.toString().contains(NO_VALUE)) {
            partitions.stream()
                    .filter(column -> typeOf(schema, column) == HoodieSchemaType.STRING)
                    .forEach(found::add);
        }
        return found;
    }

    /** Null when there is no such column. */
    private static HoodieSchemaType typeOf(HoodieSchema schema, String column) {
        Option<Pair<String, HoodieSchemaField>> found = schema.getNestedField(column);
        return found.isPresent()
                ? found.get().getRight().schema().getNonNullType().getType()
                : null;
    }

    /** Why no row may have this value in one of the {@link #confused} columns; empty if one may. */
    String problem(String column, Object value) {
        if (value == null) {
            return "";
        }
        String text = value.toString();
        if (partitions.contains(column) && text.isEmpty()) {
            return "a partition's value is not empty (null has a partition of its own)";
        }
        if (partitions.contains(column) && text.equals(NO_VALUE)) {
            return "this is the name of the partition for null";
        }
        if (!keys.contains(column)) {
            return "";
        }
        if (value instanceof Number) {
            return text.equals("-0.0") ? "0.0 and -0.0 are one number, and would be two keys; write it as 0.0" : "";
        }
        if (keys.size() > 1 && KEY_WORDS.contains(text)) {
            return "this is how a key of several columns says null or empty";
        }
        return keys.size() > 1 && keys.stream().anyMatch(name -> text.contains("," + name + ":"))
                ? "it reads like the next column of the key"
                : "";
    }

    /**
     * A partition's value is a literal part of a path, and readers take it from there.
     *
     * @param partition as Hudi names it: its path below the table
     */
    void requirePartition(String partition, Object file) throws TimelineRefusedException {
        String[] folders = partition.split("/", -1);
        String value = partition;
        if (hiveStyle) {
            value = Arrays.stream(folders).map(this::withoutField).collect(Collectors.joining("/"));
        }
        for (Map.Entry<Pattern, String> rule : UNSAFE.entrySet()) {
            if (rule.getKey().matcher(value).find()) {
                throw ErrorCode.BAD_DATA.refusal("the partition of a row is '" + shown(partition) + "': "
                        + rule.getValue() + ": " + shown(String.valueOf(file)));
            }
        }
        if (folders.length != partitions.size() && (hiveStyle || partitions.size() > 1)) {
            throw ErrorCode.BAD_DATA.refusal("the partition of a row is '" + shown(partition) + "': it has "
                    + folders.length + " folders for " + partitions.size() + " partition columns; a partition's"
                    + " value has no / when there are several partition columns or hiveStylePartitioning is true: "
                    + shown(String.valueOf(file)));
        }
    }

    private String withoutField(String folder) {
        return partitions.stream()
                .filter(field -> folder.startsWith(field + "="))
                .findFirst()
                .map(field -> folder.substring(field.length() + 1))
                .orElse(folder);
    }

    /**
     * Requires types that have one text and one order, in each representation of a row. A file
     * need not have all columns of the table.
     */
    void requireTypes(HoodieSchema schema, Object file) throws TimelineRefusedException {
        requireTypes(
                schema,
                partitions,
                OF_PARTITIONS,
                file,
                "a partition column holds text, whole numbers, booleans"
                        + " or dates; derive one (of a timestamp: its date)");
        requireTypes(
                schema,
                keys,
                PLAIN,
                file,
                "a record key holds text, numbers, booleans, dates or timestamps;" + " derive one (of binary: hex)");
        requireTypes(
                schema,
                ordering,
                PLAIN,
                file,
                "an ordering column holds text, numbers, booleans, dates or"
                        + " timestamps; derive one (of binary: hex)");
        if (!mergesOnRead) {
            Set<HoodieSchemaType> updated = EnumSet.copyOf(PLAIN);
            updated.removeAll(NOT_UPDATED);
            requireTypes(
                    schema,
                    ordering,
                    updated,
                    file,
                    "Hudi cannot compare decimals and dates when it updates a CopyOnWrite table; cast it:"
                            + " a decimal to a bigint of its smallest unit, a date to a timestamp");
        }
    }

    private static void requireTypes(
            HoodieSchema schema, List<String> columns, Set<HoodieSchemaType> allowed, Object file, String rule)
            throws TimelineRefusedException {
        for (String column : columns) {
            HoodieSchemaType type = typeOf(schema, column);
            if (type != null && !allowed.contains(type)) {
                throw ErrorCode.BAD_DATA.refusal(
                        String.format("column %s: it is %s; %s: %s", column, type, rule, file));
            }
        }
    }

    static String shown(String text) {
        return text.replaceAll("[\\x00-\\x1f\\x7f]", "?");
    }
}
