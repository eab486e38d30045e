package io.hudioperator.catalog;

import org.apache.hadoop.fs.Path;

/** Compares where tables lie. */
final class Locations {
    private Locations() {}

    static boolean same(String one, String other) {
        try {
            return plain(one).equals(plain(other));
        } catch (IllegalArgumentException notAPath) {
            return false;
        }
    }

    /** With one scheme for the clients of S3, which all see the same files. */
    private static Path plain(String location) {
        return new Path(location.replaceFirst("^s3[an]?://", "s3://"));
    }
}
