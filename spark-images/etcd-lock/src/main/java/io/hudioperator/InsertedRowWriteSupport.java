package io.hudioperator;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.timeline.FolderRules;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.SparkAdapterSupport$;
import org.apache.hudi.common.bloom.BloomFilter;
import org.apache.hudi.common.config.HoodieConfig;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.io.storage.row.HoodieRowParquetWriteSupport;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Base files of Hudi's row writer, which stores rows of a bulk insert unchanged, whether the
 * runtime or a program asked for it. In a writer's processes it stores no row that is marked as
 * deleted, because readers would show it (F108), and no dates of the calendar that was in use
 * before 1582, because readers other than Spark would take them for other days (F170).
 */
public final class InsertedRowWriteSupport extends HoodieRowParquetWriteSupport {
    private static final String CALENDAR = "spark.sql.parquet.datetimeRebaseModeInWrite";
    private static final String CORRECTED = "CORRECTED";
    private static final int NONE = -1;

    private final int deleted;
    private final int key;

    /**
     * The row is refused. No Exception: Hudi notes an exception beside the row, and goes on with
     * the next one.
     */
    static final class RowRefused extends Error {
        private static final long serialVersionUID = 1L;

        private RowRefused(String message) {
            super(message);
        }
    }

    /** Hudi calls this by reflection ({@code hoodie.parquet.spark.row.write.support.class}). */
    public InsertedRowWriteSupport(
            Configuration conf, StructType type, Option<BloomFilter> bloomFilter, HoodieConfig config) {
        super(conf, type, bloomFilter, config);
        boolean mine = FolderRules.isOfWriter();
        if (mine) {
            requireCalendar(
                    String.valueOf(SparkAdapterSupport$.MODULE$.sparkAdapter().getDateTimeRebaseMode()));
        }
        int found = mine ? index(type, HoodieRecord.HOODIE_IS_DELETED_FIELD) : NONE;
        deleted =
                found != NONE && DataTypes.BooleanType.equals(type.apply(found).dataType()) ? found : NONE;
        key = index(type, HoodieRecord.RECORD_KEY_METADATA_FIELD);
    }

    private static int index(StructType type, String name) {
        scala.Option<Object> found = type.getFieldIndex(name);
        return found.isDefined() ? (Integer) found.get() : NONE;
    }

    /** The mode is the session's that writes: user code may have set it since the session began. */
    static void requireCalendar(String mode) {
        if (!CORRECTED.equals(mode)) {
            throw ErrorCode.OPTION.exception(CALENDAR + " = '" + mode + "': it must be " + CORRECTED
                    + ", all writers of a table write dates in one calendar");
        }
    }

    @Override
    public void write(InternalRow row) {
        if (deleted != NONE && !row.isNullAt(deleted) && row.getBoolean(deleted)) {
            Object record = key == NONE ? "" : row.get(key, DataTypes.StringType);
            throw new RowRefused(ErrorCode.BAD_DATA.message(HoodieRecord.HOODIE_IS_DELETED_FIELD + " of record '"
                    + record + "' is true: this row is a delete, and a bulk insert deletes nothing; use operation"
                    + " upsert, or leave it out"));
        }
        super.write(row);
    }
}
