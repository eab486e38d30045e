/**
 * The checks under the lock before a commit is published: the storage wrapper, the options, the
 * writer's progress, the table's schema, the rows that were read, and the keys that were inserted.
 *
 * <p>It uses {@code timeline}, {@code session}, {@code protocol} and {@code contract}. Hudi calls
 * it through the lock provider and the conflict strategy in the root. It guarantees that a commit
 * that lost to another one is refused (I9), that two writers never insert the same key twice (I13),
 * and that unreadable data counts as moved or as a conflict (I11).
 */
package io.hudioperator.commit;
