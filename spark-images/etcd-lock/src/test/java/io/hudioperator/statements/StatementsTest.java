package io.hudioperator.statements;

import static io.hudioperator.support.TestTable.assertCode;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.Json;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.exception.HoodieException;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.hudi.command.procedures.HoodieProcedures;
import org.junit.jupiter.api.Test;
import scala.collection.Iterator;

/**
 * The list of what programs may do covers everything that Hudi provides. A statement that is not
 * listed fails here and is refused in a driver.
 */
class StatementsTest {
    private static final String COMMANDS = "org/apache/spark/sql/hudi/command/";

    private static JsonNode list() {
        try (InputStream in = Statements.class.getResourceAsStream("statements.json")) {
            return Json.parse(new String(in.readAllBytes(), StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Set<String> names(JsonNode node) {
        Set<String> names = new TreeSet<>();
        node.fieldNames().forEachRemaining(names::add);
        return names;
    }

    @Test
    void everyProcedureOfHudisRegistryIsListed() {
        Set<String> registered = new TreeSet<>();
        Iterator<String> names = HoodieProcedures.procedures().keysIterator();
        while (names.hasNext()) {
            registered.add(names.next());
        }
        assertTrue(registered.size() > 50);
        assertEquals(registered, names(list().path("procedures")));
    }

    /** F445: they read by Hudi's own classes, so that no plan shows what the program has read. */
    @Test
    void aProcedureThatShowsRowsOrBoundsOfColumnsIsRefused() {
        for (String name : Set.of(
                "show_logfile_records", "show_metadata_column_stats_overlap", "show_metadata_table_column_stats")) {
            assertEquals(
                    "refused",
                    list().path("procedures").path(name).path("verdict").asText(),
                    name);
        }
    }

    /** Matched by name, because a command can be loaded only with all of Spark around it. */
    @Test
    void everyCommandOfHudiIsListed() throws Exception {
        File bundle = new File(HoodieProcedures.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .toURI());
        Set<String> commands;
        try (JarFile jar = new JarFile(bundle)) {
            commands = jar.stream()
                    .map(e -> e.getName())
                    .filter(n -> n.startsWith(COMMANDS)
                            && n.indexOf('/', COMMANDS.length()) < 0
                            && n.indexOf('$') < 0
                            && n.endsWith("Command.class"))
                    .map(n -> n.substring(COMMANDS.length(), n.length() - ".class".length()))
                    .collect(Collectors.toCollection(TreeSet::new));
        }
        // two are abstract, one calls procedures
        commands.removeAll(Set.of("HoodieLeafRunnableCommand", "IndexBaseCommand", "CallProcedureHoodieCommand"));
        assertTrue(commands.size() > 20);
        commands.removeAll(names(list().path("statements")));
        assertEquals(Set.of(), commands);
    }

    /** What df.write may do with mode append; with overwrite only the last of them. */
    private static final Set<String> APPENDED = Set.of(
            "insert",
            "upsert",
            "bulk_insert",
            "delete",
            "delete_partition",
            "insert_overwrite",
            "insert_overwrite_table");

    /** What no program may ask for: work of services, and of Hudi inside its own writes. */
    private static final Set<String> INTERNAL = Set.of(
            "insert_prepped",
            "upsert_prepped",
            "bulk_insert_prepped",
            "delete_prepped",
            "bootstrap",
            "bucket_rescale",
            "cluster",
            "compact",
            "log_compact",
            "index",
            "alter_schema",
            "unknown");

    /** An operation of a later Hudi release fails here until it is looked at. */
    @Test
    void everyOperationOfHudiIsJudgedInEveryMode() {
        Set<String> operations = Arrays.stream(WriteOperationType.values())
                .map(WriteOperationType::value)
                .collect(Collectors.toCollection(TreeSet::new));
        Set<String> judged = new TreeSet<>(APPENDED);
        judged.addAll(INTERNAL);
        assertEquals(judged, operations);
        assertEquals(4, SaveMode.values().length);
        for (String operation : operations) {
            assertEquals(APPENDED.contains(operation), isAllowed(SaveMode.Append, operation), operation);
            assertEquals(
                    operation.equals("insert_overwrite_table"), isAllowed(SaveMode.Overwrite, operation), operation);
            // The table exists, so they write nothing, whatever the operation.
            assertTrue(isAllowed(SaveMode.ErrorIfExists, operation), operation);
            assertTrue(isAllowed(SaveMode.Ignore, operation), operation);
        }
        assertTrue(isAllowed(SaveMode.Append, ""));
        assertFalse(isAllowed(SaveMode.Overwrite, ""));
    }

    private static boolean isAllowed(SaveMode mode, String operation) {
        return !Statements.save(mode.name().toLowerCase(Locale.ROOT), operation).isRefused();
    }

    /** F423: in that mode a bucket keeps its file id, which must not be replaced. */
    @Test
    void whatReplacesFileGroupsIsRefusedInNonBlocking() {
        for (SaveMode mode : SaveMode.values()) {
            for (String operation : APPENDED) {
                if (!isAllowed(mode, operation) || mode == SaveMode.ErrorIfExists || mode == SaveMode.Ignore) {
                    continue; // refused in any mode, or it writes nothing
                }
                Statements save = Statements.save(mode.name().toLowerCase(Locale.ROOT), operation);
                if (REPLACING.contains(operation)) {
                    HoodieException e = assertThrows(HoodieException.class, save::requireInNonBlocking, operation);
                    assertCode(ErrorCode.STATEMENT, e);
                    assertTrue(e.getMessage().contains("mode NonBlocking is refused; use DELETE FROM"), e.getMessage());
                } else {
                    save.requireInNonBlocking();
                }
            }
        }
    }

    private static final Set<String> REPLACING =
            Set.of("delete_partition", "insert_overwrite", "insert_overwrite_table");

    @Test
    void whatIsNotListedIsRefused() {
        HoodieException e = assertThrows(
                HoodieException.class,
                () -> Statements.statement("MeltHoodieTableCommand").require());
        assertCode(ErrorCode.STATEMENT, e);
        assertTrue(e.getMessage().contains("MeltHoodieTableCommand"));
        assertTrue(Statements.save("append", "melt").isRefused());
        assertTrue(Statements.save("overwrite", "upsert").isRefused());
        assertTrue(Statements.save("overwrite", "insert_overwrite").isRefused()); // F65: deletes the folder first
        assertFalse(Statements.save("overwrite", "insert_overwrite_table").isRefused());
        assertFalse(Statements.save("append", "upsert").isRefused());
        for (String kind : names(list())) {
            for (JsonNode entry : list().path(kind)) {
                String verdict = entry.path("verdict").asText();
                assertTrue(Set.of("works", "harmless", "refused").contains(verdict), entry.toString());
                assertEquals(verdict.equals("refused"), entry.has("instead"), entry.toString());
            }
        }
    }

    @Test
    void aRefusalSaysWhatToUseInstead() {
        HoodieException e = assertThrows(
                HoodieException.class,
                () -> Statements.statement("TruncateHoodieTableCommand").require());
        assertTrue(e.getMessage().contains("TRUNCATE TABLE is refused; use DELETE FROM"), e.getMessage());
    }
}
