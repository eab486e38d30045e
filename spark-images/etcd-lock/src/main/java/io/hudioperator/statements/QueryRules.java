package io.hudioperator.statements;

import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedGenerator;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoDir;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.catalyst.plans.logical.ScriptTransformation;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import scala.Product;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * Rules for the SQL of a HudiWriter: one query over its views, which computes rows and does nothing
 * else. It is judged as Spark's own parser reads it, before it is analyzed (F133).
 */
public final class QueryRules {
    private static final String ANALYSIS = "org.apache.spark.sql.catalyst.";
    /** They run any method of any class. */
    private static final Set<String> CODE = Set.of("java_method", "reflect", "try_reflect");
    /** Those of Spark that make rows of their arguments. Hudi's read tables and timelines. */
    private static final Set<String> TABLES = Set.of(
            "range",
            "explode",
            "explode_outer",
            "posexplode",
            "posexplode_outer",
            "inline",
            "inline_outer",
            "json_tuple",
            "stack",
            "sql_keywords");

    private final SparkSession spark;
    private final Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    private final Set<String> named = new HashSet<>();
    private final Deque<Object> waiting = new ArrayDeque<>();

    private QueryRules(SparkSession spark) {
        this.spark = spark;
    }

    /**
     * Why this text may not run; empty when it may. Spark's ParseException for text that is not one
     * statement.
     */
    public static String problem(SparkSession spark, String sql) throws Exception {
        LogicalPlan plan = spark.sessionState().sqlParser().parsePlan(sql);
        QueryRules names = new QueryRules(spark);
        names.walk(plan, false);
        QueryRules rules = new QueryRules(spark);
        rules.named.addAll(names.named);
        return rules.walk(plan, true);
    }

    /** Visits everything in the plan: children, subqueries, expressions, and what they hold. */
    private String walk(LogicalPlan plan, boolean judging) {
        waiting.add(plan);
        while (!waiting.isEmpty()) {
            Object node = waiting.pop();
            if (node instanceof scala.collection.Iterable) {
                addAll(((scala.collection.Iterable<?>) node).iterator());
            } else if (node instanceof Product && seen.add(node)) {
                if (node instanceof UnresolvedWith) {
                    name((UnresolvedWith) node);
                }
                String found = judging ? judge(node) : "";
                if (!found.isEmpty()) {
                    return found;
                }
                addAll(((Product) node).productIterator());
            }
        }
        return "";
    }

    private void addAll(Iterator<?> parts) {
        while (parts.hasNext()) {
            Object part = parts.next();
            if (part != null) {
                waiting.add(part);
            }
        }
    }

    private void name(UnresolvedWith with) {
        Iterator<?> all = with.cteRelations().iterator();
        while (all.hasNext()) {
            named.add(lower(((Tuple2<?, ?>) all.next())._1().toString()));
        }
    }

    private String judge(Object node) {
        String kind = node.getClass().getSimpleName();
        if (node instanceof Command || node instanceof ParsedStatement || node instanceof InsertIntoDir) {
            return "it is not a query (" + kind + ")";
        }
        if (node instanceof ScriptTransformation) {
            return "TRANSFORM … USING runs a command";
        }
        if (kind.endsWith("WithUnresolvedIdentifier")) {
            return "IDENTIFIER(…) hides which table or function is meant";
        }
        if (node instanceof LogicalPlan && !node.getClass().getName().startsWith(ANALYSIS)) {
            return "it is not a query of Spark (" + kind + ")";
        }
        if (node instanceof UnresolvedRelation) {
            return relation(((UnresolvedRelation) node).multipartIdentifier());
        }
        if (node instanceof UnresolvedTableValuedFunction) {
            String name = last(((UnresolvedTableValuedFunction) node).name());
            return TABLES.contains(name) ? "" : "table function " + name + " may not be used";
        }
        if (node instanceof UnresolvedFunction) {
            return function(last(((UnresolvedFunction) node).nameParts()));
        }
        return node instanceof UnresolvedGenerator
                ? function(lower(((UnresolvedGenerator) node).name().funcName()))
                : "";
    }

    private String relation(Seq<String> parts) {
        boolean view = parts.size() == 1
                && (named.contains(lower(parts.head()))
                        || spark.sessionState()
                                .catalog()
                                .getTempView(parts.head())
                                .isDefined());
        String name = parts.mkString(".");
        return view ? "" : "table " + name + " is not a view of this query: files and tables are not read by name";
    }

    private static String function(String name) {
        return CODE.contains(name) ? "function " + name + " runs code and may not be used" : "";
    }

    private static String last(Seq<String> parts) {
        return lower(parts.last());
    }

    private static String lower(String name) {
        return name.toLowerCase(Locale.ROOT);
    }
}
