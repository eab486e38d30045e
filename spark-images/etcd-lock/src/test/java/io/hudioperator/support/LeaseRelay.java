package io.hudioperator.support;

import io.grpc.Attributes;
import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.ServerTransportFilter;
import io.grpc.Status;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import io.hudioperator.rpc.KVGrpc;
import io.hudioperator.rpc.LeaseGrantRequest;
import io.hudioperator.rpc.LeaseGrantResponse;
import io.hudioperator.rpc.LeaseGrpc;
import io.hudioperator.rpc.LeaseKeepAliveRequest;
import io.hudioperator.rpc.LeaseKeepAliveResponse;
import io.hudioperator.rpc.LeaseRevokeRequest;
import io.hudioperator.rpc.LeaseRevokeResponse;
import io.hudioperator.rpc.TxnRequest;
import io.hudioperator.rpc.TxnResponse;
import io.hudioperator.rpc.WatchGrpc;
import io.hudioperator.rpc.WatchRequest;
import io.hudioperator.rpc.WatchResponse;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongPredicate;

/**
 * Stands before a real etcd, as a gateway does and with its identity, and sees whose leases come on
 * which stream. It counts connections and streams, leaves requests without an answer, and ends
 * streams. All else is etcd's.
 */
public final class LeaseRelay implements AutoCloseable {
    private final ManagedChannel etcd;
    private final Server server;
    private final AtomicInteger connections = new AtomicInteger();
    private final AtomicInteger streams = new AtomicInteger();
    private final Map<Long, Integer> asked = new ConcurrentHashMap<>();
    private final List<Relayed> relayed = new CopyOnWriteArrayList<>();
    private final List<Relayed> withheld = new CopyOnWriteArrayList<>();
    private volatile LongPredicate withholds = lease -> false;
    private volatile boolean blocks;
    private volatile boolean refuses;
    private volatile boolean grantsNothing;

    public LeaseRelay(EtcdServer behind) throws IOException {
        etcd = behind.channel();
        server = NettyServerBuilder.forPort(0)
                .addTransportFilter(new ServerTransportFilter() {
                    @Override
                    public Attributes transportReady(Attributes attributes) {
                        connections.incrementAndGet();
                        return attributes;
                    }

                    @Override
                    public void transportTerminated(Attributes attributes) {
                        connections.decrementAndGet();
                    }
                })
                .addService(new Keys())
                .addService(new Leases())
                .addService(new Watches())
                .build()
                .start();
    }

    public String endpoint() {
        return "http://127.0.0.1:" + server.getPort();
    }

    /** Open connections. */
    public int connections() {
        return connections.get();
    }

    /** Streams of keep-alives that were ever opened. */
    public int streams() {
        return streams.get();
    }

    /** How often that lease was to be kept alive. */
    public int asked(long lease) {
        return asked.getOrDefault(lease, 0);
    }

    /** Requests that were left without an answer. */
    public int withheld() {
        return withheld.size();
    }

    /** From now on requests of these leases have no answer; what comes after them has. */
    public void withhold(LongPredicate leases) {
        blocks = false;
        withholds = leases;
    }

    /**
     * From now on requests of these leases have no answer, nor has what comes after them on their
     * stream, as with a lease that has expired and that etcd has not revoked yet.
     */
    public void block(LongPredicate leases) {
        withhold(leases);
        blocks = true;
    }

    /** From now on nobody who asks for a lease has an answer. */
    public void grantNothing() {
        grantsNothing = true;
    }

    public void grantAgain() {
        grantsNothing = false;
    }

    /** Answers late, on the stream on which it came, what was withheld first. */
    public void answerLate(long lease, long seconds) {
        withheld.get(0)
                .onNext(LeaseKeepAliveResponse.newBuilder()
                        .setID(lease)
                        .setTTL(seconds)
                        .build());
    }

    /** Ends every stream of keep-alives, and, if so, each new one. */
    public void end(boolean eachNewOne) {
        refuses = eachNewOne;
        relayed.forEach(stream -> stream.onError(
                Status.UNAVAILABLE.withDescription("ended by a test").asRuntimeException()));
        relayed.clear();
    }

    @Override
    public void close() {
        server.shutdownNow();
        etcd.shutdownNow();
    }

    private final class Keys extends KVGrpc.KVImplBase {
        @Override
        public void txn(TxnRequest request, StreamObserver<TxnResponse> answer) {
            KVGrpc.newStub(etcd).txn(request, answer);
        }
    }

    private final class Watches extends WatchGrpc.WatchImplBase {
        @Override
        public StreamObserver<WatchRequest> watch(StreamObserver<WatchResponse> answers) {
            return WatchGrpc.newStub(etcd).watch(answers);
        }
    }

    private final class Leases extends LeaseGrpc.LeaseImplBase {
        @Override
        public void leaseGrant(LeaseGrantRequest request, StreamObserver<LeaseGrantResponse> answer) {
            if (!grantsNothing) {
                LeaseGrpc.newStub(etcd).leaseGrant(request, answer);
            }
        }

        @Override
        public void leaseRevoke(LeaseRevokeRequest request, StreamObserver<LeaseRevokeResponse> answer) {
            LeaseGrpc.newStub(etcd).leaseRevoke(request, answer);
        }

        @Override
        public StreamObserver<LeaseKeepAliveRequest> leaseKeepAlive(StreamObserver<LeaseKeepAliveResponse> answers) {
            streams.incrementAndGet();
            Relayed stream = new Relayed(answers);
            ((ServerCallStreamObserver<LeaseKeepAliveResponse>) answers).setOnCancelHandler(stream::cancelled);
            if (refuses) {
                stream.onError(
                        Status.UNAVAILABLE.withDescription("refused by a test").asRuntimeException());
            } else {
                relayed.add(stream);
            }
            return stream.requests(LeaseGrpc.newStub(etcd).leaseKeepAlive(stream));
        }
    }

    /** The answers of one stream: those of etcd, until it has ended. */
    private final class Relayed implements StreamObserver<LeaseKeepAliveResponse> {
        private final StreamObserver<LeaseKeepAliveResponse> answers;
        private boolean ended;

        Relayed(StreamObserver<LeaseKeepAliveResponse> answers) {
            this.answers = answers;
        }

        @Override
        public synchronized void onNext(LeaseKeepAliveResponse answer) {
            if (!ended) {
                answers.onNext(answer);
            }
        }

        @Override
        public synchronized void onError(Throwable error) {
            if (!ended) {
                ended = true;
                answers.onError(error);
            }
        }

        @Override
        public synchronized void onCompleted() {
            if (!ended) {
                ended = true;
                answers.onCompleted();
            }
        }

        /** By the client: nobody is answered any more. */
        private synchronized void cancelled() {
            ended = true;
            relayed.remove(this);
        }

        StreamObserver<LeaseKeepAliveRequest> requests(StreamObserver<LeaseKeepAliveRequest> to) {
            return new StreamObserver<>() {
                private boolean silent;
                private boolean blocked;

                @Override
                public void onNext(LeaseKeepAliveRequest request) {
                    asked.merge(request.getID(), 1, Integer::sum);
                    if (blocked) {
                        return;
                    }
                    if (withholds.test(request.getID())) {
                        silent = true;
                        blocked = blocks;
                        withheld.add(Relayed.this);
                        return;
                    }
                    to.onNext(request);
                }

                @Override
                public void onError(Throwable ofClient) {
                    cancelled();
                }

                @Override
                public void onCompleted() {
                    if (!silent) { // who has no answer is still waiting
                        to.onCompleted();
                    }
                }
            };
        }
    }
}
