package io.hudioperator.etcd;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import org.junit.jupiter.api.Test;

/**
 * Private keys in the forms that common tools write. A file without one raises an error that names
 * the file and reveals nothing of the key. TlsTest covers whole connections.
 */
class PemKeyTest {
    private final Path file;

    PemKeyTest() throws IOException {
        file = Files.createTempFile("key-", ".pem");
    }

    private static String pem(String kind, byte[] der) {
        return "-----BEGIN " + kind + "-----\n"
                + Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der) + "\n-----END " + kind + "-----\n";
    }

    private byte[] read(String text) throws IOException {
        Files.writeString(file, text);
        String found = new String(PemKey.pkcs8(file).readAllBytes(), StandardCharsets.US_ASCII);
        assertTrue(found.startsWith("-----BEGIN PRIVATE KEY-----\n"), "the form that the TLS library reads");
        return Base64.getMimeDecoder().decode(found.replaceAll("-----[A-Z ]+-----", ""));
    }

    private String refused(String text) throws IOException {
        Files.writeString(file, text);
        String message =
                assertThrows(IOException.class, () -> PemKey.pkcs8(file), text).getMessage();
        assertTrue(message.contains(file.toString()), message);
        assertFalse(
                text.length() > 100 && message.contains(text.substring(40, 80)),
                "the message reveals nothing of the key");
        return message;
    }

    private static byte[] ec() throws Exception {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
        generator.initialize(new ECGenParameterSpec("secp256r1"));
        return generator.generateKeyPair().getPrivate().getEncoded();
    }

    /** RFC 5915 with its curve, as openssl writes it. */
    private static byte[] sec1() {
        byte[] curve = {0x06, 0x08, 0x2a, (byte) 0x86, 0x48, (byte) 0xce, 0x3d, 0x03, 0x01, 0x07};
        byte[] der = new byte[2 + 3 + 2 + 32 + 2 + curve.length];
        der[0] = 0x30;
        der[1] = (byte) (der.length - 2);
        System.arraycopy(new byte[] {0x02, 0x01, 0x01, 0x04, 0x20}, 0, der, 2, 5);
        Arrays.fill(der, 7, 39, (byte) 0x11);
        der[39] = (byte) 0xa0;
        der[40] = (byte) curve.length;
        System.arraycopy(curve, 0, der, 41, curve.length);
        return der;
    }

    @Test
    void pkcs8StaysAsItIs() throws Exception {
        byte[] key = ec();
        assertArrayEquals(key, read("# a comment before it\n" + pem("PRIVATE KEY", key)));
    }

    @Test
    void pkcs1IsWrapped() throws Exception {
        KeyPair pair = KeyPairGenerator.getInstance("RSA").generateKeyPair();
        byte[] pkcs8 = pair.getPrivate().getEncoded();
        // after version, algorithm and the headers of a 2,048-bit key
        byte[] pkcs1 = Arrays.copyOfRange(pkcs8, 26, pkcs8.length);
        assertArrayEquals(pkcs8, read(pem("RSA PRIVATE KEY", pkcs1)));
    }

    @Test
    void sec1IsWrappedWithItsCurve() throws Exception {
        byte[] wrapped = read(pem("EC PRIVATE KEY", sec1()));
        assertTrue(
                KeyFactory.getInstance("EC")
                                .generatePrivate(new PKCS8EncodedKeySpec(wrapped))
                                .toString()
                                .length()
                        > 0,
                "the JVM reads it");
    }

    @Test
    void everyCutOfASec1KeyIsAnErrorThatNamesTheFile() throws Exception {
        byte[] key = sec1();
        for (int length = 1; length < key.length; length++) {
            refused(pem("EC PRIVATE KEY", Arrays.copyOf(key, length)));
        }
    }

    @Test
    void lengthsThatAreTooLongEndNowhere() throws Exception {
        for (byte[] head : new byte[][] {
            {0x30, (byte) 0x84, (byte) 0xff, (byte) 0xff, (byte) 0xff, (byte) 0xff}, {0x30, (byte) 0xff}, {0x30, 0x7f}
        }) {
            refused(pem("EC PRIVATE KEY", Arrays.copyOf(head, 40)));
        }
    }

    @Test
    void whatIsNoKeyIsAnError() throws Exception {
        refused("");
        refused(pem("CERTIFICATE", sec1()));
        refused(pem("ENCRYPTED PRIVATE KEY", sec1()));
        assertTrue(refused("-----BEGIN PRIVATE KEY-----\nAAAAA\n-----END PRIVATE KEY-----\n")
                .contains("Base64"));
        byte[] withoutCurve = Arrays.copyOf(sec1(), 39);
        withoutCurve[1] = 37;
        assertTrue(refused(pem("EC PRIVATE KEY", withoutCurve)).contains("does not name its curve"));
    }
}
