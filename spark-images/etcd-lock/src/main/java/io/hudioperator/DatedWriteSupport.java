package io.hudioperator;

import java.util.Properties;
import org.apache.hudi.avro.HoodieAvroWriteSupport;
import org.apache.hudi.common.bloom.BloomFilter;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.util.Option;
import org.apache.parquet.schema.MessageType;

/**
 * Base files that say which calendar their dates are in. Hudi writes days and microseconds as Spark 3 counts them, and says nothing of it where it
 * writes through Avro: Spark then refuses to read dates before 1582-10-15 and timestamps before 1900, since a file could be one of Spark 2.
 */
public final class DatedWriteSupport<T> extends HoodieAvroWriteSupport<T> {
  /** Spark's own key: what Spark 3 has written is read as it is. */
  static final String WRITTEN_BY = "org.apache.spark.version";

  /** Any version that counts days and microseconds so, in each of Parquet's types; older ones have other rules for some. */
  private static final String SINCE = "3.5.0";

  /** Called by Hudi, by reflection ({@code hoodie.avro.write.support.class}). */
  public DatedWriteSupport(MessageType type, HoodieSchema schema, Option<BloomFilter> bloomFilter, Properties properties) {
    super(type, schema, bloomFilter, properties);
    addFooterMetadata(WRITTEN_BY, SINCE);
  }
}
