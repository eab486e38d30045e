package io.hudioperator.etcd;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/**
 * Shows the pod's token with each call. The kubelet replaces the file long before the token in it
 * expires, so it is read again every {@link #READ_AGAIN_NANOS}; while it cannot be read, the last
 * one that was read is shown.
 */
final class BearerToken implements ClientInterceptor {
    static final long READ_AGAIN_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final Metadata.Key<String> AUTHORIZATION =
            Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

    private final Path file;
    private final long readAgainNanos;
    private String header;
    private long readAt;

    BearerToken(Path file, long readAgainNanos) throws IOException {
        this.file = file;
        this.readAgainNanos = readAgainNanos;
        this.header = read();
        this.readAt = System.nanoTime();
    }

    private String read() throws IOException {
        String token = Files.readString(file).trim();
        if (token.isEmpty()) {
            throw new IOException("no token in " + file);
        }
        return "Bearer " + token;
    }

    private synchronized String header() {
        if (System.nanoTime() - readAt >= readAgainNanos) {
            readAt = System.nanoTime();
            try {
                header = read();
            } catch (IOException e) {
                // It is being replaced, or gone with the pod's volume: the last token counts until
                // it expires.
            }
        }
        return header;
    }

    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
        return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
            @Override
            public void start(Listener<R> listener, Metadata headers) {
                headers.put(AUTHORIZATION, header());
                super.start(listener, headers);
            }
        };
    }
}
