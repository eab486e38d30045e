package io.hudioperator;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Certificate chain and private key from PEM files. The JDK reads keys in PKCS#8 only; Helm and cert-manager write RSA keys in PKCS#1 and EC
 * keys in SEC 1, which are the same bytes without the name of the algorithm around them.
 */
final class PemIdentity {
  private static final Pattern KEY = Pattern.compile("-----BEGIN ((?:RSA |EC )?)PRIVATE KEY-----([A-Za-z0-9+/=\\s]+)-----END");
  private static final byte[] VERSION_0 = {0x02, 0x01, 0x00};
  // AlgorithmIdentifier of RSA: rsaEncryption (1.2.840.113549.1.1.1), NULL
  private static final byte[] RSA = {
    0x30, 0x0d, 0x06, 0x09, 0x2a, (byte) 0x86, 0x48, (byte) 0x86, (byte) 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00
  };
  // id-ecPublicKey (1.2.840.10045.2.1); the curve follows it
  private static final byte[] EC = {0x06, 0x07, 0x2a, (byte) 0x86, 0x48, (byte) 0xce, 0x3d, 0x02, 0x01};
  private static final int SEQUENCE = 0x30;
  private static final int OCTET_STRING = 0x04;
  private static final int CURVE_TAG = 0xa0;

  private PemIdentity() {}

  static X509Certificate[] certificates(String file) throws IOException, GeneralSecurityException {
    byte[] pem = Files.readAllBytes(Path.of(file));
    return CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(pem)).toArray(new X509Certificate[0]);
  }

  static PrivateKey privateKey(String file) throws IOException, GeneralSecurityException {
    Matcher m = KEY.matcher(Files.readString(Path.of(file), StandardCharsets.US_ASCII));
    if (!m.find()) {
      throw new GeneralSecurityException("no unencrypted private key in " + file);
    }
    byte[] der = Base64.getMimeDecoder().decode(m.group(2));
    switch (m.group(1)) {
      case "RSA ":
        return key(pkcs8(RSA, der));
      case "EC ":
        return key(pkcs8(tagged(SEQUENCE, join(EC, curve(der))), der));
      default:
        return key(der);
    }
  }

  private static PrivateKey key(byte[] pkcs8) throws GeneralSecurityException {
    GeneralSecurityException last = null;
    for (String algorithm : new String[] {"RSA", "EC", "EdDSA"}) {
      try {
        return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(pkcs8));
      } catch (GeneralSecurityException e) {
        last = e;
      }
    }
    throw last;
  }

  private static byte[] pkcs8(byte[] algorithm, byte[] key) {
    return tagged(SEQUENCE, join(VERSION_0, algorithm, tagged(OCTET_STRING, key)));
  }

  /** The curve in SEC 1's {@code SEQUENCE {INTEGER 1, OCTET STRING, [0] curve, …}}. */
  private static byte[] curve(byte[] der) throws GeneralSecurityException {
    int at = valueAt(der, 0);
    while (at < der.length) {
      int value = valueAt(der, at);
      int end = value + length(der, at);
      if ((der[at] & 0xff) == CURVE_TAG && end <= der.length) {
        return Arrays.copyOfRange(der, value, end);
      }
      at = end;
    }
    throw new GeneralSecurityException("an EC key that does not name its curve");
  }

  private static int valueAt(byte[] der, int at) {
    int first = der[at + 1] & 0xff;
    return at + 2 + (first < 0x80 ? 0 : first & 0x7f);
  }

  private static int length(byte[] der, int at) {
    int first = der[at + 1] & 0xff;
    if (first < 0x80) {
      return first;
    }
    int length = 0;
    for (int i = 0; i < (first & 0x7f); i++) {
      length = length << 8 | der[at + 2 + i] & 0xff;
    }
    return length;
  }

  private static byte[] tagged(int tag, byte[] value) {
    byte[] length =
        value.length < 0x80
            ? new byte[] {(byte) value.length}
            : new byte[] {(byte) 0x82, (byte) (value.length >> 8), (byte) value.length}; // a key has less than 64 KiB
    return join(new byte[] {(byte) tag}, length, value);
  }

  private static byte[] join(byte[]... parts) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      out.writeBytes(part);
    }
    return out.toByteArray();
  }
}
