package io.hudioperator.timeline;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TablePath;
import io.hudioperator.contract.TimelineRefusedException;
import java.util.Collection;
import java.util.Map;
import org.apache.avro.generic.GenericRecord;
import org.apache.hadoop.fs.Path;

/**
 * Rules for a commit's own metadata. The completed file is the last file that is written of a
 * commit, in every mode and by every way to write, so a commit that is refused here has changed
 * nothing that a reader sees.
 */
final class CommitRules {
    private static final String STATS = "partitionToWriteStats";

    private CommitRules() {}

    /** @param said the completed file of an instant of the table; some are of no commit */
    static void require(Path path, GenericRecord said) throws TimelineRefusedException {
        if (!said.hasField(STATS) || !(said.get(STATS) instanceof Map) || !said.hasField("operationType")) {
            return;
        }
        requirePartitions(path, (Map<?, ?>) said.get(STATS));
        String operation = String.valueOf(said.get("operationType"));
        if (operation.startsWith("INSERT") || operation.startsWith("BULK_INSERT")) {
            requireNoDeletes(path, operation, (Map<?, ?>) said.get(STATS));
        }
    }

    /**
     * The name of a partition as the commit has it. A path does not show all of it: {@code a//b} is
     * written into the folder {@code a/b}, where no reader looks for it.
     */
    private static void requirePartitions(Path path, Map<?, ?> stats) throws TimelineRefusedException {
        String file = path.toString();
        int end = file.indexOf("/.hoodie/");
        if (end > 0) {
            for (Object partition : stats.keySet()) {
                ProgramFiles.requirePartition(
                        TablePath.comparable(file.substring(0, end)), String.valueOf(partition), path);
            }
        }
    }

    /**
     * Hudi leaves out the rows of an insert that are marked as deleted, without deleting anything
     * and without an error (F108).
     */
    private static void requireNoDeletes(Path path, String operation, Map<?, ?> stats) throws TimelineRefusedException {
        for (Map.Entry<?, ?> partition : stats.entrySet()) {
            long deletes = 0;
            for (Object stat : (Collection<?>) partition.getValue()) {
                Object number = ((GenericRecord) stat).get("numDeletes");
                deletes += number instanceof Number ? ((Number) number).longValue() : 0;
            }
            if (deletes > 0) {
                throw ErrorCode.BAD_DATA.refusal(deletes + " rows of partition '" + partition.getKey()
                        + "' are deletes (_hoodie_is_deleted), and " + operation
                        + " deletes nothing; use operation upsert, or leave them out: " + path);
            }
        }
    }
}
