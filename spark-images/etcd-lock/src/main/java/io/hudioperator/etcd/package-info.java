/**
 * The client of etcd: connection, TLS, transactions, watches. It knows nothing of locks, instants or Hudi's tables.
 *
 * <p>It uses {@code contract} and the generated {@code rpc}, and no other package uses {@code rpc}. Kept here: a call is one attempt, and its
 * outcome is told as it is, refused, or unknown and perhaps applied later (nothing is retried where only the protocol knows whether that is
 * harmless); an etcd that was set back to an older state is never asked again (I1, I2).
 */
package io.hudioperator.etcd;
