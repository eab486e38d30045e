package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Comparator;
import org.apache.hudi.client.transaction.ConcurrentOperation;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A compaction never makes a delta commit fail; everything else that shares a file group is a conflict as before (I9). */
class CompactionConflictTest {
  private static ConcurrentOperation operation(HoodieInstant.State state, String action, String time, WriteOperationType type, String fileId) {
    HoodieWriteStat stat = new HoodieWriteStat();
    stat.setPartitionPath("p");
    stat.setFileId(fileId);
    HoodieCommitMetadata metadata = new HoodieCommitMetadata();
    metadata.setOperationType(type);
    metadata.addWriteStat("p", stat);
    return new ConcurrentOperation(new HoodieInstant(state, action, time, Comparator.comparing(HoodieInstant::requestedTime)), metadata);
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
    ConcurrentOperation writer = operation(HoodieInstant.State.INFLIGHT, mine, TestTable.time(0), WriteOperationType.UPSERT, "f");
    ConcurrentOperation completed = operation(HoodieInstant.State.COMPLETED, other, TestTable.time(1), type, fileId);
    assertEquals(conflict, new FencedConflictResolutionStrategy().hasConflict(writer, completed));
  }
}
