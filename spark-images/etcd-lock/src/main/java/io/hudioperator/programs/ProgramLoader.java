package io.hudioperator.programs;

import java.io.IOException;
import java.io.InputStream;
import java.net.JarURLConnection;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.URLConnection;
import java.nio.file.Path;
import java.security.CodeSource;
import java.security.cert.Certificate;
import java.util.List;
import java.util.Map;
import java.util.jar.Manifest;
import org.apache.spark.util.MutableURLClassLoader;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.ClassVisitor;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.Handle;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;

/**
 * Loads the classes of a program's jars. The image's class path comes first: no jar of a user
 * replaces a class of the operator, Hudi, Spark or Hadoop. Calls that would end the JVM or Spark
 * lead to {@link ProgramCalls}; a call by reflection is not recognized.
 */
public final class ProgramLoader extends URLClassLoader {
    static final String NAME = "program";

    private static final String CALLS = "io/hudioperator/programs/ProgramCalls";

    /** Class, method and descriptor of each call that is replaced, and the descriptor there. */
    private static final Map<String, String> REPLACED = Map.ofEntries(
            Map.entry("java/lang/System.exit(I)V", "(I)V"),
            Map.entry("java/lang/Runtime.exit(I)V", "(Ljava/lang/Runtime;I)V"),
            Map.entry("java/lang/Runtime.halt(I)V", "(Ljava/lang/Runtime;I)V"),
            Map.entry(
                    "scala/sys/package$.exit(I)Lscala/runtime/Nothing$;",
                    "(Lscala/sys/package$;I)Lscala/runtime/Nothing$;"),
            Map.entry(
                    "scala/sys/package$.exit()Lscala/runtime/Nothing$;",
                    "(Lscala/sys/package$;)Lscala/runtime/Nothing$;"),
            Map.entry("org/apache/spark/sql/SparkSession.stop()V", "(Lorg/apache/spark/sql/SparkSession;)V"),
            Map.entry("org/apache/spark/sql/SparkSession.close()V", "(Lorg/apache/spark/sql/SparkSession;)V"),
            Map.entry("org/apache/spark/SparkContext.stop()V", "(Lorg/apache/spark/SparkContext;)V"),
            Map.entry("org/apache/spark/SparkContext.stop(I)V", "(Lorg/apache/spark/SparkContext;I)V"),
            Map.entry(
                    "org/apache/spark/api/java/JavaSparkContext.stop()V",
                    "(Lorg/apache/spark/api/java/JavaSparkContext;)V"),
            Map.entry(
                    "org/apache/spark/api/java/JavaSparkContext.close()V",
                    "(Lorg/apache/spark/api/java/JavaSparkContext;)V"),
            Map.entry("java/io/Closeable.close()V", "(Ljava/io/Closeable;)V"),
            Map.entry("java/lang/AutoCloseable.close()V", "(Ljava/lang/AutoCloseable;)V"));

    static {
        registerAsParallelCapable();
    }

    ProgramLoader(URL[] jars, ClassLoader parent) {
        super(NAME, jars, parent);
    }

    /**
     * Makes the classes of these files loadable by this thread, and by those that it starts from
     * now on. Call it before the SparkContext is made: Spark loads classes of tasks the same way.
     */
    public static void install(List<String> jars) throws MalformedURLException {
        Thread thread = Thread.currentThread();
        thread.setContextClassLoader(new ProgramLoader(urls(jars), thread.getContextClassLoader()));
    }

    /**
     * Makes the classes of these files loadable by all threads that Python code reaches, as {@code
     * spark-submit --jars} does. Nothing is replaced in them.
     */
    public static void add(List<String> jars) throws MalformedURLException {
        MutableURLClassLoader loader =
                (MutableURLClassLoader) Thread.currentThread().getContextClassLoader();
        for (URL jar : urls(jars)) {
            loader.addURL(jar);
        }
    }

    private static URL[] urls(List<String> jars) throws MalformedURLException {
        URL[] found = new URL[jars.size()];
        for (int at = 0; at < found.length; at++) {
            found[at] = Path.of(jars.get(at)).toUri().toURL();
        }
        return found;
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        URL place = findResource(name.replace('.', '/') + ".class");
        if (place == null) {
            throw new ClassNotFoundException(name);
        }
        try {
            URLConnection file = place.openConnection();
            byte[] code;
            try (InputStream in = file.getInputStream()) {
                code = replaced(in.readAllBytes());
            }
            definePackage(name, file);
            URL jar = file instanceof JarURLConnection ? ((JarURLConnection) file).getJarFileURL() : place;
            // without the signers: the bytes are not theirs
            return defineClass(name, code, 0, code.length, new CodeSource(jar, (Certificate[]) null));
        } catch (IOException e) {
            throw new ClassNotFoundException(name, e);
        }
    }

    private void definePackage(String className, URLConnection file) throws IOException {
        int end = className.lastIndexOf('.');
        if (end < 0 || getDefinedPackage(className.substring(0, end)) != null) {
            return;
        }
        Manifest manifest = file instanceof JarURLConnection ? ((JarURLConnection) file).getManifest() : null;
        try {
            definePackage(className.substring(0, end), manifest == null ? new Manifest() : manifest, null);
        } catch (IllegalArgumentException e) { // NOPMD - another thread has defined it
        }
    }

    static byte[] replaced(byte[] code) {
        ClassReader reader = new ClassReader(code);
        ClassWriter writer = new ClassWriter(reader, 0);
        reader.accept(new Calls(writer), 0);
        return writer.toByteArray();
    }

    private static final class Calls extends ClassVisitor {
        Calls(ClassVisitor next) {
            super(Opcodes.ASM9, next);
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String type, String signature, String[] thrown) {
            return new MethodVisitor(Opcodes.ASM9, super.visitMethod(access, name, type, signature, thrown)) {
                @Override
                public void visitMethodInsn(int code, String owner, String called, String type, boolean ofInterface) {
                    String there = code == Opcodes.INVOKESPECIAL ? null : REPLACED.get(owner + "." + called + type);
                    if (there == null) {
                        super.visitMethodInsn(code, owner, called, type, ofInterface);
                    } else {
                        super.visitMethodInsn(Opcodes.INVOKESTATIC, CALLS, called, there, false);
                    }
                }

                @Override
                public void visitInvokeDynamicInsn(String called, String type, Handle bootstrap, Object... given) {
                    Object[] now = given.clone();
                    for (int at = 0; at < now.length; at++) {
                        now[at] = now[at] instanceof Handle ? handle((Handle) now[at]) : now[at];
                    }
                    super.visitInvokeDynamicInsn(called, type, bootstrap, now);
                }
            };
        }

        /** A reference to a method, such as {@code System::exit}. */
        private static Handle handle(Handle named) {
            String there = REPLACED.get(named.getOwner() + "." + named.getName() + named.getDesc());
            return there == null ? named : new Handle(Opcodes.H_INVOKESTATIC, CALLS, named.getName(), there, false);
        }
    }
}
