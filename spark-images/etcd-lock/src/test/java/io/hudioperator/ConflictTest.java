package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hudioperator.support.TestTable;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.apache.hudi.client.transaction.ConcurrentOperation;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieReplaceCommitMetadata;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Which operations conflict: a compaction never makes a delta commit fail, and a partition is not
 * deleted while a write to it commits (I9).
 */
class ConflictTest {
    private static ConcurrentOperation operation(
            HoodieInstant.State state, String action, String time, WriteOperationType type, String fileId) {
        HoodieWriteStat stat = new HoodieWriteStat();
        stat.setPartitionPath("p");
        stat.setFileId(fileId);
        HoodieCommitMetadata metadata =
                type == WriteOperationType.CLUSTER ? new HoodieReplaceCommitMetadata() : new HoodieCommitMetadata();
        metadata.setOperationType(type);
        metadata.addWriteStat("p", stat);
        return new ConcurrentOperation(instant(state, action, time), metadata);
    }

    private static HoodieInstant instant(HoodieInstant.State state, String action, String time) {
        return new HoodieInstant(state, action, time, Comparator.comparing(HoodieInstant::requestedTime));
    }

    /** Hudi itself sees no conflict, because a deletion writes no file group. */
    @ParameterizedTest
    @CsvSource({"UPSERT, p, true", "UPSERT, q, false", "INSERT, p, true", "CLUSTER, p, true", "COMPACT, p, false"})
    void aPartitionIsNotDeletedOverAWriteToIt(WriteOperationType type, String deleted, boolean conflict) {
        HoodieReplaceCommitMetadata metadata = new HoodieReplaceCommitMetadata();
        metadata.setOperationType(WriteOperationType.DELETE_PARTITION);
        metadata.setPartitionToReplaceFileIds(Map.of(deleted, List.of("gone")));
        ConcurrentOperation deletion = new ConcurrentOperation(
                instant(HoodieInstant.State.INFLIGHT, "replacecommit", TestTable.time(0)), metadata);
        ConcurrentOperation completed =
                operation(HoodieInstant.State.COMPLETED, "commit", TestTable.time(1), type, "new");
        assertEquals(conflict, new FencedConflictResolutionStrategy().hasConflict(deletion, completed));
    }

    /** Hudi sees none when the other one has made file groups of its own. */
    @ParameterizedTest
    @CsvSource({
        "INSERT_OVERWRITE,       UPSERT,  p, true",
        "INSERT_OVERWRITE,       UPSERT,  q, false",
        "INSERT_OVERWRITE,       CLUSTER, p, true",
        "INSERT_OVERWRITE,       COMPACT, p, false",
        "INSERT_OVERWRITE_TABLE, UPSERT,  p, true",
        "INSERT_OVERWRITE_TABLE, UPSERT,  q, true",
        "INSERT_OVERWRITE_TABLE, COMPACT, q, false",
        "UPSERT,                 UPSERT,  p, false",
    })
    void whatWasWrittenToAPartitionIsNotReplaced(
            WriteOperationType mine, WriteOperationType type, String replaced, boolean conflict) {
        HoodieReplaceCommitMetadata metadata = new HoodieReplaceCommitMetadata();
        metadata.setOperationType(mine);
        metadata.setPartitionToReplaceFileIds(Map.of(replaced, List.of()));
        ConcurrentOperation overwrite = new ConcurrentOperation(
                instant(HoodieInstant.State.INFLIGHT, "replacecommit", TestTable.time(0)), metadata);
        ConcurrentOperation completed =
                operation(HoodieInstant.State.COMPLETED, "commit", TestTable.time(1), type, "new");
        assertEquals(conflict, new FencedConflictResolutionStrategy().hasConflict(overwrite, completed));
    }

    /**
     * A pending overwriting insert has named the partitions of its rows, without file groups
     * (F491). One that is completed has replaced what it found, and a new file group stays beside
     * it.
     */
    @ParameterizedTest
    @CsvSource({
        "INFLIGHT,  INSERT_OVERWRITE,       UPSERT,  p, true",
        "INFLIGHT,  INSERT_OVERWRITE,       CLUSTER, p, true",
        "INFLIGHT,  INSERT_OVERWRITE,       COMPACT, p, false",
        "INFLIGHT,  INSERT_OVERWRITE,       UPSERT,  q, false",
        "INFLIGHT,  INSERT_OVERWRITE_TABLE, UPSERT,  q, true",
        "INFLIGHT,  UPSERT,                 UPSERT,  p, false",
        "COMPLETED, INSERT_OVERWRITE,       UPSERT,  p, false",
    })
    void whoeverIsAboutToReplaceAPartitionIsInTheWay(
            HoodieInstant.State state,
            WriteOperationType type,
            WriteOperationType mine,
            String replaced,
            boolean conflict) {
        HoodieWriteStat stat = new HoodieWriteStat();
        stat.setPartitionPath(replaced);
        stat.setFileId("");
        HoodieReplaceCommitMetadata metadata = new HoodieReplaceCommitMetadata();
        metadata.setOperationType(type);
        metadata.addWriteStat(replaced, stat);
        ConcurrentOperation overwrite =
                new ConcurrentOperation(instant(state, "replacecommit", TestTable.time(1)), metadata);
        ConcurrentOperation writer = operation(HoodieInstant.State.INFLIGHT, "commit", TestTable.time(0), mine, "new");
        assertEquals(conflict, new FencedConflictResolutionStrategy().hasConflict(writer, overwrite));
    }

    @ParameterizedTest
    @CsvSource({
        "deltacommit, commit,        COMPACT, f, false",
        "commit,      commit,        COMPACT, f, true",
        "deltacommit, deltacommit,   UPSERT,  f, true",
        "deltacommit, commit,        UPSERT,  f, true",
        "deltacommit, deltacommit,   UPSERT,  g, false",
        "commit,      commit,        COMPACT, g, false",
    })
    void whoConflicts(String mine, String other, WriteOperationType type, String fileId, boolean conflict) {
        ConcurrentOperation writer =
                operation(HoodieInstant.State.INFLIGHT, mine, TestTable.time(0), WriteOperationType.UPSERT, "f");
        ConcurrentOperation completed =
                operation(HoodieInstant.State.COMPLETED, other, TestTable.time(1), type, fileId);
        assertEquals(conflict, new FencedConflictResolutionStrategy().hasConflict(writer, completed));
    }
}
