package io.hudioperator.protocol;

import io.hudioperator.contract.Word;

/**
 * Rule for conflicts between inserts of two commits, neither of which has seen the other: the
 * table's {@code concurrency.insertConflicts}, as the gate states it.
 */
public enum InsertRule implements Word {
    /** The same key into one partition. */
    KEY,
    /** Anything into the same partition. */
    PARTITION,
    /** Nothing is compared. */
    IGNORE;

    /**
     * A gate without the field has the default. A value of a later version counts as the strictest
     * rule of this one.
     */
    public static InsertRule of(String word) {
        if (word.isEmpty() || KEY.is(word)) {
            return KEY;
        }
        return IGNORE.is(word) ? IGNORE : PARTITION;
    }
}
