package io.hudioperator.workarounds;

/**
 * Keeps writes to the metadata table from failing at random. Hudi 1.2.0 tells the two layouts of a
 * metadata record apart by the identity of a schema object that its schema caches must hold from
 * the start. A JVM that happens to read a metadata table first caches another object, and from then
 * on each of its commits fails with an ArrayIndexOutOfBoundsException in HoodieMetadataPayload.
 * Loading the class before anything is read puts the right objects into the caches.
 */
public final class MetadataSchema {
    private static final String PAYLOAD = "org.apache.hudi.metadata.HoodieMetadataPayload";

    private MetadataSchema() {}

    /** Loads the class. Does nothing when Hudi is not on the class path. */
    public static void pin() {
        try {
            Class.forName(PAYLOAD, true, Thread.currentThread().getContextClassLoader());
        } catch (ClassNotFoundException e) {
            System.err.println("Hudi is not on the class path: " + PAYLOAD);
        }
    }
}
