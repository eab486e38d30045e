package io.hudioperator.catalog;

import java.math.BigDecimal;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.schema.HoodieSchemaField;

/** Limits of Hive's types, with which a catalog describes a table. */
final class Held {
    private static final int MOST_DIGITS = 38;
    private static final int SHOWN = 80;
    /** Signs with which Hive writes types, and those that end a line. */
    private static final Pattern NOT_IN_A_NAME = Pattern.compile("[:,<>`\\s\\p{Cntrl}]");

    private static final String NULL = "__HIVE_DEFAULT_PARTITION__";
    private static final Pattern WHOLE = Pattern.compile("[+-]?[0-9]{1,38}");
    private static final Pattern TIMESTAMP = Pattern.compile("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]{8,18}");

    private Held() {}

    /** A column that a catalog cannot describe. */
    static final class NotHeld extends RuntimeException {
        NotHeld(String message) {
            super(message);
        }
    }

    /** Raises NotHeld with column, value and rule. */
    static void check(HoodieSchema table) {
        fields("", table.getFields());
    }

    private static void fields(String above, List<HoodieSchemaField> fields) {
        Set<String> names = new HashSet<>();
        for (HoodieSchemaField field : fields) {
            String name = above + field.name();
            if (NOT_IN_A_NAME.matcher(field.name()).find()) {
                throw refused(name, "its name has white space or one of : , < > `, with which Hive writes types");
            }
            if (!names.add(field.name().toLowerCase(Locale.ROOT))) {
                throw refused(name, "another one differs only by upper and lower case, which Hive does not tell apart");
            }
            type(name, field.schema());
        }
    }

    private static void type(String name, HoodieSchema given) {
        HoodieSchema schema = given.isNullable() ? given.getNonNullType() : given;
        switch (schema.getType()) {
            case RECORD:
                if (schema.getFields().isEmpty()) {
                    throw refused(name, "it is a struct without a field, which Hive does not have");
                }
                fields(name + ".", schema.getFields());
                break;
            case ARRAY:
                type(name + ".element", schema.getElementType());
                break;
            case MAP:
                type(name + ".value", schema.getValueType());
                break;
            case UNION:
            case NULL:
                throw refused(name, "it is of type " + schema.getType() + ", which Hive does not have");
            case DECIMAL:
                int digits = ((HoodieSchema.Decimal) schema).getPrecision();
                if (digits > MOST_DIGITS) {
                    throw refused(name, "it is a decimal of " + digits + " digits, Hive's have " + MOST_DIGITS);
                }
                break;
            default:
                break;
        }
    }

    private static NotHeld refused(String name, String rule) {
        String shown = name.length() > SHOWN ? name.substring(0, SHOWN) + "…" : name;
        return new NotHeld("column '" + shown.replaceAll("\\p{Cntrl}", "?") + "': " + rule);
    }

    /** Whether engines read this value of a partition's path as one of the column's type. */
    static boolean reads(String value, String type) {
        if (NULL.equals(value)) {
            return true;
        }
        try {
            return readsAs(value, type.toLowerCase(Locale.ROOT));
        } catch (NumberFormatException | DateTimeException notOfTheType) {
            return false;
        }
    }

    private static boolean readsAs(String value, String type) {
        if (type.startsWith("decimal")) {
            return new BigDecimal(value).precision() <= MOST_DIGITS;
        }
        switch (type) {
            case "int":
                return WHOLE.matcher(value).matches() && Integer.parseInt(value) == Long.parseLong(value);
            case "bigint":
                return WHOLE.matcher(value).matches()
                        && !Long.toString(Long.parseLong(value)).isEmpty();
            case "boolean":
                return "true".equalsIgnoreCase(value) || "false".equalsIgnoreCase(value);
            case "date":
                return LocalDate.parse(value).getYear() > 0;
            case "timestamp":
                return TIMESTAMP.matcher(value).matches();
            default:
                return true;
        }
    }
}
