package io.hudioperator.session;

import org.apache.spark.SparkContext;

/**
 * A name that a thread gives to the threads that Spark takes for its queries, in which subqueries
 * are planned again: a local property, which Spark copies to them.
 */
public final class LocalScope {
    private static final String KEY = "io.hudioperator.reads.scope";

    private static volatile SparkContext driver;

    private LocalScope() {}

    /** This JVM is the driver. The Spark plugin calls this. */
    public static void drivenBy(SparkContext context) {
        driver = context;
    }

    /** Null when this thread has none, or where there is no driver. */
    static String get() {
        SparkContext context = driver;
        return context == null ? null : context.getLocalProperty(KEY);
    }

    /** Names this thread and those that work for it; null ends that. */
    static void set(String name) {
        SparkContext context = driver;
        if (context != null) {
            context.setLocalProperty(KEY, name);
        }
    }
}
