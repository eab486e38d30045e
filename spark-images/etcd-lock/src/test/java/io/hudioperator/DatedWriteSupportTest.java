package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Properties;
import org.apache.hudi.avro.HoodieAvroWriteSupport;
import org.apache.hudi.common.bloom.BloomFilter;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.ReflectionUtils;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.MessageTypeParser;
import org.junit.jupiter.api.Test;

/** Readers with Spark's defaults can read old dates (F41). */
class DatedWriteSupportTest {

    /** Constructed as Hudi constructs it. */
    @Test
    void filesSayThatTheyWereWrittenBySparkThree() {
        MessageType type = MessageTypeParser.parseMessageType("message t { optional int32 d (DATE); }");
        HoodieSchema schema = HoodieSchema.parse("{\"type\":\"record\",\"name\":\"t\",\"fields\":[]}");
        Object made = ReflectionUtils.loadClass(
                DatedWriteSupport.class.getName(),
                new Class<?>[] {MessageType.class, HoodieSchema.class, Option.class, Properties.class},
                type,
                schema,
                Option.<BloomFilter>empty(),
                new Properties());
        Map<String, String> footer =
                ((HoodieAvroWriteSupport<?>) made).finalizeWrite().getExtraMetaData();
        assertTrue(footer.get(DatedWriteSupport.WRITTEN_BY).startsWith("3."), footer.toString());
        assertEquals(1, footer.size(), "nothing says that the old calendar was used");
    }
}
