package io.hudioperator;

import java.util.Map;
import org.apache.hudi.client.WriteStatus;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.exception.HoodieException;

/**
 * A row that cannot be written fails its task. Hudi notes the failure beside the row and goes on
 * with the next one; at the end it does not commit, and the SQL commands UPDATE and DELETE do not
 * look whether it did: they would succeed without having changed anything (F380).
 *
 * <p>Hudi's own class of this kind logs the row with all its values.
 */
public final class FailFastWriteStatus extends WriteStatus {
    private static final long serialVersionUID = 1L;

    /** Hudi calls this by reflection ({@code hoodie.writestatus.class}). */
    public FailFastWriteStatus(Boolean trackSuccessRecords, Double failureFraction, Boolean isMetadataTable) {
        super(trackSuccessRecords, failureFraction, isMetadataTable);
    }

    @Override
    public void markFailure(HoodieRecord row, Throwable cause, Option<Map<String, String>> metadata) {
        throw failure(row.getRecordKey(), row.getPartitionPath(), cause);
    }

    @Override
    public void markFailure(String recordKey, String partitionPath, Throwable cause) {
        throw failure(recordKey, partitionPath, cause);
    }

    private static HoodieException failure(String recordKey, String partitionPath, Throwable cause) {
        return new HoodieException(
                "the row of record '" + recordKey + "' in partition '" + partitionPath + "' cannot be written: "
                        + cause,
                cause);
    }
}
