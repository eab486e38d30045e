package io.hudioperator.commit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;
import org.apache.parquet.column.ColumnReader;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.FileMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.api.Converter;
import org.apache.parquet.io.api.GroupConverter;
import org.apache.parquet.io.api.PrimitiveConverter;
import org.apache.parquet.schema.MessageType;

/**
 * The record keys of a base file: one column, read alone. Hudi's reader makes an Avro record and a
 * HoodieKey of each row, and opens the file three times.
 */
final class KeyColumn {
    private KeyColumn() {}

    /** Calls the consumer with each key, in the order of the file. */
    static void forEach(HoodieStorage storage, StoragePath file, Consumer<String> consumer) {
        Configuration conf = storage.getConf().unwrapAs(Configuration.class);
        try (ParquetFileReader reader =
                ParquetFileReader.open(HadoopInputFile.fromPath(new Path(file.toUri()), conf))) {
            FileMetaData footer = reader.getFooter().getFileMetaData();
            MessageType key = new MessageType(
                    footer.getSchema().getName(), footer.getSchema().getType(HoodieRecord.RECORD_KEY_METADATA_FIELD));
            reader.setRequestedSchema(key);
            for (PageReadStore rows = reader.readNextRowGroup(); rows != null; rows = reader.readNextRowGroup()) {
                ColumnReader column = new ColumnReadStoreImpl(rows, new Ignored(), key, footer.getCreatedBy())
                        .getColumnReader(key.getColumns().get(0));
                for (long row = 0; row < rows.getRowCount(); row++) {
                    if (column.getCurrentDefinitionLevel()
                            < column.getDescriptor().getMaxDefinitionLevel()) {
                        throw new IllegalStateException(file + " has a row without a record key");
                    }
                    consumer.accept(column.getBinary().toStringUsingUTF8());
                    column.consume();
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Parquet asks for converters; values are taken from the column itself. */
    private static final class Ignored extends GroupConverter {
        @Override
        public Converter getConverter(int field) {
            return new PrimitiveConverter() {};
        }

        @Override
        public void start() {
            // nothing is built
        }

        @Override
        public void end() {
            // nothing is built
        }
    }
}
