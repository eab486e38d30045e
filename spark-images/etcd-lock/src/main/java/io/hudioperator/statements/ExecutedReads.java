package io.hudioperator.statements;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.Seq;
import scala.collection.mutable.ArrayBuffer;

/**
 * Notes which rows a frame has when it is executed. {@link StatementRules} sees a plan when it is
 * analyzed; {@code collect()} of a frame that was made earlier analyzes nothing, and its rows are
 * as old as the frame (F421). A frame that is executed again is not planned again.
 *
 * <p>It plans nothing itself.
 */
public final class ExecutedReads extends SparkStrategy {
    @Override
    public Seq<SparkPlan> apply(LogicalPlan plan) {
        StatementRules.executed(plan);
        return new ArrayBuffer<SparkPlan>().toSeq();
    }
}
