package io.hudioperator.etcd;

import com.google.common.util.concurrent.ListenableFuture;
import com.google.protobuf.ByteString;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ClientResponseObserver;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
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
import io.hudioperator.rpc.ResponseOp;
import io.hudioperator.rpc.RpcKeyValue;
import io.hudioperator.rpc.TxnRequest;
import io.hudioperator.rpc.TxnResponse;
import io.hudioperator.rpc.WatchCreateRequest;
import io.hudioperator.rpc.WatchGrpc;
import io.hudioperator.rpc.WatchRequest;
import io.hudioperator.rpc.WatchResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * etcd over grpc-java. Calls stay with one endpoint until it fails. A round robin would return to a
 * half-open endpoint again and again (measured: outages of 6 s instead of 2 s). A call that is slow
 * or refused for one client affects no other one, although they share their connections.
 */
public final class GrpcEtcdClient implements EtcdClient {
    private static final int RANGE_LIMIT = 10_000;
    private static final int MOST_CAUSES = 10;

    /** Part of the message with which the gateway refuses a time (gateway/clock.go). */
    private static final String CLOCK_RULE = "(rule clock)";

    /** No lease has this id. */
    private static final long NONE = 0;

    /** Maximum time that other leases wait on the stream that all share. */
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(1);

    private static final Metadata.Key<String> HAS_LEADER =
            Metadata.Key.of("hasleader", Metadata.ASCII_STRING_MARSHALLER);

    private final Connection connection;
    private final AtomicInteger current = new AtomicInteger();
    private final long timeoutMillis;
    private final AtomicBoolean closed = new AtomicBoolean();
    private volatile long unanswered = NONE;

    /** A client with its own connection. */
    public GrpcEtcdClient(EtcdSettings settings) {
        this(settings, Connection.own(settings));
    }

    private GrpcEtcdClient(EtcdSettings settings, Connection connection) {
        this.timeoutMillis = settings.rpcTimeout.toMillis();
        this.connection = connection;
    }

    /**
     * A client that shares its connection with the others of this process that ask the same
     * endpoints with the same identity. Time-outs, and the endpoint that it asks, are its own.
     */
    public static GrpcEtcdClient shared(EtcdSettings settings) {
        return new GrpcEtcdClient(settings, Connection.shared(settings));
    }

    @Override
    public Txn.Result txn(Txn txn) throws EtcdException {
        TxnRequest.Builder request = TxnRequest.newBuilder();
        txn.compares.forEach(c -> request.addCompare(compare(c)));
        txn.then.forEach(op -> request.addSuccess(operation(op)));
        txn.otherwise.forEach(op -> request.addFailure(operation(op)));
        connection.requireNotSetBack();
        long before = connection.revision(); // the answer to a request sent now cannot be older (linearizable)
        TxnResponse answer = unary(KVGrpc.getTxnMethod(), request.build());
        connection.seen(answer.getHeader(), before);
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

    /**
     * Asks on the stream that all leases share. etcd answers there in turn, and may be slow with
     * one of them: after {@link #PATIENCE_NANOS} nobody else is sent behind it, and the lease is
     * asked for alone as well. One that had no answer at all is asked for alone until it has one.
     * Every answer is to a request sent during this call.
     */
    @Override
    public long keepAlive(long lease) throws EtcdException {
        int at = current.get();
        requireOpen(at);
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
        if (lease == unanswered) {
            return alone(lease, at, end, new CompletableFuture<>());
        }
        KeepAlives.Request request = connection.keepAlivesAt(at).ask(lease);
        try {
            long patience = Math.min(PATIENCE_NANOS, TimeUnit.MILLISECONDS.toNanos(timeoutMillis) / 3);
            Optional<Long> granted = within(patience, request.answer(), at);
            if (granted.isPresent()) {
                return granted.get();
            }
            request.isLast();
            return alone(lease, at, end, request.answer());
        } finally {
            request.giveUp();
        }
    }

    private long alone(long lease, int at, long end, CompletableFuture<Long> answer) throws EtcdException {
        unanswered = lease;
        StreamObserver<LeaseKeepAliveRequest> requests = LeaseGrpc.newStub(connection.channelAt(at))
                .withDeadlineAfter(end - System.nanoTime(), TimeUnit.NANOSECONDS)
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
        long granted = await(answer, at);
        unanswered = NONE;
        return granted;
    }

    @Override
    public Watch watch(List<String> keys, WatchListener listener) {
        if (closed.get()) {
            listener.lost("this client is closed");
            return () -> {};
        }
        Metadata headers = new Metadata();
        headers.put(HAS_LEADER, "true");
        Channel channel = ClientInterceptors.intercept(
                connection.channelAt(current.get()), MetadataUtils.newAttachHeadersInterceptor(headers));
        WatchStream stream = new WatchStream(keys, listener);
        WatchGrpc.newStub(channel).watch(stream);
        stream.open();
        return stream;
    }

    @Override
    public String clusterId() {
        return connection.clusterId();
    }

    @Override
    public String setBack() {
        return connection.setBack();
    }

    /** Nothing is sent afterwards, although others may still use the connection. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            connection.leave();
        }
    }

    private void requireOpen(int at) throws EtcdException {
        if (closed.get()) {
            throw failed(Status.UNAVAILABLE.withDescription("this client is closed"), null, at);
        }
    }

    private <Q, R> R unary(MethodDescriptor<Q, R> method, Q request) throws EtcdException {
        int at = current.get();
        requireOpen(at);
        CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(timeoutMillis, TimeUnit.MILLISECONDS);
        ListenableFuture<R> answer =
                ClientCalls.futureUnaryCall(connection.channelAt(at).newCall(method, options), request);
        return await(answer, at);
    }

    /** Waits without being interruptible. The call's own deadline ends the wait. */
    private <R> R await(Future<R> answer, int at) throws EtcdException {
        Optional<R> found = within(TimeUnit.MILLISECONDS.toNanos(timeoutMillis + 1000), answer, at);
        if (found.isEmpty()) {
            throw failed(Status.DEADLINE_EXCEEDED.withDescription("no answer"), null, at);
        }
        return found.get();
    }

    /** Waits for so long without being interruptible; empty when there is no answer then. */
    private <R> Optional<R> within(long nanos, Future<R> answer, int at) throws EtcdException {
        long end = System.nanoTime() + nanos;
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return Optional.of(answer.get(end - System.nanoTime(), TimeUnit.NANOSECONDS));
                } catch (InterruptedException e) {
                    interrupted = true;
                } catch (TimeoutException e) {
                    return Optional.empty();
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
            connection.connectAgain(at);
        }
        return new EtcdException(outcome, "etcd: " + status.getCode() + " " + told(status), cause);
    }

    /**
     * Of a connection that fails gRPC says "io exception" and names its own handlers. What has
     * happened, such as a certificate that has ended, is the last of the causes.
     */
    private static String told(Status status) {
        String text = String.valueOf(status.getDescription());
        Throwable root = status.getCause();
        for (int i = 0; i < MOST_CAUSES && root != null && root.getCause() != null; i++) {
            root = root.getCause();
        }
        return root == null
                ? text
                : text.lines().findFirst().orElse("") + ": " + root.getClass().getSimpleName() + ": "
                        + root.getMessage();
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
