package io.hudioperator.support;

import java.io.IOException;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.engine.RecordContext;
import org.apache.hudi.common.model.HoodieRecord.HoodieRecordType;
import org.apache.hudi.common.model.HoodieRecordMerger;
import org.apache.hudi.common.table.read.BufferedRecord;

/**
 * A merger that differs from both of Hudi's own: of two versions, the one with the smaller {@code
 * ts} is kept. Represents a merger written by a user.
 */
public final class EarliestMerger implements HoodieRecordMerger {
    /** The name of this merge in the table's properties. */
    public static final String STRATEGY = "7d6a3c1e-3f0f-4a52-9a51-2f3c1b0e6f55";

    private static final String FIELD = "ts";

    @Override
    public <T> BufferedRecord<T> merge(
            BufferedRecord<T> older, BufferedRecord<T> newer, RecordContext<T> context, TypedProperties properties)
            throws IOException {
        if (older.isDelete() || newer.isDelete()) {
            return newer;
        }
        return time(newer, context) < time(older, context) ? newer : older;
    }

    private static <T> long time(BufferedRecord<T> version, RecordContext<T> context) {
        return ((Number) context.getValue(version.getRecord(), context.getSchemaFromBufferRecord(version), FIELD))
                .longValue();
    }

    @Override
    public HoodieRecordType getRecordType() {
        return HoodieRecordType.SPARK;
    }

    @Override
    public String getMergingStrategy() {
        return STRATEGY;
    }
}
