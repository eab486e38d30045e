/**
 * The rules of the storage wrapper: which file of a table may be created, completed, renamed or deleted, and when its request has been answered.
 *
 * <p>It uses {@code session}, {@code protocol} and {@code contract}; the file systems that Hadoop loads are in the root and call these rules.
 * Kept here: no timeline file without the lock or an own instant (I3, I7), a completed file only whole (F34), a request that has no answer
 * keeps the lock (F37), nobody deletes or moves a table's timeline (F33), only Hudi writes among a table's data (F78).
 */
package io.hudioperator.timeline;
