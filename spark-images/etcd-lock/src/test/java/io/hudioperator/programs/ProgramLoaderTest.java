package io.hudioperator.programs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Classes of a user's jars: compiled here, loaded and run as a program's are. */
class ProgramLoaderTest {
    @TempDir
    Path folder;

    /** A jar with the classes of these sources, by their names. */
    private Path jar(Map<String, String> sources) throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        List<String> arguments =
                new ArrayList<>(List.of("-d", folder.resolve("classes").toString()));
        for (Map.Entry<String, String> source : sources.entrySet()) {
            Path file = folder.resolve("src").resolve(source.getKey().replace('.', '/') + ".java");
            Files.createDirectories(file.getParent());
            arguments.add(Files.writeString(file, source.getValue()).toString());
        }
        assertEquals(0, compiler.run(null, null, null, arguments.toArray(new String[0])));
        Path jar = folder.resolve("program.jar");
        try (OutputStream out = Files.newOutputStream(jar);
                ZipOutputStream zip = new ZipOutputStream(out);
                var files = Files.walk(folder.resolve("classes"))) {
            for (Path file : (Iterable<Path>) files.filter(Files::isRegularFile)::iterator) {
                zip.putNextEntry(
                        new ZipEntry(folder.resolve("classes").relativize(file).toString()));
                zip.write(Files.readAllBytes(file));
            }
        }
        return jar;
    }

    private ProgramLoader loader(Map<String, String> sources) throws IOException {
        return new ProgramLoader(
                new URL[] {jar(sources).toUri().toURL()}, getClass().getClassLoader());
    }

    private static String program(String body) {
        return "package mine; public class Main { public static void main(String[] a) throws Exception {" + body
                + "} }";
    }

    private Program run(String body, String... arguments) throws Exception {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        Thread.currentThread().setContextClassLoader(loader(Map.of("mine.Main", program(body))));
        try {
            Program program = Program.start("mine.Main", List.of(arguments));
            assertTrue(program.isOver(30_000));
            return program;
        } finally {
            Thread.currentThread().setContextClassLoader(before);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "System.exit(7);",
                "Runtime.getRuntime().exit(7);",
                "Runtime.getRuntime().halt(7);",
                "java.util.function.IntConsumer end = System::exit; end.accept(7);",
                "java.util.function.IntConsumer end = Runtime.getRuntime()::halt; end.accept(7);",
                "scala.sys.package$.MODULE$.exit(7);",
                "try { System.exit(7); } finally { System.exit(8); }",
                "try { System.exit(7); } catch (Exception e) { System.exit(8); }",
                "try { System.exit(7); } catch (Throwable e) { throw new IllegalStateException(e); }",
                "Thread t = new Thread(() -> System.exit(7)); t.start(); Thread.sleep(60000);",
            })
    void anExitEndsTheProgramAndNotTheJvm(String body) throws Exception {
        Program program = run(body);
        program.rethrow();
        assertEquals(7, program.exitCode());
    }

    @Test
    void whatAProgramThrowsIsThrown() throws Exception {
        Program program = run("throw new java.io.IOException(a[0] + a.length);", "no", "way");
        assertNull(program.exitCode());
        assertEquals("no2", assertThrows(IOException.class, program::rethrow).getMessage());
        Program broken = run("throw new NoClassDefFoundError(\"gone\");");
        assertTrue(assertThrows(IllegalStateException.class, broken::rethrow)
                .getMessage()
                .endsWith("gone"));
    }

    @Test
    void whatIsNoMainClassIsTold() throws Exception {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        Thread.currentThread()
                .setContextClassLoader(loader(Map.of(
                        "mine.A", "package mine; public class A { public void main(String[] a) {} }",
                        "mine.B", "package mine; public class B { public static int main(String[] a) { return 0; } }",
                        "mine.C", "package mine; public class C { }")));
        try {
            for (String name : List.of("mine.A", "mine.B", "mine.C")) {
                assertEquals(
                        name + " has no public static void main(String[])",
                        assertThrows(IllegalArgumentException.class, () -> Program.start(name, List.of()))
                                .getMessage());
            }
            assertEquals(
                    "mine.D is in none of the program's jars, nor in the image",
                    assertThrows(IllegalArgumentException.class, () -> Program.start("mine.D", List.of()))
                            .getMessage());
        } finally {
            Thread.currentThread().setContextClassLoader(before);
        }
    }

    @Test
    void classesOfTheImageComeFirst() throws Exception {
        ProgramLoader loader = loader(Map.of(
                "io.hudioperator.programs.Artifacts",
                "package io.hudioperator.programs; public class Artifacts {}",
                "mine.Other",
                "package mine; public class Other {}"));
        assertSame(Artifacts.class, loader.loadClass(Artifacts.class.getName()));
        Class<?> other = loader.loadClass("mine.Other");
        assertSame(loader, other.getClassLoader());
        assertEquals("mine", other.getPackage().getName());
        assertNotSame(other, new ProgramLoader(loader.getURLs(), null).loadClass("mine.Other"));
    }

    @Test
    void anythingElseIsClosed() throws Exception {
        ProgramLoader loader = loader(Map.of(
                "mine.Closes",
                "package mine; public class Closes implements java.util.concurrent.Callable<String> {\n"
                        + "  static String said = \"\";\n"
                        + "  public String call() throws Exception {\n"
                        + "    java.io.Closeable one = () -> said += \"one \";\n"
                        + "    AutoCloseable two = () -> said += \"two\";\n"
                        + "    try (two; one) { said += \"in \"; }\n"
                        + "    return said;\n"
                        + "  } }"));
        Callable<?> closes = (Callable<?>)
                loader.loadClass("mine.Closes").getDeclaredConstructor().newInstance();
        assertEquals("in one two", closes.call());
    }

    @Test
    void aJarWithClassesOfTheImageIsRefused() throws Exception {
        for (String name : List.of(
                "org/apache/hudi/A.class", "META-INF/versions/11/org/apache/hudi/A.class", "io/hudioperator/A.class")) {
            Path jar = folder.resolve("refused.jar");
            try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(jar))) {
                zip.putNextEntry(new ZipEntry("mine/B.class"));
                zip.putNextEntry(new ZipEntry(name));
            }
            String told = assertThrows(IllegalArgumentException.class, () -> Artifacts.requireJar(jar.toString()))
                    .getMessage();
            assertTrue(told.contains(name), told);
        }
        Artifacts.requireJar(jar(Map.of("mine.A", "package mine; class A {}")).toString());
        Path text = Files.writeString(folder.resolve("text.jar"), "no jar");
        assertThrows(IllegalArgumentException.class, () -> Artifacts.requireJar(text.toString()));
    }
}
