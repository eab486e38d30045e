package io.hudioperator.databases;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ServiceLoader;
import org.apache.spark.sql.jdbc.JdbcConnectionProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;

/** Connections with real servers: tests/tiers/hudi/test_jdbc.py. */
class DatabasesTest {
    @TempDir
    Path folder;

    @ParameterizedTest
    @ValueSource(
            strings = {
                "jdbc:postgresql://db:5432/shop?socketFactory=x",
                "jdbc:postgresql://db:5432/shop&loggerFile=x",
                "jdbc:postgresql://a:1,b:2/shop",
                "jdbc:postgresql:shop",
                "jdbc:mysql://db:3306/shop?permitMysqlScheme&allowLocalInfile=true",
                "jdbc:mysql://db:3306/shop",
                "jdbc:mysql://address=(host=db)(localSocket=/x)/shop?permitMysqlScheme",
                "jdbc:mariadb://db:3306/shop",
                "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'x'",
            })
    void aUrlHasNothingButAPlace(String url) {
        SQLException refused = assertThrows(SQLException.class, () -> Databases.open(null, url, folder, "Off"));
        assertEquals("the URL has more than a host, a port and a database", refused.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"jdbc:postgresql://[fd00::1]:5432/s_1$-x", "jdbc:mysql://db:3306/shop?permitMysqlScheme"})
    void aSecretHasAUserAndAPassword(String url) throws IOException {
        for (String key : new String[] {"username", "password"}) {
            SQLException refused = assertThrows(SQLException.class, () -> Databases.open(null, url, folder, "Off"));
            assertEquals("the Secret has no readable key " + key, refused.getMessage());
            Files.writeString(folder.resolve(key), "x");
        }
    }

    @Test
    void sparkFindsTheProviderForWhatTheRuntimeReadsAlone() {
        JdbcConnectionProvider found = ServiceLoader.load(JdbcConnectionProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .filter(each -> each.name().equals("hudi-operator"))
                .findFirst()
                .orElseThrow();
        Map<String, String> nothing = Map$.MODULE$.<String, String>empty();
        assertFalse(found.canHandle(null, nothing));
        assertTrue(found.canHandle(null, nothing.updated(DatabaseConnections.FOLDER, "/x")));
        assertFalse(found.modifiesSecurityContext(null, nothing));
    }
}
