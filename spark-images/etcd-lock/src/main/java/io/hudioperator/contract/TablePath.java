package io.hudioperator.contract;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How the base path of a table is spelled and compared, and how the table id is derived from it.
 * The operator uses the same rule.
 */
public final class TablePath {
    private static final Pattern SCHEME = Pattern.compile("^([A-Za-z][A-Za-z0-9+.-]*):/*(.*)$", Pattern.DOTALL);

    private TablePath() {}

    /**
     * The canonical spelling of a base path: scheme in lower case, s3 and s3n as s3a, no repeated
     * and no trailing slashes.
     */
    public static String canonical(String path) {
        Matcher m = SCHEME.matcher(path.strip());
        if (!m.matches()) {
            String plain = path.strip().replaceAll("/{2,}", "/");
            return plain.endsWith("/") ? plain.substring(0, plain.length() - 1) : plain;
        }
        String scheme = m.group(1).toLowerCase(Locale.ROOT);
        if (scheme.equals("s3") || scheme.equals("s3n")) {
            scheme = "s3a";
        }
        return scheme + "://" + m.group(2).replaceAll("/{2,}", "/").replaceAll("^/|/$", "");
    }

    /** Hudi names a local table with or without {@code file:}, depending on the caller. */
    public static String comparable(String path) {
        String canonical = canonical(path);
        return canonical.startsWith("/") ? canonical("file:" + canonical) : canonical;
    }

    /** The first 32 hexadecimal digits of the SHA-256 of the canonical path. */
    public static String tableId(String path) {
        try {
            byte[] hash =
                    MessageDigest.getInstance("SHA-256").digest(canonical(path).getBytes(StandardCharsets.UTF_8));
            StringBuilder hex = new StringBuilder();
            for (int i = 0; i < 16; i++) {
                hex.append(String.format("%02x", hash[i]));
            }
            return hex.toString();
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
