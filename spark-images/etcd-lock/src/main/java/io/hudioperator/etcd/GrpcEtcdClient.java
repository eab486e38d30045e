package io.hudioperator.etcd;

import com.google.common.util.concurrent.ListenableFuture;
import com.google.protobuf.ByteString;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.NegotiationType;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ClientResponseObserver;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TableKeys;
import io.hudioperator.rpc.Compare;
import io.hudioperator.rpc.DeleteRangeRequest;
import io.hudioperator.rpc.Event;
import io.hudioperator.rpc.KVGrpc;
import io.hudioperator.rpc.LeaseGrantRequest;
import io.hudioperator.rpc.LeaseGrpc;
import io.hudioperator.rpc.LeaseKeepAliveRequest;
import io.hudioperator.rpc.LeaseKeepAliveResponse;
import io.hudioperator.rpc.LeaseRevokeRequest;
import io.hudioperator.rpc.PutRequest;
import io.hudioperator.rpc.RangeRequest;
import io.hudioperator.rpc.RequestOp;
import io.hudioperator.rpc.ResponseHeader;
import io.hudioperator.rpc.ResponseOp;
import io.hudioperator.rpc.RpcKeyValue;
import io.hudioperator.rpc.TxnRequest;
import io.hudioperator.rpc.TxnResponse;
import io.hudioperator.rpc.WatchCreateRequest;
import io.hudioperator.rpc.WatchGrpc;
import io.hudioperator.rpc.WatchRequest;
import io.hudioperator.rpc.WatchResponse;
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
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * etcd over grpc-java: one channel for each endpoint. Calls stay with one endpoint until it fails.
 * A round robin would return to a half-open endpoint again and again (measured: outages of 6 s
 * instead of 2 s).
 */
public final class GrpcEtcdClient implements EtcdClient {
    private static final int RANGE_LIMIT = 10_000;

    /** What the gateway's refusal of a time says (gateway/clock.go). */
    private static final String CLOCK_RULE = "(rule clock)";

    /**
     * A pod that was replaced has another address, and nobody answers at the old one. Until the
     * connection is given up, and in gRPC's pauses between two attempts, which grow to two minutes,
     * no heartbeat arrives; so both must be shorter than a lease. Two attempts a second: after an
     * outage all drivers come at once.
     */
    private static final int CONNECT_MILLIS = 2000;

    private static final long CONNECT_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    private static final Metadata.Key<String> HAS_LEADER =
            Metadata.Key.of("hasleader", Metadata.ASCII_STRING_MARSHALLER);

    /**
     * grpc logs at INFO that epoll is missing (the jar has no natives). The reference keeps the
     * logger, and so its level, from being garbage-collected.
     */
    private static final Logger TRANSPORT_LOG = quiet();

    private final List<ManagedChannel> channels = new ArrayList<>();
    private final AtomicInteger current = new AtomicInteger();
    private final long timeoutMillis;
    private final AtomicLong revision = new AtomicLong();
    private final AtomicLong triedAgain = new AtomicLong(System.nanoTime() - CONNECT_AGAIN_NANOS);
    private volatile String clusterId = "";
    private volatile String setBack;

    public GrpcEtcdClient(EtcdSettings settings) {
        this.timeoutMillis = settings.rpcTimeout.toMillis();
        for (String endpoint : settings.endpoints) {
            channels.add(channel(endpoint, settings));
        }
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

    @Override
    public Txn.Result txn(Txn txn) throws EtcdException {
        TxnRequest.Builder request = TxnRequest.newBuilder();
        txn.compares.forEach(c -> request.addCompare(compare(c)));
        txn.then.forEach(op -> request.addSuccess(operation(op)));
        txn.otherwise.forEach(op -> request.addFailure(operation(op)));
        requireNotSetBack();
        long before = revision.get(); // the answer to a request sent now cannot be older (linearizable)
        TxnResponse answer = unary(KVGrpc.getTxnMethod(), request.build());
        seen(answer.getHeader(), before);
        List<List<KeyValue>> reads = new ArrayList<>();
        for (ResponseOp op : answer.getResponsesList()) {
            if (op.hasResponseRange()) {
                if (op.getResponseRange().getMore()) { // a part of the keys would be taken for all keys (F38, I11)
                    throw new EtcdException(
                            EtcdException.Outcome.REFUSED,
                            "etcd: a range has more than " + RANGE_LIMIT + " keys",
                            null);
                }
                List<KeyValue> found = new ArrayList<>();
                op.getResponseRange().getKvsList().forEach(kv -> found.add(keyValue(kv)));
                reads.add(found);
            }
        }
        return new Txn.Result(answer.getSucceeded(), answer.getHeader().getRevision(), reads);
    }

    @Override
    public long grantLease(long ttlSeconds) throws EtcdException {
        return unary(
                        LeaseGrpc.getLeaseGrantMethod(),
                        LeaseGrantRequest.newBuilder().setTTL(ttlSeconds).build())
                .getID();
    }

    @Override
    public void revoke(long lease) throws EtcdException {
        try {
            unary(
                    LeaseGrpc.getLeaseRevokeMethod(),
                    LeaseRevokeRequest.newBuilder().setID(lease).build());
        } catch (EtcdException e) {
            if (e.outcome() != EtcdException.Outcome.LEASE_GONE) {
                throw e;
            }
        }
    }

    @Override
    public long keepAlive(long lease) throws EtcdException {
        int at = current.get();
        CompletableFuture<Long> answer = new CompletableFuture<>();
        StreamObserver<LeaseKeepAliveRequest> requests = LeaseGrpc.newStub(channelAt(at))
                .withDeadlineAfter(timeoutMillis, TimeUnit.MILLISECONDS)
                .leaseKeepAlive(new StreamObserver<LeaseKeepAliveResponse>() {
                    @Override
                    public void onNext(LeaseKeepAliveResponse response) {
                        answer.complete(response.getTTL());
                    }

                    @Override
                    public void onError(Throwable error) {
                        answer.completeExceptionally(error);
                    }

                    @Override
                    public void onCompleted() {
                        answer.completeExceptionally(Status.UNAVAILABLE
                                .withDescription("stream ended")
                                .asRuntimeException());
                    }
                });
        requests.onNext(LeaseKeepAliveRequest.newBuilder().setID(lease).build());
        requests.onCompleted();
        return await(answer, at);
    }

    @Override
    public Watch watch(List<String> keys, WatchListener listener) {
        Metadata headers = new Metadata();
        headers.put(HAS_LEADER, "true");
        Channel channel = ClientInterceptors.intercept(
                channelAt(current.get()), MetadataUtils.newAttachHeadersInterceptor(headers));
        WatchStream stream = new WatchStream(keys, listener);
        WatchGrpc.newStub(channel).watch(stream);
        stream.open();
        return stream;
    }

    @Override
    public String clusterId() {
        return clusterId;
    }

    @Override
    public void close() {
        channels.forEach(ManagedChannel::shutdownNow);
    }

    private ManagedChannel channelAt(int at) {
        return channels.get(Math.floorMod(at, channels.size()));
    }

    private void seen(ResponseHeader header, long before) throws EtcdException {
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

    private void requireNotSetBack() throws EtcdException {
        if (setBack != null) {
            throw new EtcdException(EtcdException.Outcome.SET_BACK, setBack, null);
        }
    }

    @Override
    public boolean setBack() {
        return setBack != null;
    }

    private <Q, R> R unary(MethodDescriptor<Q, R> method, Q request) throws EtcdException {
        int at = current.get();
        CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(timeoutMillis, TimeUnit.MILLISECONDS);
        ListenableFuture<R> answer = ClientCalls.futureUnaryCall(channelAt(at).newCall(method, options), request);
        return await(answer, at);
    }

    /** Waits without being interruptible. The call's own deadline ends the wait. */
    private <R> R await(Future<R> answer, int at) throws EtcdException {
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return answer.get(timeoutMillis + 1000, TimeUnit.MILLISECONDS);
                } catch (InterruptedException e) {
                    interrupted = true;
                } catch (TimeoutException e) {
                    throw failed(Status.DEADLINE_EXCEEDED.withDescription("no answer"), e, at);
                } catch (ExecutionException e) {
                    throw failed(Status.fromThrowable(e.getCause()), e.getCause(), at);
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private EtcdException failed(Status status, Throwable cause, int at) {
        EtcdException.Outcome outcome = outcome(status);
        if (outcome == EtcdException.Outcome.UNKNOWN) {
            current.compareAndSet(at, at + 1);
        }
        if (status.getCode() == Status.Code.UNAVAILABLE) {
            connectAgain(at);
        }
        return new EtcdException(
                outcome, "etcd: " + status.getCode() + " " + String.valueOf(status.getDescription()), cause);
    }

    private void connectAgain(int at) {
        long now = System.nanoTime();
        long last = triedAgain.get();
        if (now - last >= CONNECT_AGAIN_NANOS && triedAgain.compareAndSet(last, now)) {
            channelAt(at).resetConnectBackoff();
        }
    }

    private static EtcdException.Outcome outcome(Status status) {
        String text = String.valueOf(status.getDescription());
        switch (status.getCode()) {
            case NOT_FOUND:
                return text.contains("lease not found")
                        ? EtcdException.Outcome.LEASE_GONE
                        : EtcdException.Outcome.REFUSED;
            case PERMISSION_DENIED:
                return EtcdException.Outcome.DENIED;
            case UNAUTHENTICATED:
                // A token that this gateway takes for expired or not yet valid: its clock may be
                // wrong, and the next endpoint's right (F413)
                return EtcdException.Outcome.UNKNOWN;
            case INVALID_ARGUMENT:
                return text.contains("auth") || text.contains("user name is empty")
                        ? EtcdException.Outcome.DENIED
                        : EtcdException.Outcome.REFUSED;
            case FAILED_PRECONDITION:
                return text.contains(CLOCK_RULE) ? EtcdException.Outcome.CLOCK_AHEAD : EtcdException.Outcome.REFUSED;
            case OUT_OF_RANGE:
            case UNIMPLEMENTED:
                return EtcdException.Outcome.REFUSED;
            case RESOURCE_EXHAUSTED:
                return text.contains("database space exceeded")
                        ? EtcdException.Outcome.REFUSED
                        : EtcdException.Outcome.UNKNOWN;
            default:
                return EtcdException.Outcome.UNKNOWN;
        }
    }

    private static ByteString bytes(String text) {
        return ByteString.copyFromUtf8(text);
    }

    private static KeyValue keyValue(RpcKeyValue kv) {
        return new KeyValue(
                kv.getKey().toStringUtf8(),
                kv.getValue().toStringUtf8(),
                kv.getCreateRevision(),
                kv.getModRevision(),
                kv.getLease());
    }

    private static Compare compare(Txn.Compare c) {
        Compare.Builder compare = Compare.newBuilder()
                .setKey(bytes(c.key))
                .setResult(c.greater ? Compare.CompareResult.GREATER : Compare.CompareResult.EQUAL);
        switch (c.target) {
            case VERSION:
                return compare.setTarget(Compare.CompareTarget.VERSION)
                        .setVersion(c.number)
                        .build();
            case CREATE:
                return compare.setTarget(Compare.CompareTarget.CREATE)
                        .setCreateRevision(c.number)
                        .build();
            case MOD:
                return compare.setTarget(Compare.CompareTarget.MOD)
                        .setModRevision(c.number)
                        .build();
            default:
                return compare.setTarget(Compare.CompareTarget.VALUE)
                        .setValue(bytes(c.value))
                        .build();
        }
    }

    private static RequestOp operation(Txn.Op op) {
        RequestOp.Builder request = RequestOp.newBuilder();
        switch (op.kind) {
            case PUT:
                return request.setRequestPut(PutRequest.newBuilder()
                                .setKey(bytes(op.key))
                                .setValue(bytes(op.value))
                                .setLease(op.lease))
                        .build();
            case DELETE:
                return request.setRequestDeleteRange(
                                DeleteRangeRequest.newBuilder().setKey(bytes(op.key)))
                        .build();
            case RANGE:
                return request.setRequestRange(RangeRequest.newBuilder()
                                .setKey(bytes(op.key))
                                .setRangeEnd(bytes(TableKeys.rangeEnd(op.key)))
                                .setLimit(RANGE_LIMIT))
                        .build();
            default:
                return request.setRequestRange(RangeRequest.newBuilder().setKey(bytes(op.key)))
                        .build();
        }
    }

    /** One stream with one watch for each key. */
    private static final class WatchStream implements Watch, ClientResponseObserver<WatchRequest, WatchResponse> {
        private final List<String> keys;
        private final WatchListener listener;
        private final AtomicInteger missing;
        private final AtomicBoolean ended = new AtomicBoolean();
        private ClientCallStreamObserver<WatchRequest> requests;

        WatchStream(List<String> keys, WatchListener listener) {
            this.keys = keys;
            this.listener = listener;
            this.missing = new AtomicInteger(keys.size());
        }

        void open() {
            for (String key : keys) {
                requests.onNext(WatchRequest.newBuilder()
                        .setCreateRequest(WatchCreateRequest.newBuilder().setKey(bytes(key)))
                        .build());
            }
        }

        @Override
        public void beforeStart(ClientCallStreamObserver<WatchRequest> stream) {
            requests = stream;
        }

        @Override
        public void onNext(WatchResponse response) {
            if (response.getCanceled()) {
                lost("watch cancelled: " + response.getCancelReason());
                return;
            }
            if (response.getCreated() && missing.decrementAndGet() == 0) {
                listener.created();
            }
            for (Event event : response.getEventsList()) {
                KeyValue kv = keyValue(event.getKv());
                if (event.getType() == Event.EventType.DELETE) {
                    listener.deleted(kv.key(), kv.modRevision());
                } else {
                    listener.put(kv);
                }
            }
        }

        @Override
        public void onError(Throwable error) {
            lost(Status.fromThrowable(error).getCode().name());
        }

        @Override
        public void onCompleted() {
            lost("stream ended");
        }

        private void lost(String why) {
            if (ended.compareAndSet(false, true)) {
                listener.lost(why);
            }
        }

        @Override
        public void close() {
            ended.set(true);
            requests.cancel("no longer needed", null);
        }
    }
}
