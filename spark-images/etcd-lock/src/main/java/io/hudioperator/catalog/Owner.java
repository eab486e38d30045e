package io.hudioperator.catalog;

/** The mark by which an entry of a catalog is known as one HudiTable's. */
final class Owner {
    /** Property of the entry: the HudiTable's uid. */
    static final String PROPERTY = "hudioperator.uid";

    private Owner() {}

    /** Why an entry with this mark is not this HudiTable's; empty when it is. */
    static String problem(String mark, String uid) {
        if (mark == null || mark.isEmpty()) {
            return "it does not say which HudiTable has made it";
        }
        return mark.equals(uid) ? "" : "another HudiTable has made it";
    }
}
