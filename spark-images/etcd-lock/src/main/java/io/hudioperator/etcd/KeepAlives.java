package io.hudioperator.etcd;

import io.grpc.Channel;
import io.grpc.Status;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientResponseObserver;
import io.hudioperator.rpc.LeaseGrpc;
import io.hudioperator.rpc.LeaseKeepAliveRequest;
import io.hudioperator.rpc.LeaseKeepAliveResponse;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * The stream on which all leases of this process are kept alive at one endpoint. etcd answers the
 * requests of a stream one after the other, and each answer names its lease. A stream has one
 * request of a lease at a time, and no other one once an answer was late: so an answer is never
 * taken for one to a request that was sent after it.
 */
final class KeepAlives {
    /**
     * No stream is used for longer. A token is shown when a stream begins, and the kubelet renews
     * it minutes before it expires.
     */
    private static final long LIFE_NANOS = TimeUnit.SECONDS.toNanos(60);

    /** The pause after a stream that ended without an answer, which doubles up to the longest. */
    private static final long FIRST_PAUSE_MILLIS = 50;

    private static final long LONGEST_PAUSE_MILLIS = 500;

    private final Channel channel;
    private Stream current;
    private long pauseMillis = FIRST_PAUSE_MILLIS;
    private long notBefore = System.nanoTime();

    KeepAlives(Channel channel) {
        this.channel = channel;
    }

    /** A request that somebody waits for. */
    static final class Request {
        private final Stream stream;
        private final long lease;
        private final CompletableFuture<Long> answer = new CompletableFuture<>();

        private Request(Stream stream, long lease) {
            this.stream = stream;
            this.lease = lease;
        }

        /** The seconds granted, 0 when the lease is gone; fails when the stream has ended. */
        CompletableFuture<Long> answer() {
            return answer;
        }

        /**
         * Nothing more is sent on this stream: it would wait behind this request, and a late answer
         * to this one would be taken for an answer to the next one of its lease.
         */
        void isLast() {
            stream.leave();
        }

        /** Nobody waits for the answer any more. */
        void giveUp() {
            if (stream != null) {
                stream.givenUp(this);
            }
        }
    }

    /** Sends one request, on a stream that is opened for it where there is none. */
    synchronized Request ask(long lease) {
        if (current != null && (current.isOld() || current.waiting.containsKey(lease))) {
            current.leave();
        }
        if (current == null) {
            long pause = notBefore - System.nanoTime();
            if (pause > 0) {
                Request refused = new Request(null, lease);
                refused.answer.completeExceptionally(Status.UNAVAILABLE
                        .withDescription("the stream for leases ended, and is opened again in "
                                + TimeUnit.NANOSECONDS.toMillis(pause) + " ms")
                        .asRuntimeException());
                return refused;
            }
            current = new Stream();
            current.open();
        }
        return current.ask(lease);
    }

    /** {@code current} or a former one; its fields are guarded by the outer object. */
    private final class Stream implements ClientResponseObserver<LeaseKeepAliveRequest, LeaseKeepAliveResponse> {
        private final long opened = System.nanoTime();
        private final Map<Long, Request> waiting = new HashMap<>();
        private ClientCallStreamObserver<LeaseKeepAliveRequest> requests;
        private boolean answered;

        private void open() {
            LeaseGrpc.newStub(channel)
                    .withDeadlineAfter(2 * LIFE_NANOS, TimeUnit.NANOSECONDS)
                    .leaseKeepAlive(this);
        }

        private boolean isOld() {
            return System.nanoTime() - opened > LIFE_NANOS;
        }

        private Request ask(long lease) {
            Request request = new Request(this, lease);
            waiting.put(lease, request);
            requests.onNext(LeaseKeepAliveRequest.newBuilder().setID(lease).build());
            return request;
        }

        /** Nothing more is sent; answers to what was sent still come. */
        private void leave() {
            synchronized (KeepAlives.this) {
                if (current == this) {
                    current = null;
                    requests.onCompleted();
                }
            }
        }

        private void givenUp(Request request) {
            synchronized (KeepAlives.this) {
                if (waiting.remove(request.lease, request)) {
                    endIfNobodyWaits();
                }
            }
        }

        /** A request before the last one may never be answered. */
        private void endIfNobodyWaits() {
            if (current != this && waiting.isEmpty()) {
                requests.cancel("nobody waits for an answer", null);
            }
        }

        @Override
        public void beforeStart(ClientCallStreamObserver<LeaseKeepAliveRequest> stream) {
            requests = stream;
        }

        @Override
        public void onNext(LeaseKeepAliveResponse response) {
            Request request;
            synchronized (KeepAlives.this) {
                request = waiting.remove(response.getID());
                answered = true;
                pauseMillis = FIRST_PAUSE_MILLIS;
                endIfNobodyWaits();
            }
            if (request != null) {
                request.answer.complete(response.getTTL());
            }
        }

        @Override
        public void onError(Throwable error) {
            ended(error);
        }

        @Override
        public void onCompleted() {
            ended(Status.UNAVAILABLE
                    .withDescription("the stream for leases ended")
                    .asRuntimeException());
        }

        private void ended(Throwable why) {
            List<Request> left;
            synchronized (KeepAlives.this) {
                left = new ArrayList<>(waiting.values());
                waiting.clear();
                if (current == this) {
                    current = null;
                    long pause = ThreadLocalRandom.current().nextLong(pauseMillis / 2, pauseMillis + 1);
                    notBefore = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(pause);
                    pauseMillis = answered ? FIRST_PAUSE_MILLIS : Math.min(2 * pauseMillis, LONGEST_PAUSE_MILLIS);
                }
            }
            left.forEach(request -> request.answer.completeExceptionally(why));
        }
    }
}
