/**
 * The etcd client: connection, TLS, transactions, watches. It knows nothing of locks, instants or
 * Hudi's tables.
 *
 * <p>It uses {@code contract} and the generated {@code rpc}; no other package uses {@code rpc}. A
 * call is one attempt, and its outcome is reported unchanged: refused, or unknown and perhaps
 * applied later. Nothing is retried, because only the protocol knows whether a retry is harmless.
 * An etcd that was restored to an older state is never asked again (I1, I2). The sessions of a
 * process share its connections and the stream of their heartbeats; time-outs and answers are each
 * one's own.
 */
package io.hudioperator.etcd;
