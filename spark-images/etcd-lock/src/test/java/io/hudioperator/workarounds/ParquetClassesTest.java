package io.hudioperator.workarounds;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.config.HoodieConfig;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieRecord.HoodieRecordType;
import org.apache.hudi.common.util.collection.ClosableIterator;
import org.apache.hudi.io.storage.HoodieFileReader;
import org.apache.hudi.io.storage.HoodieIOFactory;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.hadoop.HoodieHadoopStorage;
import org.apache.parquet.avro.AvroParquetReader;
import org.apache.parquet.avro.AvroParquetWriter;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.hadoop.util.HadoopOutputFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What a Parquet file may make its reader do (F323, CVE-2025-30065). Such a file's schema names
 * a Java class for a column of strings; with Parquet's default the reader calls the constructor of
 * that class with each value. Here it is one that creates a file.
 */
class ParquetClassesTest {
    /** As the operator renders it for every process (spark_conf.py). */
    private static final String SUPPLIER = "parquet.avro.data.supplier";

    private static final String PLAIN = "org.apache.parquet.avro.GenericDataSupplier";

    @TempDir
    Path folder;

    /** A data file with one row. Its column {@code v} names a file that the reader is to create. */
    private StoragePath hostile(Path created) throws IOException {
        Schema named = SchemaBuilder.builder().stringType();
        named.addProp("java-class", FileOutputStream.class.getName());
        Schema schema = SchemaBuilder.record("row")
                .fields()
                .requiredString("id")
                .name("v")
                .type(named)
                .noDefault()
                .endRecord();
        GenericRecord row = new GenericData.Record(schema);
        row.put("id", "k");
        row.put("v", created.toString());
        Path file = folder.resolve("0-0-0_0-0-0_20240101000000000.parquet");
        try (ParquetWriter<GenericRecord> writer = AvroParquetWriter.<GenericRecord>builder(
                        HadoopOutputFile.fromPath(new org.apache.hadoop.fs.Path(file.toUri()), new Configuration()))
                .withSchema(schema)
                .withDataModel(GenericData.get())
                .build()) {
            writer.write(row);
        }
        return new StoragePath(file.toUri());
    }

    /** Reads a file as Hudi does where it merges records as Avro; returns how many rows it has. */
    private static int read(StoragePath file, Configuration conf) throws IOException {
        HoodieHadoopStorage storage = new HoodieHadoopStorage(file.toString(), conf);
        int rows = 0;
        try (HoodieFileReader<?> reader = HoodieIOFactory.getIOFactory(storage)
                        .getReaderFactory(HoodieRecordType.AVRO)
                        .getFileReader(new HoodieConfig(), file);
                ClosableIterator<? extends HoodieRecord<?>> records = reader.getRecordIterator(reader.getSchema())) {
            while (records.hasNext()) {
                records.next();
                rows++;
            }
        }
        return rows;
    }

    /** Reads a file with Parquet's own reader for Avro, as much of it as can be read. */
    private static void readByParquet(StoragePath file, Configuration conf) throws IOException {
        try (ParquetReader<GenericRecord> reader = AvroParquetReader.<GenericRecord>builder(
                        HadoopInputFile.fromPath(new org.apache.hadoop.fs.Path(file.toUri()), conf))
                .withConf(conf)
                .build()) {
            reader.read();
        }
    }

    @Test
    void hudisReaderTakesNoSchemaFromAFile() throws IOException {
        Path created = folder.resolve("created");
        assertEquals(1, read(hostile(created), new Configuration()));
        assertFalse(Files.exists(created), "the reader has created a file");
    }

    @Test
    void noOtherReaderCallsAConstructor() throws IOException {
        Path created = folder.resolve("created");
        StoragePath file = hostile(created);
        Configuration conf = new Configuration();
        conf.set(SUPPLIER, PLAIN);
        readByParquet(file, conf);
        assertFalse(Files.exists(created), "the reader has created a file");
    }

    @Test
    void whyParquetsDefaultIsNotUsed() throws IOException {
        Path created = folder.resolve("created");
        readByParquet(hostile(created), new Configuration());
        assertTrue(Files.exists(created), "Parquet no longer does this: the setting can go");
    }
}
