package io.hudioperator.protocol;

/**
 * What two commits that did not see each other may not both insert: {@code concurrency.insertConflicts} of the table, as the gate says it.
 */
public enum InsertRule {
  /** Insert one key into one partition. */
  KEY,
  /** Insert into one partition. */
  PARTITION,
  /** Nothing is compared. */
  IGNORE;

  /** A gate without the word is the default; a word of a later version is the strictest of this one. */
  public static InsertRule of(String word) {
    switch (word) {
      case "":
      case "Key":
        return KEY;
      case "Ignore":
        return IGNORE;
      default:
        return PARTITION;
    }
  }
}
