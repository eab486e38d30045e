package io.hudioperator.statements;

import org.apache.spark.sql.catalyst.analysis.DeduplicateRelations$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;

/**
 * A {@code MERGE INTO} whose source reads the table that it changes.
 *
 * <p>Both sides are the same relation of the catalog, with the same columns. Spark gives one of two
 * such relations separate columns before it resolves references to them. Hudi resolves a whole
 * {@code MERGE INTO} at once, earlier: {@code t.id = s.id} would compare a column with itself, and
 * a condition on one side would ask the other.
 */
public final class SelfMerges {
    private SelfMerges() {}

    /** The plan, with separate columns for each side of a merge that is not resolved yet. */
    public static LogicalPlan apart(LogicalPlan plan) {
        return plan instanceof MergeIntoTable && !plan.resolved() ? DeduplicateRelations$.MODULE$.apply(plan) : plan;
    }
}
