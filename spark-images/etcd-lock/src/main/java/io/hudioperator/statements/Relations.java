package io.hudioperator.statements;

import io.hudioperator.contract.ErrorCode;
import org.apache.hudi.common.table.HoodieTableMetaClient;

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
}
