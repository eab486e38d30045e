/**
 * The lock protocol of {@code docs/design/protocol.md}: each transaction in one place with its
 * compares, the heartbeat, the queue, the gate, and one cycle of the lock.
 *
 * <p>It uses {@code contract} and {@code etcd}. It decides nothing about files of a table, except
 * for the marker that names the lock's authority. It guarantees: the lock has one owner (I1); a
 * fenced incarnation never acts again (I2); a completed file is published only under the token and
 * for an own pending instant (I3, I7); the lock is kept while a publication is unknown (I8); times
 * only grow (I10); a failed or unanswered call decides nothing (I11); an instant of a table service
 * has one executor (I12).
 */
package io.hudioperator.protocol;
