package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hudi.avro.model.HoodieActionInstant;
import org.apache.hudi.avro.model.HoodieCleanFileInfo;
import org.apache.hudi.avro.model.HoodieCleanerPlan;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.table.timeline.versioning.v2.BaseTimelineV2;
import org.apache.hudi.common.table.timeline.versioning.v2.InstantGeneratorV2;
import org.junit.jupiter.api.Test;

/** From which commit on archival keeps what has replaced files (F479). */
class CleanPlanTest {
    private static final String NONE = null;

    /** Commits: `1` is completed, `2?` is pending. */
    private static HoodieTimeline timeline(String... commits) {
        List<HoodieInstant> found = new ArrayList<>();
        for (String commit : commits) {
            boolean pending = commit.endsWith("?");
            found.add(new InstantGeneratorV2()
                    .createNewInstant(
                            pending ? HoodieInstant.State.INFLIGHT : HoodieInstant.State.COMPLETED,
                            "replacecommit",
                            commit.replace("?", ""),
                            pending ? null : "9"));
        }
        return new BaseTimelineV2(found.stream(), null);
    }

    private static HoodieCleanerPlan plan(String bound, String... files) {
        HoodieCleanerPlan plan = new HoodieCleanerPlan();
        List<HoodieCleanFileInfo> some = new ArrayList<>();
        List.of(files).forEach(file -> some.add(new HoodieCleanFileInfo(file, false)));
        plan.setFilePathsToBeDeletedPerPartition(Map.of("p", some));
        plan.setEarliestInstantToRetain(bound == null ? null : new HoodieActionInstant(bound, "commit", "COMPLETED"));
        return plan;
    }

    private static String bound(HoodieCleanerPlan plan) {
        HoodieActionInstant found = plan.getEarliestInstantToRetain();
        return found == null ? null : found.getTimestamp();
    }

    private static String bound(String before, HoodieTimeline planned, HoodieTimeline now) {
        HoodieCleanerPlan plan = plan(before);
        CleanPlan.bound(plan, planned, now);
        return bound(plan);
    }

    @Test
    void aPlanWithoutBoundGetsOne() {
        assertEquals("3", bound(NONE, timeline("1", "3"), timeline("1", "3")));
        assertEquals("2", bound(NONE, timeline("1", "2?", "3"), timeline("1", "2", "3")), "it was pending");
        assertEquals("2", bound(NONE, timeline("1", "3"), timeline("1", "2", "3")), "nobody knew it");
        assertEquals("3", bound(NONE, timeline("1", "3"), timeline("1", "3", "4")));
        assertEquals(NONE, bound(NONE, timeline(), timeline("1")), "nothing is deleted then");
    }

    @Test
    void aBoundIsNoLaterThanWhatWasPending() {
        assertEquals("2", bound("3", timeline("1", "2?", "3", "4"), timeline("1", "2", "3", "4")));
        assertEquals("3", bound("3", timeline("1", "2", "3", "4?"), timeline("1", "2", "3", "4")));
    }

    @Test
    void whatIsLeftOutKeepsItsCommits() {
        for (String mine : new String[] {NONE, "7"}) {
            HoodieCleanerPlan plan = plan(mine, "a", "b");
            CleanPlan.restrict(plan, plan("5", "b", "c"));
            assertEquals("5", bound(plan));
            assertEquals(
                    List.of("b"),
                    List.of(plan.getFilePathsToBeDeletedPerPartition().get("p").stream()
                            .map(HoodieCleanFileInfo::getFilePath)
                            .toArray()));
        }
        HoodieCleanerPlan plan = plan("3", "a");
        CleanPlan.restrict(plan, plan("5", "a"));
        assertEquals("3", bound(plan));
    }
}
