package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.amazonaws.SdkClientException;
import com.amazonaws.auth.AWSCredentials;
import com.amazonaws.auth.AWSSessionCredentials;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** S3 keys from the files of a Secret, which the kubelet replaces while the process runs. */
class S3CredentialsTest {
    @TempDir
    Path folder;

    private int written;

    /** As a kubelet does it: a folder of its own for each version, and a link that is moved. */
    private void mount(Map<String, String> files) throws IOException {
        Path version = Files.createDirectory(folder.resolve("..version-" + ++written));
        for (Map.Entry<String, String> file : files.entrySet()) {
            Files.writeString(version.resolve(file.getKey()), file.getValue());
        }
        Path link = Files.createSymbolicLink(folder.resolve("..data_tmp"), version.getFileName());
        Path current = folder.resolve("..data");
        Path before = Files.exists(current) ? current.toRealPath() : null;
        Files.move(link, current, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        if (before != null) {
            try (var old = Files.list(before)) {
                for (Path file : old.collect(Collectors.toList())) {
                    Files.delete(file);
                }
            }
            Files.delete(before);
        }
    }

    private static Map<String, String> pair(int number) {
        return Map.of("accessKeyId", "id-" + number, "secretAccessKey", "secret-" + number);
    }

    @Test
    void changedFilesAreReadAgain() throws Exception {
        mount(pair(1));
        S3Credentials provider = new S3Credentials(folder);
        assertEquals("id-1", provider.getCredentials().getAWSAccessKeyId());
        mount(Map.of("accessKeyId", "id-2", "secretAccessKey", "secret-2\n", "sessionToken", "token-2"));
        Thread.sleep(1_100);
        AWSCredentials found = provider.getCredentials();
        assertEquals("id-2", found.getAWSAccessKeyId());
        assertEquals("secret-2", found.getAWSSecretKey(), "a line end is no part of a key");
        assertEquals("token-2", ((AWSSessionCredentials) found).getSessionToken());
    }

    @Test
    void keysOfTwoVersionsAreNeverMixed() throws Exception {
        mount(pair(0));
        S3Credentials provider = new S3Credentials(folder);
        AtomicBoolean over = new AtomicBoolean();
        Thread kubelet = new Thread(() -> {
            try {
                for (int number = 1; !over.get(); number++) {
                    mount(pair(number));
                }
            } catch (IOException failed) {
                throw new AssertionError(failed);
            }
        });
        kubelet.start();
        try {
            for (int reading = 0; reading < 300; reading++) {
                provider.refresh();
                AWSCredentials found = provider.getCredentials();
                assertEquals(
                        found.getAWSAccessKeyId().replace("id", "secret"),
                        found.getAWSSecretKey(),
                        "in reading " + reading);
            }
        } finally {
            over.set(true);
            kubelet.join();
        }
        assertTrue(written > 1, "nothing was replaced meanwhile");
    }

    @Test
    void aMissingSecretIsNamedAndOneThatComesIsRead() throws Exception {
        S3Credentials provider = new S3Credentials(folder);
        SdkClientException missing = assertThrows(SdkClientException.class, provider::getCredentials);
        assertTrue(missing.getMessage().contains("accessKeyId"), missing.getMessage());
        mount(Map.of("accessKeyId", "hidden"));
        missing = assertThrows(SdkClientException.class, provider::getCredentials);
        assertTrue(missing.getMessage().contains("secretAccessKey"), missing.getMessage());
        assertFalse(missing.getMessage().contains("hidden"), missing.getMessage());
        mount(pair(1));
        assertEquals("id-1", provider.getCredentials().getAWSAccessKeyId());
        mount(Map.of());
        provider.refresh();
        assertEquals("id-1", provider.getCredentials().getAWSAccessKeyId(), "the last ones may still be valid");
    }
}
