import java.util.Arrays;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestDescriptor;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs the tests named as {@code Class#method} and prints a line for each. A build tool would take
 * three times as long.
 */
public final class NamedTests {
    private NamedTests() {}

    private static String name(TestSource source) {
        return source instanceof MethodSource
                ? ((MethodSource) source).getClassName() + "#" + ((MethodSource) source).getMethodName()
                : null;
    }

    public static void main(String[] args) {
        Set<String> wanted = Set.of(args);
        PostDiscoveryFilter named = (TestDescriptor d) -> FilterResult.includedIf(
                d.getSource().map(NamedTests::name).map(wanted::contains).orElse(true));
        TestExecutionListener told = new TestExecutionListener() {
            @Override
            public void executionFinished(TestIdentifier test, TestExecutionResult result) {
                String name = test.getSource().map(NamedTests::name).orElse("");
                Throwable error = result.getThrowable().orElse(null);
                if (test.isTest() || error != null) {
                    String said = error == null
                            ? ""
                            : error.getClass().getName() + ": "
                                    + String.valueOf(error.getMessage()).replaceAll("\\s+", " ");
                    System.out.println("NAMED\t" + name + "\t" + result.getStatus() + "\t" + said);
                }
            }
        };
        LauncherFactory.create()
                .execute(
                        LauncherDiscoveryRequestBuilder.request()
                                .selectors(Arrays.stream(args)
                                        .map(a -> a.split("#")[0])
                                        .distinct()
                                        .map(DiscoverySelectors::selectClass)
                                        .collect(Collectors.toList()))
                                .filters(named)
                                .build(),
                        told);
        System.out.flush();
        Runtime.getRuntime().halt(0); // sessions of the tests live on until they see their fence
    }
}
