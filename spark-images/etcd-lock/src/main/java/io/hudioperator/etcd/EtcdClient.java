package io.hudioperator.etcd;

import java.util.List;

/**
 * The minimal interface to etcd. Every call is one attempt with a deadline. Nothing is retried
 * here: a retry is a second request, and only the protocol knows whether that is harmless. Waiting
 * threads are not interruptible: a commit must not lose its answer because a streaming query was
 * stopped.
 */
public interface EtcdClient extends AutoCloseable {

    Txn.Result txn(Txn txn) throws EtcdException;

    /** Returns the id of a new lease. */
    long grantLease(long ttlSeconds) throws EtcdException;

    /** Returns the seconds granted; 0 when the lease no longer exists. */
    long keepAlive(long lease) throws EtcdException;

    /** Revoking a lease that does not exist succeeds. */
    void revoke(long lease) throws EtcdException;

    /**
     * Watches from "now": etcd would serve a watch from an older revision in its 100 ms catch-up
     * loop. The watch ends by itself with {@code lost}.
     */
    Watch watch(List<String> keys, WatchListener listener);

    /**
     * Lower-case hexadecimal id of the cluster that answered last; empty before the first answer.
     */
    String clusterId();

    /**
     * Message about an answer that shows that etcd was restored to an older state, or is another
     * cluster; empty when there was none. No further call is made then.
     */
    String setBack();

    @Override
    void close();

    /** Closing it cancels the watch. */
    interface Watch extends AutoCloseable {
        @Override
        void close();
    }

    /** Called on a transport thread; must not block. */
    interface WatchListener {
        /** All watches of the call are established: every later change will be reported. */
        void created();

        void put(KeyValue kv);

        void deleted(String key, long revision);

        void lost(String why);
    }
}
