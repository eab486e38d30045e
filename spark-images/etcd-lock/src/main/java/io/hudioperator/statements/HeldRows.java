package io.hudioperator.statements;

import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.Set;
import org.apache.spark.Dependency;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.execution.ExternalRDD;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.storage.StorageLevel;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * Whether executors may hold rows of a batch since before its write began: cached rows, checkpoints
 * and blocks of a shuffle of an RDD. When the executor that held them is lost, they are computed
 * again, and a batch before this one may have been made from the old ones (F172).
 */
public final class HeldRows {
    private HeldRows() {}

    /** False when everything that the query reads is computed after it is asked for. */
    public static boolean test(QueryExecution query) {
        return test(query.withCachedData());
    }

    private static boolean test(QueryPlan<?> plan) {
        return plan instanceof InMemoryRelation
                || plan instanceof LogicalRDD && isHeld(((LogicalRDD) plan).rdd())
                || plan instanceof ExternalRDD && isHeld(((ExternalRDD<?>) plan).rdd())
                || any(plan.children())
                || any(plan.innerChildren())
                || any(plan.subqueries());
    }

    private static boolean any(Seq<?> plans) {
        Iterator<?> each = plans.iterator();
        while (each.hasNext()) {
            Object next = each.next();
            if (next instanceof QueryPlan && test((QueryPlan<?>) next)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isHeld(RDD<?> made) {
        Set<RDD<?>> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        Deque<RDD<?>> left = new ArrayDeque<>();
        left.add(made);
        while (!left.isEmpty()) {
            RDD<?> one = left.pop();
            if (!seen.add(one)) {
                continue;
            }
            if (!StorageLevel.NONE().equals(one.getStorageLevel()) || one.isCheckpointed()) {
                return true;
            }
            Iterator<?> parts = one.dependencies().iterator();
            while (parts.hasNext()) {
                Dependency<?> part = (Dependency<?>) parts.next();
                if (part instanceof ShuffleDependency) {
                    return true;
                }
                left.add(part.rdd());
            }
        }
        return false;
    }
}
