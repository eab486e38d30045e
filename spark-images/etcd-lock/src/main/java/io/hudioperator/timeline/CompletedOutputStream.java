package io.hudioperator.timeline;

import io.hudioperator.protocol.Publication;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.apache.avro.file.DataFileStream;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;

/**
 * A completed file. The stream keeps the content until {@code close()}, and sends it to the store
 * only when it is whole. Hudi closes the stream even when it could not write the content, and
 * readers would take an empty or truncated file for a commit (F34).
 */
final class CompletedOutputStream extends FSDataOutputStream {
    /** A condition of what the file says. */
    interface Rule {
        void require(GenericRecord said) throws IOException;
    }

    private final Path path;
    private final ByteArrayOutputStream content;
    private final Rule rule;
    private final GuardedOutputStream.Check beforeSending;
    private final StoreCall<FSDataOutputStream> create;
    private final Publication publication;
    private final Runnable answered;
    private boolean closed;

    /**
     * @param rule throws when the file must not be sent for what it says
     * @param publication null when the file itself completes no instant of the table: a temporary
     *     file, or a file of the metadata table
     * @param answered called when the store has acknowledged the file
     */
    CompletedOutputStream(
            Path path,
            Rule rule,
            GuardedOutputStream.Check beforeSending,
            StoreCall<FSDataOutputStream> create,
            Publication publication,
            Runnable answered) {
        this(path, new ByteArrayOutputStream(), rule, beforeSending, create, publication, answered);
    }

    private CompletedOutputStream(
            Path path,
            ByteArrayOutputStream content,
            Rule rule,
            GuardedOutputStream.Check beforeSending,
            StoreCall<FSDataOutputStream> create,
            Publication publication,
            Runnable answered) {
        super(content, null, 0);
        this.path = path;
        this.content = content;
        this.rule = rule;
        this.beforeSending = beforeSending;
        this.create = create;
        this.publication = publication;
        this.answered = answered;
    }

    @Override
    public void close() throws IOException {
        if (closed) {
            return;
        }
        closed = true;
        rule.require(whole());
        if (publication != null) {
            publication.sends(content.size());
        }
        Uninterrupted.run(() -> {
            beforeSending.run();
            FSDataOutputStream out = create.run();
            // when this throws, the stream stays open: closing it would send a partial file
            content.writeTo(out);
            out.close();
            return null;
        });
        if (publication != null) {
            publication.completed();
        }
        answered.run();
    }

    /** In table version 9 every completed file is an Avro file with one record. */
    private GenericRecord whole() throws IOException {
        int records = 0;
        GenericRecord said = null;
        Exception why = null;
        try (DataFileStream<GenericRecord> in =
                new DataFileStream<>(new ByteArrayInputStream(content.toByteArray()), new GenericDatumReader<>())) {
            for (; in.hasNext(); records++) {
                said = in.next();
            }
        } catch (IOException | RuntimeException e) {
            why = e;
        }
        if (why != null || records != 1) {
            throw new IOException(
                    "completed file " + path + " is not sent: its " + content.size()
                            + " bytes must be an Avro file with one record, "
                            + (why == null ? "it has " + records : String.valueOf(why.getMessage())),
                    why);
        }
        return said;
    }
}
