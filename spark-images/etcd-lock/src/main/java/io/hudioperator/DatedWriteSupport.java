package io.hudioperator;

import java.util.Properties;
import org.apache.hudi.avro.HoodieAvroWriteSupport;
import org.apache.hudi.common.bloom.BloomFilter;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.util.Option;
import org.apache.parquet.schema.MessageType;

/**
 * Base files that declare which calendar their dates use. Hudi writes days and microseconds as
 * Spark 3 counts them, but does not record this where it writes through Avro. Spark then refuses to
 * read dates before 1582-10-15 and timestamps before 1900, because Spark 2 could have written the
 * file.
 */
public final class DatedWriteSupport<T> extends HoodieAvroWriteSupport<T> {
    /** Spark's own key. Spark reads a file that Spark 3 has written without rebasing its dates. */
    static final String WRITTEN_BY = "org.apache.spark.version";

    /**
     * Any version that counts days and microseconds this way for each of Parquet's types. Older
     * versions have other rules for some types.
     */
    private static final String SINCE = "3.5.0";

    /** Hudi calls this by reflection ({@code hoodie.avro.write.support.class}). */
    public DatedWriteSupport(
            MessageType type, HoodieSchema schema, Option<BloomFilter> bloomFilter, Properties properties) {
        super(type, schema, bloomFilter, properties);
        addFooterMetadata(WRITTEN_BY, SINCE);
    }
}
