package io.hudioperator;

import io.hudioperator.statements.ExecutedReads;
import io.hudioperator.statements.GuardedParser;
import io.hudioperator.statements.OrderedDeletes;
import io.hudioperator.statements.SelfMerges;
import io.hudioperator.statements.StatementRules;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.Function1;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/**
 * The Spark SQL extension ({@code spark.sql.extensions}, before Hudi's own): {@link
 * StatementRules} sees every plan before it runs, and {@link ExecutedReads} again when it does;
 * {@link OrderedDeletes} changes deletions before Hudi makes commands of them, and {@link
 * SelfMerges} tells the sides of a merge apart before Hudi resolves them.
 */
public final class StatementExtension extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        extensions.injectParser(new AbstractFunction2<SparkSession, ParserInterface, ParserInterface>() {
            @Override
            public ParserInterface apply(SparkSession session, ParserInterface next) {
                return new GuardedParser(session, next);
            }
        });
        extensions.injectResolutionRule(new AbstractFunction1<SparkSession, Rule<LogicalPlan>>() {
            @Override
            public Rule<LogicalPlan> apply(SparkSession session) {
                return new Merges();
            }
        });
        extensions.injectPostHocResolutionRule(new AbstractFunction1<SparkSession, Rule<LogicalPlan>>() {
            @Override
            public Rule<LogicalPlan> apply(SparkSession session) {
                return new Deletes(session);
            }
        });
        extensions.injectCheckRule(new AbstractFunction1<SparkSession, Function1<LogicalPlan, BoxedUnit>>() {
            @Override
            public Function1<LogicalPlan, BoxedUnit> apply(SparkSession session) {
                return new Check(session);
            }
        });
        extensions.injectPlannerStrategy(new AbstractFunction1<SparkSession, SparkStrategy>() {
            @Override
            public SparkStrategy apply(SparkSession session) {
                return new ExecutedReads();
            }
        });
        return BoxedUnit.UNIT;
    }

    private static final class Merges extends Rule<LogicalPlan> {
        @Override
        public LogicalPlan apply(LogicalPlan plan) {
            return SelfMerges.apart(plan);
        }
    }

    private static final class Deletes extends Rule<LogicalPlan> {
        private final SparkSession session;

        private Deletes(SparkSession session) {
            this.session = session;
        }

        @Override
        public LogicalPlan apply(LogicalPlan plan) {
            return OrderedDeletes.rewritten(session, plan);
        }
    }

    private static final class Check extends AbstractFunction1<LogicalPlan, BoxedUnit> {
        private final SparkSession session;

        private Check(SparkSession session) {
            this.session = session;
        }

        @Override
        public BoxedUnit apply(LogicalPlan plan) {
            StatementRules.check(session, plan);
            return BoxedUnit.UNIT;
        }
    }
}
