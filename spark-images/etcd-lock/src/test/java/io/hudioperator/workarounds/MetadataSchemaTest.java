package io.hudioperator.workarounds;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Properties;
import org.apache.avro.Schema;
import org.apache.hudi.avro.model.HoodieMetadataRecord;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.schema.HoodieSchemaCache;
import org.apache.hudi.metadata.HoodieMetadataPayload;
import org.junit.jupiter.api.Test;

/** Runs in separate JVMs, because a class is loaded only once. */
class MetadataSchemaTest {

    /**
     * Reads a metadata record's schema as from a file, then creates a record for the metadata table
     * as Hudi's writer does.
     */
    public static final class Main {
        public static void main(String[] args) throws Exception {
            if (args.length > 0) {
                MetadataSchema.pin();
            }
            Schema read = new Schema.Parser()
                    .parse(HoodieMetadataRecord.getClassSchema().toString());
            HoodieSchema schema = HoodieSchemaCache.intern(HoodieSchema.fromAvroSchema(read));
            HoodieRecord<HoodieMetadataPayload> metadata =
                    HoodieMetadataPayload.createPartitionListRecord(List.of("month=1"));
            System.out.println(metadata.getData()
                    .getInsertValue(schema.toAvroSchema(), new Properties())
                    .get()
                    .get(0));
            System.out.println(read.getFields().size());
        }
    }

    private static String run(String... args) throws IOException, InterruptedException {
        List<String> command = new java.util.ArrayList<>(List.of(
                System.getProperty("java.home") + "/bin/java",
                "-cp",
                System.getProperty("java.class.path"),
                Main.class.getName()));
        command.addAll(List.of(args));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return process.waitFor() + "\n" + said;
    }

    @Test
    void aSchemaThatWasReadBeforeNoLongerBreaksTheMetadataTable() throws Exception {
        String pinned = run("pinned");
        assertTrue(pinned.startsWith("0\n"), pinned);
    }

    @Test
    void withoutItHudiStillFails() throws Exception {
        String bare = run();
        assertTrue(
                bare.contains("ArrayIndexOutOfBoundsException"),
                "Hudi has fixed this, so MetadataSchema can be removed: " + bare);
        assertEquals('1', bare.charAt(0));
    }
}
