package io.hudioperator.support;

import java.util.List;
import java.util.stream.Collectors;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.hudi.common.config.HoodieConfig;
import org.apache.hudi.common.engine.LocalTaskContextSupplier;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.io.storage.HoodieAvroFileWriter;
import org.apache.hudi.io.storage.HoodieFileWriterFactory;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;

/** Rows that have Hudi's own columns only, and base files of them, made by Hudi's own writer. */
public final class HudiFiles {
    private static final List<String> COLUMNS = List.of(
            "_hoodie_commit_time",
            "_hoodie_commit_seqno",
            "_hoodie_record_key",
            "_hoodie_partition_path",
            "_hoodie_file_name");
    public static final Schema SCHEMA = Schema.createRecord(
            "row",
            null,
            "test",
            false,
            COLUMNS.stream()
                    .map(name -> new Schema.Field(name, Schema.create(Schema.Type.STRING)))
                    .collect(Collectors.toList()));

    private HudiFiles() {}

    public static GenericRecord row(String partition, String key) {
        GenericRecord row = new GenericData.Record(SCHEMA);
        COLUMNS.forEach(column -> row.put(column, column.equals("_hoodie_record_key") ? key : partition));
        return row;
    }

    /**
     * Writes a base file with these keys.
     *
     * @param footers whether the footer contains the key range and the Bloom filter
     */
    public static void base(HoodieStorage storage, StoragePath file, boolean footers, String partition, String... keys)
            throws Exception {
        HoodieConfig config = new HoodieConfig();
        config.setValue("hoodie.parquet.compression.codec", "uncompressed");
        config.setValue("hoodie.parquet.bloom.filter.enabled", Boolean.toString(footers));
        try (HoodieAvroFileWriter writer = (HoodieAvroFileWriter) HoodieFileWriterFactory.getFileWriter(
                TestTable.time(0),
                file,
                storage,
                config,
                HoodieSchema.fromAvroSchema(SCHEMA),
                new LocalTaskContextSupplier(),
                HoodieRecord.HoodieRecordType.AVRO)) {
            for (String key : keys) {
                writer.writeAvro(key, row(partition, key));
            }
        }
    }
}
