package io.hudioperator.statements;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.Seq;

/**
 * Makes each statement see the current state of its tables. Spark caches what a table's name
 * referred to at its first use, including its files, and an {@code UPDATE} would rewrite rows from
 * that old state. Each session has its own cache: the write of one leaves that of another
 * unchanged. Also refuses what only the parsed text says.
 */
public final class GuardedParser implements ParserInterface {
    private final SparkSession session;
    private final ParserInterface next;

    public GuardedParser(SparkSession session, ParserInterface next) {
        this.session = session;
        this.next = next;
    }

    @Override
    public LogicalPlan parsePlan(String text) throws ParseException {
        session.sessionState().catalog().invalidateAllCachedTables();
        LogicalPlan plan = next.parsePlan(text);
        StatementRules.requireByPosition(session, plan);
        return plan;
    }

    @Override
    public LogicalPlan parseQuery(String text) throws ParseException {
        return next.parseQuery(text);
    }

    @Override
    public Expression parseExpression(String text) throws ParseException {
        return next.parseExpression(text);
    }

    @Override
    public TableIdentifier parseTableIdentifier(String text) throws ParseException {
        return next.parseTableIdentifier(text);
    }

    @Override
    public FunctionIdentifier parseFunctionIdentifier(String text) throws ParseException {
        return next.parseFunctionIdentifier(text);
    }

    /** Of {@code spark.table}, which parses no statement (F420). */
    @Override
    public Seq<String> parseMultipartIdentifier(String text) throws ParseException {
        session.sessionState().catalog().invalidateAllCachedTables();
        return next.parseMultipartIdentifier(text);
    }

    @Override
    public StructType parseTableSchema(String text) throws ParseException {
        return next.parseTableSchema(text);
    }

    @Override
    public DataType parseDataType(String text) throws ParseException {
        return next.parseDataType(text);
    }
}
