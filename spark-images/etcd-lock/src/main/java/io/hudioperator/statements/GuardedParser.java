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
 * Lets each statement see its tables as they are: Spark keeps what a table's name stood for at its first use, files and all, and an
 * {@code UPDATE} would write rows anew as they were then.
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
    return next.parsePlan(text);
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

  @Override
  public Seq<String> parseMultipartIdentifier(String text) throws ParseException {
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
