package io.hudioperator.contract;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Spelling and comparison of a table's base path, and derivation of the table id from it. The
 * operator uses the same rule.
 */
public final class TablePath {
    private static final Pattern SCHEME = Pattern.compile("^([A-Za-z][A-Za-z0-9+.-]*):/*(.*)$", Pattern.DOTALL);

    private static final Map<String, String> DEFAULT_PORTS = Map.of("hdfs", ":8020", "abfs", ":80", "abfss", ":443");

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

    /**
     * The path with host spellings normalized, to tell whether two paths may name the same place;
     * as {@code naming.place} in Python. Hosts and buckets are in lower case without a final dot,
     * the scheme's default port is omitted, {@code abfs} and {@code abfss} are equal. Hudi names a
     * local table with or without {@code file:}, depending on the caller.
     */
    public static String comparable(String path) {
        String canonical = canonical(path);
        if (canonical.startsWith("/")) {
            return canonical("file:" + canonical);
        }
        int end = canonical.indexOf("://");
        String scheme = end < 0 ? "" : canonical.substring(0, end);
        if (end < 0 || scheme.equals("file")) { // a local path has no host
            return canonical;
        }
        String rest = canonical.substring(end + 3);
        int slash = rest.indexOf('/');
        String host = (slash < 0 ? rest : rest.substring(0, slash)).toLowerCase(Locale.ROOT);
        String port = DEFAULT_PORTS.getOrDefault(scheme, "");
        if (!port.isEmpty() && host.endsWith(port)) {
            host = host.substring(0, host.length() - port.length());
        }
        String folder = slash < 0 ? "" : rest.substring(slash);
        return (scheme.equals("abfss") ? "abfs" : scheme) + "://" + host.replaceAll("[.]+$", "") + folder;
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
