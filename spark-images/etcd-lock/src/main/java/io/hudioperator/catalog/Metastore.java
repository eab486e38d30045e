package io.hudioperator.catalog;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hudi.hive.HiveSyncConfig;
import org.apache.hudi.hive.HoodieHiveSyncException;
import org.apache.hudi.hive.util.IMetaStoreClientUtil;

/**
 * Operations on a metastore that Hudi's tool lacks, or cannot do with each value. They use Hive's
 * client of the tool's thread, from Spark's jars, which this module is not compiled with.
 */
final class Metastore {
    /** Key of the location among the properties of a table; no property of Hive has this name. */
    static final String LOCATION = "";

    private final Object client;
    private final Class<?> api;

    Metastore(HiveSyncConfig settings) {
        Method made = Arrays.stream(IMetaStoreClientUtil.class.getMethods())
                .filter(method -> "getMSC".equals(method.getName()))
                .findFirst()
                .orElseThrow();
        try {
            Object hive = HiveSyncConfig.class.getMethod("getHiveConf").invoke(settings);
            this.client = made.invoke(null, hive);
        } catch (ReflectiveOperationException error) {
            throw failed("no client of the metastore", error);
        }
        this.api = made.getReturnType();
    }

    /** Take a partition off a table; nothing happens when there is none with these values. */
    void dropPartition(String database, String table, List<String> values) {
        try {
            api.getMethod("dropPartition", String.class, String.class, List.class, boolean.class)
                    .invoke(client, database, table, values, false);
        } catch (InvocationTargetException error) {
            if (!absent(error)) {
                throw failed("partition " + values + " of " + table + " is not dropped", error);
            }
        } catch (ReflectiveOperationException error) {
            throw failed("partition " + values + " of " + table + " is not dropped", error);
        }
    }

    /** Names of a table's partition columns. */
    List<String> partitionColumns(String database, String table) {
        try {
            Object found = api.getMethod("getTable", String.class, String.class).invoke(client, database, table);
            List<String> names = new ArrayList<>();
            for (Object column :
                    (List<?>) found.getClass().getMethod("getPartitionKeys").invoke(found)) {
                names.add(String.valueOf(column.getClass().getMethod("getName").invoke(column)));
            }
            return names;
        } catch (ReflectiveOperationException error) {
            throw failed("table " + table + " is not read", error);
        }
    }

    /**
     * Properties of a table, and its location.
     *
     * @return null when there is no such table
     */
    Map<String, String> properties(String database, String table) {
        try {
            Object found = api.getMethod("getTable", String.class, String.class).invoke(client, database, table);
            Map<String, String> properties = new HashMap<>();
            Object parameters = found.getClass().getMethod("getParameters").invoke(found);
            if (parameters != null) {
                ((Map<?, ?>) parameters)
                        .forEach((key, value) -> properties.put(String.valueOf(key), String.valueOf(value)));
            }
            Object storage = found.getClass().getMethod("getSd").invoke(found);
            Object location = storage.getClass().getMethod("getLocation").invoke(storage);
            properties.put(LOCATION, String.valueOf(location));
            return properties;
        } catch (InvocationTargetException error) {
            if (absent(error)) {
                return null;
            }
            throw failed("table " + table + " is not read", error);
        } catch (ReflectiveOperationException error) {
            throw failed("table " + table + " is not read", error);
        }
    }

    /** Take a table out of the metastore, not its data; nothing happens when it is not there. */
    void dropTable(String database, String table) {
        try {
            api.getMethod("dropTable", String.class, String.class, boolean.class, boolean.class)
                    .invoke(client, database, table, false, true);
        } catch (InvocationTargetException error) {
            if (!absent(error)) {
                throw failed("table " + table + " is not dropped", error);
            }
        } catch (ReflectiveOperationException error) {
            throw failed("table " + table + " is not dropped", error);
        }
    }

    private static boolean absent(InvocationTargetException error) {
        return "NoSuchObjectException".equals(error.getCause().getClass().getSimpleName());
    }

    private static HoodieHiveSyncException failed(String what, ReflectiveOperationException error) {
        return new HoodieHiveSyncException(what, error instanceof InvocationTargetException ? error.getCause() : error);
    }
}
