/**
 * The rules of the storage wrapper: which files of a table may be created, completed, renamed or
 * deleted, and when their requests count as answered.
 *
 * <p>It uses {@code session}, {@code protocol} and {@code contract}. The file systems that Hadoop
 * loads are in the root and call these rules. It guarantees: no timeline file without the lock or
 * an own instant (I3, I7); a completed file is sent whole or not at all (F34); a request without an
 * answer keeps the lock (F37); nobody deletes or moves a table's timeline (F33); only Hudi writes
 * among a table's data (F78).
 */
package io.hudioperator.timeline;
