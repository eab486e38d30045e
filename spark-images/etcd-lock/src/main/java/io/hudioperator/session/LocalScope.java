package io.hudioperator.session;

import org.apache.spark.SparkContext;

/**
 * A name that a thread gives to the threads which Spark takes for its queries, in which subqueries
 * are planned again: a local property, which Spark copies to them.
 */
final class LocalScope {
    private static final String KEY = "io.hudioperator.reads.scope";

    private LocalScope() {}

    /** Null when this thread has none, or where there is no Spark. */
    static String get() {
        scala.Option<SparkContext> spark = SparkContext.getActive();
        return spark.isEmpty() ? null : spark.get().getLocalProperty(KEY);
    }

    /**
     * @param name null: none
     */
    static void set(String name) {
        scala.Option<SparkContext> spark = SparkContext.getActive();
        if (spark.isDefined()) {
            spark.get().setLocalProperty(KEY, name);
        }
    }
}
