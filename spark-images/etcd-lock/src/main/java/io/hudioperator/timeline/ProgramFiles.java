package io.hudioperator.timeline;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TablePath;
import io.hudioperator.contract.TimelineRefusedException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.avro.generic.GenericRecord;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.common.config.HoodieConfig;
import org.apache.hudi.common.fs.FSUtils;
import org.apache.hudi.common.model.HoodieLogFile;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieRecord.HoodieRecordType;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.schema.HoodieSchemaUtils;
import org.apache.hudi.common.table.log.HoodieLogFormat;
import org.apache.hudi.common.table.log.block.HoodieDataBlock;
import org.apache.hudi.common.table.log.block.HoodieLogBlock;
import org.apache.hudi.common.util.collection.ClosableIterator;
import org.apache.hudi.io.storage.HoodieFileReader;
import org.apache.hudi.io.storage.HoodieIOFactory;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.hadoop.HoodieHadoopStorage;

/**
 * Data files of programs. A program gives its rows to Hudi itself, in many ways (DataFrames, each
 * SQL statement, with its own merge code), so each of its files is read again after it was written
 * and before its task ends: the files of a task that fails here are in no commit (F212). In other
 * processes nothing is read again: the runtime has checked the rows before.
 */
public final class ProgramFiles {
    /** Rules by table, in the processes of a program: its driver and its executors. */
    private static final Map<String, RowRules> RULES = new ConcurrentHashMap<>();

    private static final String LOG = ".log.";
    private static final String CHANGES = ".cdc";

    private ProgramFiles() {}

    /** The table's rules as text, to be sent to the executors. */
    public static Map<String, String> rules(StorageConfiguration<?> conf, String basePath) {
        return RowRules.read(conf, basePath);
    }

    /** This process belongs to a program that writes this table. */
    public static void ofProgram(String basePath, Map<String, String> rules) {
        RULES.put(TablePath.comparable(basePath), RowRules.of(rules));
    }

    /** Null when this process is of no program that writes that table. */
    private static RowRules rulesOf(String base) {
        return RULES.get(base);
    }

    /**
     * Refuses a partition that its path does not preserve.
     *
     * @param partition its path below the table
     */
    static void requirePartition(String base, String partition, Object file) throws TimelineRefusedException {
        RowRules rules = rulesOf(base);
        if (rules != null && !partition.isEmpty()) {
            rules.requirePartition(partition, file);
        }
    }

    /** A stream whose file is read when it was closed. */
    static FSDataOutputStream watched(String base, Path path, FileSystem fs, FSDataOutputStream stream)
            throws IOException {
        RowRules rules = rulesOf(base);
        return rules == null || path.getName().endsWith(CHANGES)
                ? stream
                : new ClosingStream(stream, () -> require(rules, path, fs));
    }

    private static final class ClosingStream extends FSDataOutputStream {
        private final FSDataOutputStream inner;
        private final GuardedOutputStream.Check afterClose;
        private boolean closed;

        private ClosingStream(FSDataOutputStream inner, GuardedOutputStream.Check afterClose) throws IOException {
            super(inner, null, inner.getPos());
            this.inner = inner;
            this.afterClose = afterClose;
        }

        @Override
        public void close() throws IOException {
            if (!closed) {
                closed = true;
                inner.close();
                afterClose.run();
            }
        }
    }

    private static void require(RowRules rules, Path path, FileSystem fs) throws IOException {
        HoodieStorage storage = new HoodieHadoopStorage(fs);
        StoragePath file = new StoragePath(path.toUri());
        if (path.getName().contains(LOG)) {
            requireLog(rules, storage, file);
        } else {
            requireBase(rules, storage, file);
        }
    }

    private static void requireBase(RowRules rules, HoodieStorage storage, StoragePath file) throws IOException {
        try (HoodieFileReader<?> reader = HoodieIOFactory.getIOFactory(storage)
                .getReaderFactory(HoodieRecordType.AVRO)
                .getFileReader(new HoodieConfig(), file)) {
            HoodieSchema schema = reader.getSchema();
            rules.requireTypes(schema, file);
            Looked looked = new Looked(rules, schema, file);
            if (looked.isNothing()) {
                return;
            }
            HoodieSchema wanted = HoodieSchemaUtils.generateProjectionSchema(schema, columns(schema, looked.all()));
            try (ClosableIterator<? extends HoodieRecord<?>> records = reader.getRecordIterator(wanted, wanted)) {
                requireValues(records, looked, FSUtils.getCommitTime(file.getName()));
            }
        }
    }

    private static void requireLog(RowRules rules, HoodieStorage storage, StoragePath file) throws IOException {
        try (HoodieLogFormat.Reader blocks = HoodieLogFormat.newReader(storage, new HoodieLogFile(file), null)) {
            while (blocks.hasNext()) {
                HoodieLogBlock block = blocks.next();
                if (block instanceof HoodieDataBlock) {
                    HoodieSchema schema = ((HoodieDataBlock) block).getSchema();
                    rules.requireTypes(schema, file);
                    Looked looked = new Looked(rules, schema, file);
                    if (!looked.isNothing()) {
                        try (ClosableIterator<HoodieRecord<Object>> records =
                                ((HoodieDataBlock) block).getRecordIterator(HoodieRecordType.AVRO)) {
                            requireValues(records, looked, "");
                        }
                    }
                }
            }
        }
    }

    /** The columns of a file whose values are looked at. */
    private static final class Looked {
        final RowRules rules;
        final StoragePath file;
        final List<String> never;
        final List<String> confused;

        Looked(RowRules rules, HoodieSchema schema, StoragePath file) {
            this.rules = rules;
            this.file = file;
            never = rules.neverNull();
            confused = rules.confused(schema, file);
        }

        boolean isNothing() {
            return never.isEmpty() && confused.isEmpty();
        }

        List<String> all() {
            List<String> found = new ArrayList<>(never);
            found.addAll(confused);
            return found;
        }
    }

    private static List<String> present(HoodieSchema schema, List<String> columns) {
        return columns.stream()
                .filter(column -> schema.getNestedField(column).isPresent())
                .collect(Collectors.toList());
    }

    private static List<String> columns(HoodieSchema schema, List<String> looked) {
        Set<String> all = new LinkedHashSet<>(present(schema, looked));
        all.addAll(present(
                schema, List.of(HoodieRecord.RECORD_KEY_METADATA_FIELD, HoodieRecord.COMMIT_TIME_METADATA_FIELD)));
        return new ArrayList<>(all);
    }

    /**
     * A file whose rows do not have a column at all has no value in it either: readers would take
     * Hudi's own, an integer, for each of them (F289).
     *
     * @param instant of the file; rows of other instants are copies from an earlier version of the
     *     file, and are not checked (an adopted table may have such rows). Empty: all rows are new.
     */
    private static void requireValues(
            ClosableIterator<? extends HoodieRecord<?>> records, Looked looked, String instant)
            throws TimelineRefusedException {
        while (records.hasNext()) {
            GenericRecord row = (GenericRecord) records.next().getData();
            Object written = value(row, HoodieRecord.COMMIT_TIME_METADATA_FIELD);
            if (!instant.isEmpty() && written != null && !instant.equals(written.toString())) {
                continue;
            }
            for (String column : looked.never) {
                if (value(row, column) == null) {
                    throw refusal(
                            row,
                            column,
                            (has(row, column) ? "null" : "missing") + ": an ordering column has a value in every row",
                            looked.file);
                }
            }
            for (String column : looked.confused) {
                Object value = value(row, column);
                String problem = looked.rules.problem(column, value);
                if (!problem.isEmpty()) {
                    throw refusal(row, column, "'" + RowRules.shown(value.toString()) + "': " + problem, looked.file);
                }
            }
        }
    }

    private static TimelineRefusedException refusal(GenericRecord row, String column, String what, StoragePath file) {
        Object key = value(row, HoodieRecord.RECORD_KEY_METADATA_FIELD);
        return ErrorCode.BAD_DATA.refusal("column " + column + " of record '" + RowRules.shown(String.valueOf(key))
                + "' is " + what + ": " + file);
    }

    private static boolean has(GenericRecord row, String path) {
        return row.getSchema().getField(path.split("\\.")[0]) != null;
    }

    /** Null also when a record that the field is in is null, or has no such field. */
    private static Object value(GenericRecord row, String path) {
        Object found = row;
        for (String name : path.split("\\.")) {
            GenericRecord inner = found instanceof GenericRecord ? (GenericRecord) found : null;
            found = inner == null || inner.getSchema().getField(name) == null ? null : inner.get(name);
        }
        return found;
    }
}
