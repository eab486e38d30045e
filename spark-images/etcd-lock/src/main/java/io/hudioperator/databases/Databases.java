package io.hudioperator.databases;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.regex.Pattern;

/** One connection at a time to a PostgreSQL or a MariaDB, for one statement that reads. */
public final class Databases {
    private static final String POSTGRESQL = "org.postgresql.Driver";
    private static final String MARIADB = "org.mariadb.jdbc.Driver";
    /**
     * Host, port and name of a database, and no property of a driver: some name classes or files.
     * Spark knows MariaDB's way of quoting by the scheme of MySQL.
     */
    private static final Pattern URL =
            Pattern.compile("jdbc:(?:postgresql://" + place() + "|mysql://" + place() + "\\?permitMysqlScheme)");

    private static final Pattern LINE_END = Pattern.compile("\\r?\\n\\z");
    /** {@code SQLSTATE} of what another attempt cannot change: how and with what one connects. */
    private static final String UNUSABLE = "28000";

    private Databases() {}

    private static String place() {
        return "(?:[A-Za-z0-9._-]+|\\[[0-9A-Fa-f:]+\\]):[0-9]{1,5}/[A-Za-z0-9_][A-Za-z0-9_$-]*";
    }

    /** The values of the one row that the statement returns, as the database writes them. */
    public static List<String> row(String url, String folder, String tls, String sql) throws SQLException {
        try (Connection open = open(driver(url), url, Path.of(folder), tls);
                Statement statement = open.createStatement();
                ResultSet rows = statement.executeQuery(sql)) {
            List<String> found = new ArrayList<>();
            if (rows.next()) {
                for (int at = 1; at <= rows.getMetaData().getColumnCount(); at++) {
                    found.add(rows.getString(at));
                }
            }
            return found;
        }
    }

    /**
     * Kind of the values in the first column of the statement: {@code number}, {@code date} or
     * {@code time}; for any other column the database's name of its type, after a colon.
     */
    public static String kind(String url, String folder, String tls, String sql) throws SQLException {
        try (Connection open = open(driver(url), url, Path.of(folder), tls);
                Statement statement = open.createStatement();
                ResultSet rows = statement.executeQuery(sql)) {
            ResultSetMetaData columns = rows.getMetaData();
            switch (columns.getColumnType(1)) {
                case Types.TINYINT:
                case Types.SMALLINT:
                case Types.INTEGER:
                case Types.BIGINT:
                case Types.DECIMAL:
                case Types.NUMERIC:
                    return "number";
                case Types.DATE:
                    return "date";
                case Types.TIMESTAMP:
                case Types.TIMESTAMP_WITH_TIMEZONE:
                    return "time";
                default:
                    return ":" + columns.getColumnTypeName(1);
            }
        }
    }

    private static Driver driver(String url) throws SQLException {
        String name = url.startsWith("jdbc:postgresql:") ? POSTGRESQL : MARIADB;
        try {
            Class<?> found = Class.forName(name, true, Thread.currentThread().getContextClassLoader());
            return (Driver) found.getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException e) {
            throw new SQLException("the image has no " + name, UNUSABLE, e);
        }
    }

    /** A connection that only reads, in a session in UTC. */
    static Connection open(Driver driver, String url, Path folder, String tls) throws SQLException {
        if (!URL.matcher(url).matches()) {
            throw new SQLException("the URL has more than a host, a port and a database", UNUSABLE);
        }
        boolean postgresql = url.startsWith("jdbc:postgresql:");
        Properties settings = postgresql ? postgresql(folder, tls) : mariadb(folder, tls);
        settings.setProperty("user", secret(folder, "username"));
        settings.setProperty("password", secret(folder, "password"));
        Connection open = driver.connect(url, settings);
        if (open == null) {
            throw new SQLException("the driver " + driver.getClass().getName() + " is of another database", UNUSABLE);
        }
        try (Statement statement = open.createStatement()) {
            for (String each : postgresql
                    ? List.of("SET TIME ZONE 'UTC'", "SET DateStyle TO 'ISO, YMD'")
                    : List.of("SET time_zone = '+00:00'", "SET SESSION TRANSACTION READ ONLY")) {
                statement.execute(each);
            }
            return open;
        } catch (SQLException | RuntimeException e) {
            open.close();
            throw e;
        }
    }

    private static Properties postgresql(Path folder, String tls) {
        Properties settings = new Properties();
        settings.setProperty("ApplicationName", "hudi-operator");
        settings.setProperty("connectTimeout", "30"); // seconds
        settings.setProperty("loginTimeout", "60");
        settings.setProperty("tcpKeepAlive", "true");
        settings.setProperty("readOnly", "true");
        settings.setProperty("readOnlyMode", "always");
        settings.setProperty("gssEncMode", "disable");
        if (isOff(tls)) {
            settings.setProperty("sslmode", "disable");
            return settings;
        }
        settings.setProperty("sslmode", "verify-full");
        if (Files.exists(authority(folder))) {
            settings.setProperty("sslrootcert", authority(folder).toString());
        } else {
            settings.setProperty("sslfactory", "org.postgresql.ssl.DefaultJavaSSLFactory");
        }
        return settings;
    }

    private static Properties mariadb(Path folder, String tls) {
        Properties settings = new Properties();
        settings.setProperty("connectTimeout", "30000"); // milliseconds
        settings.setProperty("tcpKeepAlive", "true");
        // A server could ask its client for files, and for a password in the clear.
        settings.setProperty("allowLocalInfile", "false");
        settings.setProperty("restrictedAuth", "mysql_native_password,client_ed25519,caching_sha2_password,parsec");
        settings.setProperty("connectionTimeZone", "UTC");
        settings.setProperty("sslMode", isOff(tls) ? "disable" : "verify-full");
        if (!isOff(tls) && Files.exists(authority(folder))) {
            settings.setProperty("serverSslCert", authority(folder).toString());
        }
        return settings;
    }

    private static boolean isOff(String tls) {
        return tls.equals("Off");
    }

    private static Path authority(Path folder) {
        return folder.resolve("ca.crt");
    }

    private static String secret(Path folder, String key) throws SQLException {
        try {
            return LINE_END.matcher(Files.readString(folder.resolve(key))).replaceFirst("");
        } catch (IOException e) {
            throw new SQLException("the Secret has no readable key " + key, UNUSABLE, e);
        }
    }
}
