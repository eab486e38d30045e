package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The jar shares a class path with Spark, so it must not contain classes or resources under names
 * that another jar uses. Runs after the jar is built.
 */
class JarIT {
    private JarFile jar;

    @BeforeEach
    void open() throws IOException {
        jar = new JarFile(System.getProperty("jar.under.test"));
    }

    @AfterEach
    void close() throws IOException {
        jar.close();
    }

    private List<String> names() {
        return jar.stream().map(e -> e.getName()).filter(n -> !n.endsWith("/")).collect(Collectors.toList());
    }

    @Test
    void everythingIsBelowOurPackage() {
        List<String> foreign = names().stream()
                .filter(n -> !n.startsWith("io/hudioperator/") && !n.startsWith("META-INF/"))
                .collect(Collectors.toList());
        assertEquals(List.of(), foreign);
    }

    @Test
    void noNativesNoSignaturesNoProtoFiles() {
        List<String> unwanted = names().stream()
                .filter(n -> n.matches(".*\\.(so|dll|jnilib|dylib|proto|SF|RSA|DSA)")
                        || n.startsWith("META-INF/native")
                        || n.startsWith("META-INF/versions"))
                .collect(Collectors.toList());
        assertEquals(List.of(), unwanted);
    }

    @Test
    void whatIsLoadedByNameIsThere() {
        for (String name : List.of(
                "io/hudioperator/contract/protocol.json",
                "io/hudioperator/contract/hudi_options.tsv",
                "io/hudioperator/EtcdLockProvider.class",
                "io/hudioperator/FencedConflictResolutionStrategy.class",
                "io/hudioperator/GuardedFileSystem.class",
                "io/hudioperator/testing/GuardedLocalFileSystem.class",
                "io/hudioperator/HudiOperatorPlugin.class",
                "META-INF/services/io.hudioperator.shaded.io.grpc.LoadBalancerProvider",
                "META-INF/services/io.hudioperator.shaded.io.grpc.NameResolverProvider")) {
            assertNotNull(jar.getEntry(name), name);
        }
        assertTrue(names().stream().noneMatch(n -> n.startsWith("META-INF/services/io.grpc")));
    }
}
