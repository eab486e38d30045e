package io.hudioperator.statements;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import io.hudioperator.contract.Json;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.jar.JarFile;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.execution.command.RunnableCommand;
import org.junit.jupiter.api.Test;

/**
 * Each command of Spark is listed, or names its table where {@link StatementRules} looks for it, so
 * that it is refused for a Hudi table, or is on a list of those that need not be. A command of a
 * later release of Spark fails here until it is looked at.
 */
class SparkCommandsTest {
    /** What StatementRules understands in a command's own fields and in those of its children. */
    private static final Set<String> UNDERSTOOD = Set.of(
            "org.apache.spark.sql.catalyst.TableIdentifier",
            "org.apache.spark.sql.catalyst.catalog.CatalogTable",
            "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan",
            "org.apache.spark.sql.catalyst.analysis.NamedRelation",
            "org.apache.spark.sql.connector.catalog.Table");

    @Test
    void everyCommandOfSparkIsListedOrNamesItsTableWhereItIsLookedFor() throws Exception {
        Set<String> unknown = new TreeSet<>();
        int seen = 0;
        for (Class<?> anchor : List.of(Command.class, RunnableCommand.class)) {
            File file = new File(
                    anchor.getProtectionDomain().getCodeSource().getLocation().toURI());
            JavaClasses classes = new ClassFileImporter()
                    .withImportOption(location -> location.contains("/catalyst/plans/logical/")
                            || location.contains("/sql/execution/command/")
                            || location.contains("/sql/execution/datasources/"))
                    .importJar(new JarFile(file));
            for (JavaClass type : classes) {
                if (type.isAssignableTo(Command.class.getName())
                        && !type.isInterface()
                        && !type.getModifiers().contains(JavaModifier.ABSTRACT)) {
                    seen++;
                    if (type.getFields().stream()
                            .filter(field -> !field.getName().equals("namespace")) // a database, no table
                            .noneMatch(field ->
                                    UNDERSTOOD.contains(field.getRawType().getName()))) {
                        unknown.add(type.getName().replaceFirst("^.*\\.", "").replaceFirst("\\$$", ""));
                    }
                }
            }
        }
        assertTrue(seen > 120, seen + " commands");
        unknown.removeAll(names("statements.json", "statements"));
        assertEquals(names("spark-commands.json", "needNotBeRefused"), unknown);
    }

    private static Set<String> names(String resource, String kind) throws IOException {
        try (InputStream in = Statements.class.getResourceAsStream(resource)) {
            JsonNode found = Json.parse(new String(in.readAllBytes(), StandardCharsets.UTF_8))
                    .path(kind);
            Set<String> names = new TreeSet<>();
            found.fieldNames().forEachRemaining(names::add);
            return names;
        }
    }
}
