/**
 * One incarnation at one table: its registration, the lock while it is held, its own instants, and
 * what its threads have read.
 *
 * <p>It uses {@code protocol}, {@code etcd} and {@code contract}, and pins Hudi's schemas through
 * {@code workarounds} before anything is read. The storage wrapper and the checks of a commit call
 * a session; a session calls neither. It decides what may be begun, completed, given up or removed,
 * and by whom (I3, I7, I8, I10).
 */
package io.hudioperator.session;
