package io.hudioperator;

import static com.tngtech.archunit.base.DescribedPredicate.alwaysTrue;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Enforces the layers of the packages. Each package-info.java says what its package may use. */
class HouseTest {
    private static final Path REPOSITORY = Path.of("../..");
    /**
     * Where classes of the root are named: property values in the operator and the runtime, and
     * py4j calls of the runtime.
     */
    private static final List<String> CONFIGURATION = List.of("operator", "spark-images/hudi_runtime");

    private static final Pattern NAMED = Pattern.compile("\\bio\\.hudioperator\\.([A-Z]\\w*)");

    private static final JavaClasses CLASSES = new ClassFileImporter()
            .withImportOption(location -> !location.contains("/test-classes/"))
            .importPackages("io.hudioperator");

    @Test
    void eachPackageUsesOnlyWhatIsBelowIt() {
        // spotless:off
        layeredArchitecture()
                .consideringOnlyDependenciesInLayers()
                .layer("rpc").definedBy("io.hudioperator.rpc..")
                .layer("contract").definedBy("io.hudioperator.contract..")
                .layer("etcd").definedBy("io.hudioperator.etcd..")
                .layer("protocol").definedBy("io.hudioperator.protocol..")
                .layer("workarounds").definedBy("io.hudioperator.workarounds..")
                .layer("session").definedBy("io.hudioperator.session..")
                .layer("timeline").definedBy("io.hudioperator.timeline..")
                .layer("commit").definedBy("io.hudioperator.commit..")
                .layer("statements").definedBy("io.hudioperator.statements..")
                .layer("catalog").definedBy("io.hudioperator.catalog..")
                .layer("databases").definedBy("io.hudioperator.databases..")
                .layer("programs").definedBy("io.hudioperator.programs..")
                .layer("testing").definedBy("io.hudioperator.testing..")
                .layer("root").definedBy("io.hudioperator")
                .whereLayer("contract").mayNotAccessAnyLayer()
                .whereLayer("etcd").mayOnlyAccessLayers("contract", "rpc")
                .whereLayer("protocol").mayOnlyAccessLayers("contract", "etcd")
                .whereLayer("workarounds").mayNotAccessAnyLayer()
                .whereLayer("session").mayOnlyAccessLayers("contract", "etcd", "protocol", "workarounds")
                .whereLayer("timeline").mayOnlyAccessLayers("contract", "protocol", "session")
                .whereLayer("commit").mayOnlyAccessLayers("contract", "protocol", "session", "timeline")
                .whereLayer("statements").mayOnlyAccessLayers("contract", "session")
                .whereLayer("catalog").mayNotAccessAnyLayer()
                .whereLayer("catalog").mayNotBeAccessedByAnyLayer()
                .whereLayer("databases").mayNotAccessAnyLayer()
                .whereLayer("databases").mayNotBeAccessedByAnyLayer()
                .whereLayer("programs").mayNotAccessAnyLayer()
                .whereLayer("programs").mayNotBeAccessedByAnyLayer()
                .whereLayer("testing").mayOnlyAccessLayers("timeline")
                .whereLayer("testing").mayNotBeAccessedByAnyLayer()
                .whereLayer("root").mayNotBeAccessedByAnyLayer()
                .whereLayer("rpc").mayOnlyBeAccessedByLayers("etcd")
                .ensureAllClassesAreContainedInArchitectureIgnoring("io.hudioperator.shaded..")
                .check(CLASSES);
        // spotless:on
    }

    @Test
    void noClassesUseEachOtherInACircle() {
        slices().assignedFrom(byOutermostClass()).should().beFreeOfCycles().check(CLASSES);
    }

    /** Groups a nested class with its outermost class. Generated classes are ignored. */
    private static SliceAssignment byOutermostClass() {
        return new SliceAssignment() {
            @Override
            public SliceIdentifier getIdentifierOf(JavaClass javaClass) {
                boolean generated = resideInAPackage("io.hudioperator.rpc..").test(javaClass);
                String name = javaClass.getName();
                int nested = name.indexOf('$');
                return generated
                        ? SliceIdentifier.ignore()
                        : SliceIdentifier.of(nested < 0 ? name : name.substring(0, nested));
            }

            @Override
            public String getDescription() {
                return "outermost classes";
            }
        };
    }

    /**
     * Hudi, Hadoop and Spark change with their versions, so the etcd client must not depend on
     * them.
     */
    @Test
    void etcdsClientKnowsNothingOfTables() {
        noClasses()
                .that()
                .resideInAPackage("io.hudioperator.etcd..")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage("org.apache.hadoop..", "org.apache.spark..")
                .check(CLASSES);
    }

    @Test
    void theRootHoldsWhatConfigurationNamesAndNothingElse() {
        Set<String> root = CLASSES.that(alwaysTrue()).stream()
                .filter(c -> c.getPackageName().equals("io.hudioperator")
                        && c.isTopLevelClass()
                        && !c.getSimpleName().equals("package-info"))
                .map(JavaClass::getSimpleName)
                .collect(Collectors.toCollection(TreeSet::new));
        assertEquals(named(), root);
    }

    private static Set<String> named() {
        Set<String> names = new TreeSet<>();
        for (String folder : CONFIGURATION) {
            try (Stream<Path> files = Files.walk(REPOSITORY.resolve(folder))) {
                files.filter(f -> f.toString().endsWith(".py")).forEach(f -> collect(f, names));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        return names;
    }

    private static void collect(Path file, Set<String> names) {
        try {
            Matcher m = NAMED.matcher(Files.readString(file));
            while (m.find()) {
                names.add(m.group(1));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
