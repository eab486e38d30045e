package io.hudioperator.catalog;

/** The metastore has another table of that name. */
final class OtherTable extends RuntimeException {
    OtherTable(String message) {
        super(message);
    }
}
