/**
 * What is compared under the lock before a commit is published: the storage wrapper, the options, the writer's progress, the table's schema, the
 * rows that were read, the keys that were inserted.
 *
 * <p>It uses {@code timeline}, {@code session}, {@code protocol} and {@code contract}; Hudi asks through the lock provider and the conflict
 * strategy in the root. Kept here: a commit that lost to another one is refused (I9), two writers never insert one key twice (I13), and what
 * cannot be read counts as moved or in conflict (I11).
 */
package io.hudioperator.commit;
