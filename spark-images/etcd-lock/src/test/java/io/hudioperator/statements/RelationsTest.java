package io.hudioperator.statements;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.exception.HoodieWriteConflictException;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A clean that is planned while a relation lists its files (F473). */
class RelationsTest {
    @TempDir
    Path folder;

    private void clean(int number) throws IOException {
        Files.createFile(folder.resolve(".hoodie/timeline/2026010100000000" + number + ".clean.requested"));
    }

    @Test
    void aRelationThatIsRefreshedIsLookedAtAgain() throws IOException {
        HoodieTableMetaClient table = HoodieTableMetaClient.newTableBuilder()
                .setTableType(HoodieTableType.COPY_ON_WRITE)
                .setTableName("t")
                .initTable(
                        HadoopFSUtils.getStorageConf(new Configuration()),
                        folder.toUri().toString());
        Object source = new Object();
        table.reloadActiveTimeline();
        Relations.requireListedAtOnce(source, table);
        clean(1);
        Relations.requireListedAtOnce(source, table); // its files were listed before

        table.reloadActiveTimeline();
        Relations.requireListedAtOnce(source, table);
        table.reloadActiveTimeline();
        clean(2);
        String said = assertThrows(
                        HoodieWriteConflictException.class, () -> Relations.requireListedAtOnce(source, table))
                .getMessage();
        assertTrue(said.contains("clean 20260101000000002 was begun"), said);
    }
}
