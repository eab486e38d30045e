package io.hudioperator.programs;

import java.io.Closeable;
import java.io.IOException;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;
import scala.runtime.Nothing$;

/**
 * What a user's classes call instead of the methods that {@link ProgramLoader} replaces. They end
 * the program and not this JVM, in which its commits are still to be counted: the attempt would
 * fail, and the next one would write the same rows again.
 */
public final class ProgramCalls {
    private ProgramCalls() {}

    /** {@code System.exit}. */
    public static void exit(int code) {
        throw Program.exits(code);
    }

    public static void exit(Runtime runtime, int code) {
        throw Program.exits(code);
    }

    public static void halt(Runtime runtime, int code) {
        throw Program.exits(code);
    }

    /** {@code scala.sys.exit}. */
    public static Nothing$ exit(scala.sys.package$ system, int code) {
        throw Program.exits(code);
    }

    public static Nothing$ exit(scala.sys.package$ system) {
        throw Program.exits(0);
    }

    public static void stop(SparkSession session) {
        left("SparkSession");
    }

    public static void close(SparkSession session) {
        left("SparkSession");
    }

    public static void stop(SparkContext context) {
        left("SparkContext");
    }

    public static void stop(SparkContext context, int code) {
        left("SparkContext");
    }

    public static void stop(JavaSparkContext context) {
        left("JavaSparkContext");
    }

    public static void close(JavaSparkContext context) {
        left("JavaSparkContext");
    }

    public static void close(Closeable any) throws IOException {
        if (any instanceof SparkSession || any instanceof JavaSparkContext) {
            left(any.getClass().getSimpleName());
        } else {
            any.close();
        }
    }

    public static void close(AutoCloseable any) throws Exception {
        if (any instanceof SparkSession || any instanceof JavaSparkContext) {
            left(any.getClass().getSimpleName());
        } else {
            any.close();
        }
    }

    private static void left(String what) {
        System.err.println(what + ".stop(): Spark is stopped when the program has ended");
    }
}
