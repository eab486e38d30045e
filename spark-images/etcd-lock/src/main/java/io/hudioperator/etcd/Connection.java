package io.hudioperator.etcd;

import io.grpc.ManagedChannel;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.NegotiationType;
import io.grpc.netty.NettyChannelBuilder;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.rpc.ResponseHeader;
import io.netty.channel.ChannelOption;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * One etcd as this process reaches it: a channel for each endpoint, with the stream on which leases
 * are kept alive there, and what the answers have shown of etcd. The clients of a process share
 * one. It is closed with the last of them, so the end of one session takes nothing from the others.
 */
final class Connection {
    /**
     * A pod that was replaced has another address, and nobody answers at the old one. Until the
     * connection is given up, and in gRPC's pauses between two attempts, which grow to two minutes,
     * no heartbeat arrives; so both must be shorter than a lease. Two attempts a second: after an
     * outage all drivers come at once.
     */
    private static final int CONNECT_MILLIS = 2000;

    private static final long CONNECT_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    /**
     * grpc logs at INFO that epoll is missing (the jar has no natives). The reference keeps the
     * logger, and so its level, from being garbage-collected.
     */
    private static final Logger TRANSPORT_LOG = quiet();

    /** Connections that are shared, by everything that tells one from another. */
    private static final Map<List<Object>, Connection> SHARED = new HashMap<>();

    private final List<ManagedChannel> channels = new ArrayList<>();
    private final List<KeepAlives> keepAlives = new ArrayList<>();
    private final AtomicLong revision = new AtomicLong();
    private final AtomicLong triedAgain = new AtomicLong(System.nanoTime() - CONNECT_AGAIN_NANOS);
    private volatile String clusterId = "";
    private volatile String setBack;
    private int users;

    private Connection(EtcdSettings settings) {
        boolean made = false;
        try {
            for (String endpoint : settings.endpoints) {
                ManagedChannel channel = channel(endpoint, settings);
                channels.add(channel);
                keepAlives.add(new KeepAlives(channel));
            }
            made = true;
        } finally {
            if (!made) {
                channels.forEach(ManagedChannel::shutdownNow);
            }
        }
    }

    /** A connection that nobody else uses. */
    static Connection own(EtcdSettings settings) {
        Connection made = new Connection(settings);
        made.users = 1;
        return made;
    }

    /** The connection of this process to these endpoints, as who these settings say. */
    static Connection shared(EtcdSettings settings) {
        synchronized (SHARED) {
            Connection found = SHARED.computeIfAbsent(sharedBy(settings), key -> new Connection(settings));
            found.users++;
            return found;
        }
    }

    private static List<Object> sharedBy(EtcdSettings settings) {
        return List.of(settings.endpoints, settings.ca, settings.cert, settings.key, settings.token);
    }

    /** To be called once by each user. */
    void leave() {
        synchronized (SHARED) {
            users--;
            if (users > 0) {
                return;
            }
            SHARED.values().remove(this);
        }
        channels.forEach(ManagedChannel::shutdownNow);
    }

    ManagedChannel channelAt(int at) {
        return channels.get(Math.floorMod(at, channels.size()));
    }

    KeepAlives keepAlivesAt(int at) {
        return keepAlives.get(Math.floorMod(at, keepAlives.size()));
    }

    /** Ends gRPC's pause before its next attempt to connect, unless that was done just now. */
    void connectAgain(int at) {
        long now = System.nanoTime();
        long last = triedAgain.get();
        if (now - last >= CONNECT_AGAIN_NANOS && triedAgain.compareAndSet(last, now)) {
            channelAt(at).resetConnectBackoff();
        }
    }

    /**
     * The highest revision of the answers so far; a request sent now is not answered at an earlier
     * one.
     */
    long revision() {
        return revision.get();
    }

    /** @param before {@link #revision} when the request was sent */
    void seen(ResponseHeader header, long before) throws EtcdException {
        String cluster = Long.toHexString(header.getClusterId());
        if (!clusterId.isEmpty() && !clusterId.equals(cluster)) {
            setBack = "etcd was cluster " + clusterId + " and is " + cluster + " now: restored from a backup?";
        } else if (header.getRevision() < before) {
            setBack = "etcd's revision went back from " + before + " to " + header.getRevision()
                    + ": restored from a backup?";
        }
        requireNotSetBack();
        clusterId = cluster;
        revision.accumulateAndGet(header.getRevision(), Math::max);
    }

    void requireNotSetBack() throws EtcdException {
        if (setBack != null) {
            throw new EtcdException(EtcdException.Outcome.SET_BACK, setBack, null);
        }
    }

    /** Empty when it was not. */
    String setBack() {
        String found = setBack;
        return found == null ? "" : found;
    }

    String clusterId() {
        return clusterId;
    }

    private static Logger quiet() {
        Logger logger = Logger.getLogger(NettyChannelBuilder.class.getPackageName());
        logger.setLevel(Level.WARNING);
        return logger;
    }

    private static ManagedChannel channel(String endpoint, EtcdSettings settings) {
        URI uri = uri(endpoint);
        NettyChannelBuilder builder = NettyChannelBuilder.forAddress(uri.getHost(), uri.getPort())
                .disableRetry()
                .withOption(ChannelOption.CONNECT_TIMEOUT_MILLIS, CONNECT_MILLIS)
                .keepAliveTime(10, TimeUnit.SECONDS)
                .keepAliveTimeout(3, TimeUnit.SECONDS)
                .idleTimeout(1, TimeUnit.DAYS)
                .maxInboundMessageSize(32 << 20);
        if ("http".equals(uri.getScheme())) {
            if (!settings.token.isEmpty()) {
                throw ErrorCode.OPTION.exception("a token is not sent without TLS: " + endpoint);
            }
            return builder.negotiationType(NegotiationType.PLAINTEXT).build();
        }
        if (!"https".equals(uri.getScheme())) {
            throw ErrorCode.OPTION.exception("etcd endpoint must begin with https://, not " + endpoint);
        }
        try {
            SslContextBuilder ssl = SslContextBuilder.forClient();
            if (!settings.ca.isEmpty()) {
                ssl.trustManager(new TrustedAuthorities(Path.of(settings.ca)));
            }
            if (!settings.cert.isEmpty()) {
                try (InputStream cert = Files.newInputStream(Path.of(settings.cert));
                        InputStream key = PemKey.pkcs8(Path.of(settings.key))) {
                    ssl.keyManager(cert, key);
                }
            }
            if (!settings.token.isEmpty()) {
                builder.intercept(new BearerToken(Path.of(settings.token), BearerToken.READ_AGAIN_NANOS));
            }
            return builder.sslContext(
                            GrpcSslContexts.configure(ssl, SslProvider.JDK).build())
                    .build();
        } catch (IOException | IllegalArgumentException e) {
            throw ErrorCode.OPTION.exception(
                    "cannot use the identity for etcd in " + settings.cert + settings.token + ": " + e.getMessage(), e);
        }
    }

    private static URI uri(String endpoint) {
        try {
            URI uri = new URI(endpoint);
            if (uri.getHost() != null && uri.getPort() > 0) {
                return uri;
            }
        } catch (URISyntaxException e) {
            // refused below
        }
        throw ErrorCode.OPTION.exception("etcd endpoint must be https://host:port, not " + endpoint);
    }
}
