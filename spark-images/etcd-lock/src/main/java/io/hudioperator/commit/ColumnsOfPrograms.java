package io.hudioperator.commit;

import io.hudioperator.contract.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.schema.HoodieSchemaCompatibility;
import org.apache.hudi.common.schema.HoodieSchemaField;
import org.apache.hudi.common.schema.HoodieSchemaType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.exception.HoodieWriteConflictException;

/**
 * Whether a commit of a program leaves the table all its columns (F365).
 *
 * <p>Readers take the schema of the commit that began last. Hudi compares the schema of a write
 * with the table's once, before the write begins, that of a {@code MERGE INTO} never, and under the
 * lock only with what completed since the write began. The batch of a HudiWriter has been fitted to
 * the table ({@link CommitChecks#requireSchema}).
 */
public final class ColumnsOfPrograms {
    private ColumnsOfPrograms() {}

    /**
     * Refuses a commit whose schema lacks columns of the table, or has one that readers would not
     * see, because the table's newest commit began later and does not have it.
     *
     * @param mine schema of this commit; null or empty when it is not known
     * @param instant requested time of this commit
     * @param until completion time of the last commit that was there when this one began: later
     *     ones Hudi compares itself; null when it does not
     * @throws HoodieWriteConflictException so that the program is run again, with all columns
     */
    public static void require(
            HoodieTableMetaClient metaClient, TypedProperties props, String mine, String instant, String until) {
        if (props.containsKey(CommitChecks.SCHEMA_BASE) || mine == null || mine.isEmpty()) {
            return;
        }
        for (HoodieInstant other : CommitChecks.newestFirst(metaClient).collect(Collectors.toList())) {
            boolean isLater = other.requestedTime().compareTo(instant) > 0;
            boolean isCompared =
                    isLater || until == null || other.getCompletionTime().compareTo(until) <= 0;
            String theirs = isCompared ? CommitChecks.schema(metaClient, other) : "";
            if (!theirs.isEmpty()) {
                requireAll(other, isLater, isLater ? lost(mine, theirs) : lost(theirs, mine));
                return;
            }
        }
    }

    private static void requireAll(HoodieInstant other, boolean isLater, List<String> lost) {
        if (!lost.isEmpty()) {
            throw new HoodieWriteConflictException(
                    ErrorCode.SCHEMA_MOVED.message("instant " + other.requestedTime() + " (completed "
                            + other.getCompletionTime() + ") has changed the table's schema: "
                            + (isLater ? "it hides from readers what this write has: " : "this write would lose ")
                            + String.join(", ", lost)));
        }
    }

    /** Columns and fields of the first schema that the other one does not have, or not so wide. */
    static List<String> lost(String from, String to) {
        List<String> found = new ArrayList<>();
        lost("", HoodieSchema.parse(from), HoodieSchema.parse(to), found);
        return found;
    }

    private static void lost(String name, HoodieSchema nullableFrom, HoodieSchema nullableTo, List<String> found) {
        HoodieSchema from = nullableFrom.getNonNullType();
        HoodieSchema to = nullableTo.getNonNullType();
        HoodieSchemaType type = from.getType() == to.getType() ? from.getType() : HoodieSchemaType.NULL;
        if (type == HoodieSchemaType.RECORD) {
            for (HoodieSchemaField field : from.getFields()) {
                Option<HoodieSchemaField> same = to.getField(field.name());
                String inner = name.isEmpty() ? field.name() : name + "." + field.name();
                if (same.isPresent()) {
                    lost(inner, field.schema(), same.get().schema(), found);
                } else if (!HoodieRecord.HOODIE_META_COLUMNS_WITH_OPERATION.contains(field.name())) {
                    found.add(inner);
                }
            }
        } else if (type == HoodieSchemaType.ARRAY) {
            lost(name + ".element", from.getElementType(), to.getElementType(), found);
        } else if (type == HoodieSchemaType.MAP) {
            lost(name + ".value", from.getValueType(), to.getValueType(), found);
        } else if (!HoodieSchemaCompatibility.isSchemaCompatible(from, to, false, true)) {
            found.add(name + " (" + from + ")");
        }
    }
}
