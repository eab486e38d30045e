package io.hudioperator;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A private key in PEM as PKCS#8, the only form that Java reads. Helm and cert-manager write the older forms of RSA (PKCS#1) and elliptic curves
 * (SEC 1); these are wrapped.
 */
final class PrivateKeyPem {
  private static final Pattern OLD = Pattern.compile("-----BEGIN (RSA|EC) PRIVATE KEY-----([^-]+)-----END \\1 PRIVATE KEY-----");
  private static final byte[] VERSION_0 = {2, 1, 0};
  /** AlgorithmIdentifier of rsaEncryption, with NULL parameters. */
  private static final byte[] RSA = {0x30, 13, 6, 9, 0x2a, (byte) 0x86, 0x48, (byte) 0x86, (byte) 0xf7, 13, 1, 1, 1, 5, 0};
  /** Object identifier id-ecPublicKey. */
  private static final byte[] EC = {6, 7, 0x2a, (byte) 0x86, 0x48, (byte) 0xce, 0x3d, 2, 1};
  private static final int SEQUENCE = 0x30;
  private static final int OCTETS = 4;
  private static final int CURVE = 0xa0;

  private PrivateKeyPem() {}

  /** The file's content, wrapped when it has to be. */
  static InputStream pkcs8(Path file) throws IOException {
    String text = Files.readString(file, StandardCharsets.US_ASCII);
    Matcher old = OLD.matcher(text);
    if (old.find()) {
      byte[] key = Base64.getMimeDecoder().decode(old.group(2));
      byte[] algorithm = old.group(1).equals("RSA") ? RSA : element(SEQUENCE, EC, curve(key));
      byte[] wrapped = element(SEQUENCE, VERSION_0, algorithm, element(OCTETS, key));
      text = "-----BEGIN PRIVATE KEY-----\n" + Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(wrapped) + "\n-----END PRIVATE KEY-----\n";
    }
    return new ByteArrayInputStream(text.getBytes(StandardCharsets.US_ASCII));
  }

  /** The named curve in a SEC 1 key: SEQUENCE { version, private key, [0] curve, [1] public key }. */
  private static byte[] curve(byte[] key) throws IOException {
    ByteBuffer fields = ByteBuffer.wrap(key);
    fields.get();
    length(fields);
    while (fields.hasRemaining()) {
      int tag = fields.get() & 0xff;
      byte[] value = new byte[length(fields)];
      fields.get(value);
      if (tag == CURVE) {
        return value;
      }
    }
    throw new IOException("the EC private key does not name its curve");
  }

  private static int length(ByteBuffer der) {
    int first = der.get() & 0xff;
    if (first < 0x80) {
      return first;
    }
    int length = 0;
    for (int i = first & 0x7f; i > 0; i--) {
      length = length << 8 | der.get() & 0xff;
    }
    return length;
  }

  private static byte[] element(int tag, byte[]... parts) throws IOException {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      content.write(part);
    }
    int size = content.size();
    ByteArrayOutputStream element = new ByteArrayOutputStream();
    element.write(tag);
    if (size < 0x80) {
      element.write(size);
    } else if (size < 0x100) {
      element.write(0x81);
      element.write(size);
    } else {
      element.write(0x82);
      element.write(size >> 8);
      element.write(size);
    }
    content.writeTo(element);
    return element.toByteArray();
  }
}
