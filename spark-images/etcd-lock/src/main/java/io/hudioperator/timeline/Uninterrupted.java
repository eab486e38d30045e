package io.hudioperator.timeline;

import java.io.IOException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Runs requests to a store on threads that are never interrupted. A store's client may answer an
 * interrupt with success while the request is on the wire (S3A: {@code close()} returns while the
 * PUT continues in its own pool), and may continue for minutes (F31). The caller waits for the real
 * answer; its interrupt is restored afterwards.
 */
final class Uninterrupted {
    private static final ExecutorService THREADS = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "hudi-operator-store");
        thread.setDaemon(true);
        return thread;
    });

    private Uninterrupted() {}

    static <T> T run(StoreCall<T> call) throws IOException {
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        Future<T> answer = THREADS.submit(() -> {
            Thread.currentThread().setContextClassLoader(loader);
            return call.run();
        });
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return answer.get();
                } catch (InterruptedException e) {
                    interrupted = true;
                } catch (ExecutionException e) {
                    throw failure(e.getCause());
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static IOException failure(Throwable cause) {
        if (cause instanceof RuntimeException) {
            throw (RuntimeException) cause;
        }
        if (cause instanceof Error) {
            throw (Error) cause;
        }
        return cause instanceof IOException ? (IOException) cause : new IOException(cause);
    }
}
