package io.hudioperator.etcd;

/** One key of etcd, as read. */
public final class KeyValue {
    private final String key;
    private final String value;
    private final long createRevision;
    private final long modRevision;
    private final long lease;

    public KeyValue(String key, String value, long createRevision, long modRevision, long lease) {
        this.key = key;
        this.value = value;
        this.createRevision = createRevision;
        this.modRevision = modRevision;
        this.lease = lease;
    }

    public String key() {
        return key;
    }

    public String value() {
        return value;
    }

    public long createRevision() {
        return createRevision;
    }

    public long modRevision() {
        return modRevision;
    }

    /** Lease id; 0 when there is none. */
    public long lease() {
        return lease;
    }

    @Override
    public String toString() {
        return key + "@" + modRevision + "=" + value;
    }
}
