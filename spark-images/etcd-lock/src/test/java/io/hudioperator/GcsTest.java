package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hudioperator.support.EtcdServer;
import io.hudioperator.support.TestTable;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.time.Duration;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Google's connector on fake-gcs-server ({@code hack/build/build-binaries fake-gcs-server}). On
 * this store a file becomes visible when it is closed.
 */
@Tag("extra")
class GcsTest extends StoreContract {
    private static String url;
    private static Process server;

    @BeforeAll
    static void start() throws IOException {
        String cache = System.getenv()
                .getOrDefault("HUDI_OPERATOR_CACHE", System.getProperty("user.home") + "/.cache/hudi-operator");
        int port = EtcdServer.freePort();
        url = "http://127.0.0.1:" + port;
        String[] command = {
            cache + "/bin/fake-gcs-server",
            "-scheme",
            "http",
            "-host",
            "127.0.0.1",
            "-port",
            String.valueOf(port),
            "-external-url",
            url,
            "-backend",
            "memory"
        };
        server = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(Files.createTempFile("gcs-", ".log").toFile())
                .start();
        TestTable.await(Duration.ofSeconds(20), "the bucket is created", GcsTest::makesTheBucket);
    }

    private static boolean makesTheBucket() {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(URI.create(url + "/storage/v1/b")).header("Content-Type", "application/json");
        try {
            HttpRequest post = request.POST(HttpRequest.BodyPublishers.ofString("{\"name\":\"bucket\"}"))
                    .build();
            return HttpClient.newHttpClient()
                            .send(post, HttpResponse.BodyHandlers.ofString())
                            .statusCode()
                    == 200;
        } catch (IOException e) {
            return false; // not yet up
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @AfterAll
    static void stop() throws InterruptedException {
        server.destroyForcibly().waitFor();
    }

    @Override
    String root() {
        return "gs://bucket";
    }

    @Override
    String delegate() {
        return "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem";
    }

    @Override
    Configuration client() {
        Configuration conf = new Configuration();
        conf.set("fs.gs.impl", delegate());
        conf.set("fs.gs.storage.root.url", url);
        conf.set("fs.gs.auth.service.account.enable", "false");
        conf.set("fs.gs.auth.null.enable", "true");
        conf.set("fs.gs.project.id", "test");
        return conf;
    }

    /**
     * Two writes that have both begun before either has ended: the store accepts the first to end
     * and refuses the second.
     */
    @Test
    void theSecondWriterOfANameIsRefused() throws Exception {
        create();
        try (FileSystem one = another();
                FileSystem other = another()) {
            FSDataOutputStream first = one.create(timeline(COMPLETED), false);
            FSDataOutputStream second = other.create(timeline(COMPLETED), false);
            first.write(TestTable.COMPLETED);
            second.write(TestTable.avro(2));
            first.close();
            assertThrows(IOException.class, second::close);
            assertThrows(FileAlreadyExistsException.class, () -> other.create(timeline(COMPLETED), false));
            try (FSDataInputStream in = other.open(timeline(COMPLETED))) {
                assertArrayEquals(TestTable.COMPLETED, in.readAllBytes());
            }
        }
    }

    /**
     * The store does not reject a request that was in flight when its sender died. The drain and
     * the sweep must handle it.
     */
    @Test
    void whatIsDeliveredLateIsThere() throws Exception {
        create();
        try (FileSystem late = another();
                FileSystem sweeper = another()) {
            FSDataOutputStream open = late.create(timeline(COMPLETED), false);
            open.write(TestTable.COMPLETED);
            assertFalse(sweeper.delete(timeline(COMPLETED), false));
            open.close();
            assertTrue(sweeper.exists(timeline(COMPLETED)));
        }
    }
}
