package io.hudioperator.etcd;

import java.util.List;

/**
 * The narrow waist to etcd. Every call is one attempt with a deadline; nothing is retried here, because a repeated call is a second
 * request and only the protocol knows whether that is harmless. Threads that wait are not interruptible: a commit must not lose its
 * answer because a streaming query was stopped.
 */
public interface EtcdClient extends AutoCloseable {

  Txn.Result txn(Txn txn) throws EtcdException;

  /** Id of a new lease. */
  long grantLease(long ttlSeconds) throws EtcdException;

  /** Seconds granted; 0 = the lease does not exist any more. */
  long keepAlive(long lease) throws EtcdException;

  /** A lease that does not exist is already revoked. */
  void revoke(long lease) throws EtcdException;

  /** Watches from "now": a watch from an older revision is served in etcd's 100 ms catch-up loop. Ends by itself with {@code lost}. */
  Watch watch(List<String> keys, WatchListener listener);

  /** Lower-case hexadecimal id of the cluster that answered last; empty before the first answer. */
  String clusterId();

  /** An answer has shown that etcd was set back to an older state, or is another one: no call is made any more. */
  boolean setBack();

  @Override
  void close();

  /** Closing it cancels the watch. */
  interface Watch extends AutoCloseable {
    @Override
    void close();
  }

  /** Called on a transport thread: must not block. */
  interface WatchListener {
    /** All watches of the call stand: every later change will be reported. */
    void created();

    void put(KeyValue kv);

    void deleted(String key, long revision);

    void lost(String why);
  }
}
