package io.hudioperator.programs;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;

/**
 * A program that runs in the driver's JVM: its {@code main}, in a thread of its own, with the
 * driver's Spark session as the active one. It is over when {@code main} has returned or thrown, or
 * when any code of it has asked for the end of the JVM.
 */
public final class Program {
    private static final long LOOK_MILLIS = 100;
    private static final String TASK = "Executor task launch worker";

    /** One in a process. */
    private static volatile Program current;

    private final String mainClass;
    private final CountDownLatch over = new CountDownLatch(1);
    private Thread main;
    private volatile Throwable failure;
    /** The first code that the program has asked to exit with; null: none. */
    private volatile Integer exitCode;

    private Program(String mainClass) {
        this.mainClass = mainClass;
    }

    /**
     * Starts it in a thread that has this one's class loader and active session.
     *
     * @throws IllegalArgumentException when there is no such main class
     */
    public static Program start(String mainClass, List<String> arguments) {
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        Method found = mainOf(mainClass, loader);
        Program program = new Program(mainClass);
        String[] given = arguments.toArray(new String[0]);
        program.main = new Thread(() -> program.run(found, given), "main of " + mainClass);
        program.main.setContextClassLoader(loader);
        program.main.setDaemon(true);
        current = program;
        program.main.start();
        return program;
    }

    private static Method mainOf(String mainClass, ClassLoader loader) {
        Class<?> found;
        try {
            found = Class.forName(mainClass, false, loader);
        } catch (ClassNotFoundException e) {
            throw new IllegalArgumentException(mainClass + " is in none of the program's jars, nor in the image", e);
        } catch (LinkageError e) {
            throw new IllegalArgumentException(mainClass + " cannot be loaded: " + e, e);
        }
        try {
            Method main = found.getMethod("main", String[].class);
            if (Modifier.isStatic(main.getModifiers()) && main.getReturnType() == void.class) {
                main.setAccessible(true); // its class need not be public
                return main;
            }
        } catch (NoSuchMethodException e) { // NOPMD - told below
        }
        throw new IllegalArgumentException(mainClass + " has no public static void main(String[])");
    }

    private void run(Method method, String... arguments) {
        try {
            method.invoke(null, (Object) arguments);
        } catch (InvocationTargetException e) {
            ended(e.getCause());
        } catch (IllegalAccessException | RuntimeException e) {
            ended(e);
        } finally {
            over.countDown();
        }
    }

    private synchronized void ended(Throwable thrown) {
        if (exitCode == null) {
            failure = thrown;
        }
    }

    /** The program asks for the end of the JVM; the first code counts. */
    static ProgramExit exits(int code) {
        Program program = current;
        if (program != null) {
            synchronized (program) {
                if (program.exitCode == null && program.over.getCount() > 0) {
                    program.exitCode = code;
                }
            }
            program.over.countDown();
        }
        return new ProgramExit(code);
    }

    /** Waits up to this long for its end. Returns whether it has ended. */
    public boolean isOver(long millis) throws InterruptedException {
        return over.await(millis, TimeUnit.MILLISECONDS);
    }

    /** Interrupts its main thread. */
    public void interrupt() {
        main.interrupt();
    }

    /**
     * Ends what its other threads still do: Spark's jobs are cancelled, and threads that run code
     * of its jars are interrupted.
     *
     * @return names of those that go on after {@code millis}
     */
    public static List<String> endThreads(SparkContext context, long millis) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        List<Thread> left = atWork();
        if (!left.isEmpty()) {
            context.cancelAllJobs();
            left.forEach(Thread::interrupt);
        }
        while (!left.isEmpty() && System.nanoTime() - end < 0) {
            Thread.sleep(LOOK_MILLIS);
            left = atWork();
        }
        List<String> names = new ArrayList<>();
        left.forEach(thread -> names.add(thread.getName()));
        return names;
    }

    /** Threads that run code of the program's jars, but for Spark's tasks. */
    private static List<Thread> atWork() {
        List<Thread> found = new ArrayList<>();
        Thread.getAllStackTraces().forEach((thread, frames) -> {
            if (!thread.getName().startsWith(TASK)
                    && Arrays.stream(frames).anyMatch(frame -> ProgramLoader.NAME.equals(frame.getClassLoaderName()))) {
                found.add(thread);
            }
        });
        return found;
    }

    /** The code that it has asked to exit with; null: it has not. */
    public Integer exitCode() {
        return exitCode;
    }

    /** Throws what its main method has thrown, if it has. */
    public void rethrow() throws Exception {
        Throwable thrown = failure;
        if (thrown instanceof Exception) {
            throw (Exception) thrown;
        } else if (thrown != null) {
            throw new IllegalStateException(mainClass + ": " + thrown, thrown);
        }
    }
}
