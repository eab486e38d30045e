package io.hudioperator.statements;

import io.hudioperator.contract.ErrorCode;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.BaseRelation;
import scala.collection.Iterator;

/** Hudi's relations in a plan: which table each reads, and since when. */
final class Relations {
    private Relations() {}

    static HoodieTableMetaClient table(Object source) {
        try {
            return (HoodieTableMetaClient)
                    source.getClass().getMethod("metaClient").invoke(source);
        } catch (ReflectiveOperationException e) { // an unknown kind of read is not "no read" (I11)
            throw ErrorCode.STATEMENT.exception(
                    "cannot tell which table " + source.getClass().getName() + " reads, and since when", e);
        }
    }

    /** The relation of a table without commits; it does not say which table it is. */
    static boolean isEmpty(Object source) {
        return source.getClass().getSimpleName().equals("EmptyRelation");
    }

    /** The table that a statement changes; null when it is none of Hudi's, or not known. */
    static HoodieTableMetaClient target(LogicalPlan plan, SparkSession spark) {
        Iterator<LogicalPlan> leaves = plan.collectLeaves().iterator();
        while (leaves.hasNext()) {
            LogicalPlan leaf = leaves.next();
            if (leaf instanceof LogicalRelation) {
                BaseRelation relation = ((LogicalRelation) leaf).relation();
                Object source =
                        relation instanceof HadoopFsRelation ? ((HadoopFsRelation) relation).location() : relation;
                if (!source.getClass().getName().startsWith("org.apache.hudi.")) {
                    return null;
                }
                return isEmpty(source) ? named(((LogicalRelation) leaf).catalogTable(), spark) : table(source);
            }
        }
        return null;
    }

    private static HoodieTableMetaClient named(scala.Option<CatalogTable> name, SparkSession spark) {
        if (name.isEmpty() || name.get().storage().locationUri().isEmpty()) {
            return null;
        }
        return at(name.get().storage().locationUri().get().toString(), spark);
    }

    /** The table at a path; an exception of Hudi's when there is none. */
    static HoodieTableMetaClient at(String path, SparkSession spark) {
        return HoodieTableMetaClient.builder()
                .setConf(HadoopFSUtils.getStorageConfWithCopy(
                        spark.sessionState().newHadoopConf()))
                .setBasePath(path)
                .build();
    }
}
