package io.hudioperator.databases;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.SQLException;
import org.apache.spark.sql.jdbc.JdbcConnectionProvider;
import scala.collection.immutable.Map;

/**
 * Opens the connections of a {@code source.jdbc} in Spark's tasks. Spark's own provider would need
 * the password as an option, which Spark keeps in the plan and sends with each task.
 */
public final class DatabaseConnections extends JdbcConnectionProvider {
    static final String NAME = "hudi-operator";
    static final String FOLDER = "hudioperatorfolder";
    static final String TLS = "hudioperatortls";

    @Override
    public String name() {
        return NAME;
    }

    /**
     * Option of the runtime's own reads: other readers of the same driver keep Spark's provider.
     */
    @Override
    public boolean canHandle(Driver driver, Map<String, String> options) {
        return options.contains(FOLDER);
    }

    @Override
    public Connection getConnection(Driver driver, Map<String, String> options) {
        try {
            return Databases.open(driver, options.apply("url"), Path.of(options.apply(FOLDER)), options.apply(TLS));
        } catch (SQLException e) {
            throw DatabaseConnections.<RuntimeException>unchecked(e);
        }
    }

    @Override
    public boolean modifiesSecurityContext(Driver driver, Map<String, String> options) {
        return false;
    }

    /** Scala's interface declares no exception, and Spark expects the driver's own. */
    @SuppressWarnings("unchecked")
    private static <E extends Exception> E unchecked(SQLException e) throws E {
        throw (E) e;
    }
}
