package io.hudioperator;

import com.amazonaws.SdkClientException;
import com.amazonaws.auth.AWSCredentials;
import com.amazonaws.auth.AWSCredentialsProvider;
import com.amazonaws.auth.BasicAWSCredentials;
import com.amazonaws.auth.BasicSessionCredentials;
import io.hudioperator.contract.Environment;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The S3 keys of a table, from the files of a mounted Secret, which change while the process runs.
 * S3A asks for credentials at each request; they are read again when the last reading is older than
 * a second. Configured as {@code fs.s3a.aws.credentials.provider} of drivers, executors, agents.
 *
 * <p>Hadoop 3.3.4 has no such provider: its own read a configuration or the environment once.
 */
public final class S3Credentials implements AWSCredentialsProvider {
    /** Environment variable: folder of the mounted Secret. */
    static final String FOLDER = Environment.S3_CREDENTIALS;

    private static final Logger LOG = LoggerFactory.getLogger(S3Credentials.class);
    private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final int ATTEMPTS = 3;
    /** The kubelet writes a new folder and moves this link to it, so its files belong together. */
    private static final String CURRENT = "..data";

    private final Path folder;
    private AWSCredentials known;
    private long readAt;

    /** S3A calls this by reflection. */
    public S3Credentials() {
        this(Path.of(System.getenv().getOrDefault(FOLDER, "/etc/hudi/s3")));
    }

    S3Credentials(Path folder) {
        this.folder = folder;
    }

    @Override
    public synchronized AWSCredentials getCredentials() {
        if (known == null || System.nanoTime() - readAt > FRESH_NANOS) {
            refresh();
        }
        return known;
    }

    /**
     * Reads the files now. Keeps what is known when they cannot be read; throws when nothing is
     * known yet.
     */
    @Override
    public synchronized void refresh() {
        AWSCredentials found;
        try {
            found = read();
        } catch (IOException | SdkClientException unreadable) {
            if (known == null) {
                throw unreadable instanceof SdkClientException
                        ? (SdkClientException) unreadable
                        : new SdkClientException("S3 credentials cannot be read: " + unreadable, unreadable);
            }
            LOG.warn("S3 credentials cannot be read again, the last ones are used: {}", unreadable.toString());
            readAt = System.nanoTime();
            return;
        }
        if (known != null && !same(known, found)) {
            LOG.info("S3 credentials have changed");
        }
        known = found;
        readAt = System.nanoTime();
    }

    private AWSCredentials read() throws IOException {
        for (int attempt = 1; ; attempt++) {
            Path link = folder.resolve(CURRENT);
            Path current = Files.exists(link) ? link.toRealPath() : folder;
            try {
                String id = value(current, "accessKeyId");
                String secret = value(current, "secretAccessKey");
                String token = value(current, "sessionToken");
                if (id.isEmpty() || secret.isEmpty()) {
                    throw new SdkClientException(
                            "the Secret of storage.secretRefs as S3 does not exist, or lacks the key "
                                    + (id.isEmpty() ? "accessKeyId" : "secretAccessKey"));
                }
                if (!Files.exists(link) || link.toRealPath().equals(current)) {
                    return token.isEmpty()
                            ? new BasicAWSCredentials(id, secret)
                            : new BasicSessionCredentials(id, secret, token);
                }
            } catch (SdkClientException | NoSuchFileException replaced) {
                if (!Files.exists(link) || link.toRealPath().equals(current) || attempt == ATTEMPTS) {
                    throw replaced;
                }
            }
            if (attempt == ATTEMPTS) {
                throw new IOException("the files below " + folder + " change while they are read");
            }
        }
    }

    /** Content of a file without surrounding blanks; empty when there is no such file. */
    private static String value(Path folder, String key) throws IOException {
        try {
            return Files.readString(folder.resolve(key), StandardCharsets.UTF_8).trim();
        } catch (NoSuchFileException missing) {
            return "";
        }
    }

    private static boolean same(AWSCredentials one, AWSCredentials other) {
        return one.getAWSAccessKeyId().equals(other.getAWSAccessKeyId())
                && one.getAWSSecretKey().equals(other.getAWSSecretKey())
                && token(one).equals(token(other));
    }

    private static String token(AWSCredentials credentials) {
        return credentials instanceof BasicSessionCredentials
                ? ((BasicSessionCredentials) credentials).getSessionToken()
                : "";
    }
}
