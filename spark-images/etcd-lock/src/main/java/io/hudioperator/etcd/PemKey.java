package io.hudioperator.etcd;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Converts a private key in the PEM forms that common tools write to PKCS#8, the only form that the
 * TLS library reads. PKCS#1 ({@code RSA PRIVATE KEY}, RFC 8017: Helm, cert-manager) and SEC 1
 * ({@code EC PRIVATE KEY}, RFC 5915: openssl) are wrapped (RFC 5208).
 *
 * <p>BouncyCastle reads these forms, too. It is not used: it would be one more library in the jar,
 * beside the classes of Spark and Hudi, to put two constant headers before a key.
 */
final class PemKey {
    private static final Pattern BLOCK =
            Pattern.compile("-----BEGIN ((?:RSA |EC )?PRIVATE KEY)-----([A-Za-z0-9+/=\\s]+)-----END \\1-----");
    private static final byte[] VERSION = {0x02, 0x01, 0x00};
    private static final byte[] RSA = {
        0x06, 0x09, 0x2a, (byte) 0x86, 0x48, (byte) 0x86, (byte) 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00
    };
    private static final byte[] EC = {0x06, 0x07, 0x2a, (byte) 0x86, 0x48, (byte) 0xce, 0x3d, 0x02, 0x01};
    private static final int SEQUENCE = 0x30;
    private static final int OCTET_STRING = 0x04;
    private static final int EC_PARAMETERS = 0xa0;

    private PemKey() {}

    /**
     * Returns the first private key of a PEM file, as PKCS#8 in PEM. Throws IOException when there
     * is none or it is encrypted.
     */
    static InputStream pkcs8(Path file) throws IOException {
        Matcher block = BLOCK.matcher(Files.readString(file, StandardCharsets.US_ASCII));
        if (!block.find()) {
            throw new IOException("no unencrypted private key in PEM in " + file);
        }
        byte[] der;
        try {
            der = Base64.getMimeDecoder().decode(block.group(2));
        } catch (IllegalArgumentException e) {
            throw new IOException("the private key in " + file + " is not Base64", e);
        }
        byte[] wrapped = der;
        if (block.group(1).startsWith("RSA")) {
            wrapped = wrap(RSA, der);
        } else if (block.group(1).startsWith("EC")) {
            wrapped = wrap(concat(EC, curve(der, file)), der);
        }
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(wrapped);
        String pem = "-----BEGIN PRIVATE KEY-----\n" + text + "\n-----END PRIVATE KEY-----\n";
        return new ByteArrayInputStream(pem.getBytes(StandardCharsets.US_ASCII));
    }

    private static byte[] wrap(byte[] algorithm, byte[] key) {
        return tag(SEQUENCE, concat(VERSION, tag(SEQUENCE, algorithm), tag(OCTET_STRING, key)));
    }

    /** The object identifier of the curve (element [0] of RFC 5915's ECPrivateKey). */
    private static byte[] curve(byte[] der, Path file) throws IOException {
        try {
            ByteBuffer all = ByteBuffer.wrap(der);
            all.get();
            ByteBuffer sequence = content(all);
            while (sequence.hasRemaining()) {
                int tag = sequence.get() & 0xff;
                ByteBuffer content = content(sequence);
                if (tag == EC_PARAMETERS) {
                    byte[] found = new byte[content.remaining()];
                    content.get(found);
                    return found;
                }
            }
        } catch (BufferUnderflowException e) {
            throw new IOException("the EC private key in " + file + " is truncated or is not DER", e);
        }
        throw new IOException("the EC private key in " + file + " does not name its curve");
    }

    /**
     * The content of the element whose tag was just read; {@code in} keeps the rest. Throws
     * BufferUnderflowException when the content is incomplete.
     */
    private static ByteBuffer content(ByteBuffer in) {
        int first = in.get() & 0xff;
        long length = first;
        if (first >= 0x80) {
            length = 0;
            for (int i = 0; i < (first & 0x7f); i++) {
                length = length << 8 | in.get() & 0xff;
                if (length > in.remaining()) {
                    throw new BufferUnderflowException();
                }
            }
        }
        if (length > in.remaining()) {
            throw new BufferUnderflowException();
        }
        ByteBuffer content = in.slice().limit((int) length);
        in.position(in.position() + (int) length);
        return content;
    }

    private static byte[] tag(int tag, byte[] content) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(tag);
        if (content.length < 0x80) {
            out.write(content.length);
        } else if (content.length < 0x100) {
            out.write(0x81);
            out.write(content.length);
        } else {
            out.write(0x82);
            out.write(content.length >> 8);
            out.write(content.length);
        }
        out.writeBytes(content);
        return out.toByteArray();
    }

    private static byte[] concat(byte[]... parts) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            out.writeBytes(part);
        }
        return out.toByteArray();
    }
}
