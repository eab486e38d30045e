/**
 * Hudi's lock on etcd, and the storage wrapper that lets nobody change a timeline without it.
 *
 * <p>{@link io.hudioperator.protocol.LockProtocol} has every transaction of the protocol, {@link io.hudioperator.session.Session} the life of one
 * incarnation, {@link io.hudioperator.timeline.TimelineGuard} the rules for timeline files. The names I1 to I12 are the invariants of
 * {@code docs/protocol.md}.
 */
package io.hudioperator;
