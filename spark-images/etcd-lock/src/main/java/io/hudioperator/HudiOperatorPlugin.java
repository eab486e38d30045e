package io.hudioperator;

import io.hudioperator.contract.Environment;
import io.hudioperator.session.LocalScope;
import io.hudioperator.session.LostExecutors;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import io.hudioperator.timeline.FolderRules;
import io.hudioperator.timeline.ProgramFiles;
import io.hudioperator.timeline.TimelineGuard;
import io.hudioperator.workarounds.MetadataSchema;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Opens the driver's session before any Hudi code runs. Opens none when the environment names no
 * table.
 */
public final class HudiOperatorPlugin implements SparkPlugin {
    /**
     * Key under which the driver sends its executors the base path of the table that they write.
     */
    private static final String WRITES = "table";

    private static final String REMOVE = "remove ";

    /** Spark's name of the executor that a driver is to itself when it computes locally. */
    private static final String DRIVER = "driver";

    /**
     * Set to true by the runtime when it runs code of a user: a program, or a python source. In the
     * environment, so that a session or a process that the code starts itself has it, too.
     */
    private static final String PROGRAM = Environment.PROGRAM;

    @Override
    public DriverPlugin driverPlugin() {
        return new Driver();
    }

    @Override
    public ExecutorPlugin executorPlugin() {
        return new Executor();
    }

    private static final class Executor implements ExecutorPlugin {
        @Override
        public void init(PluginContext pluginContext, Map<String, String> extraConf) {
            MetadataSchema.pin();
            if (pluginContext != null) {
                removedByDriver(pluginContext.executorID(), pluginContext::ask);
            }
            String table = extraConf == null ? "" : extraConf.getOrDefault(WRITES, "");
            if (!table.isEmpty()) {
                FolderRules.executorOfWriter(table);
                if (extraConf.size() > 1) {
                    ProgramFiles.ofProgram(table, extraConf);
                }
            }
        }
    }

    /** Sends a message to the driver, and returns its answer. */
    interface Asks {
        Object ask(Object message) throws Exception;
    }

    /** Has the driver delete files of timelines. One that computes locally would ask itself. */
    static void removedByDriver(String executor, Asks driver) {
        if (!DRIVER.equals(executor)) {
            TimelineGuard.removedBy(path -> {
                try {
                    return (Boolean) driver.ask(REMOVE + path);
                } catch (IOException e) {
                    throw e;
                } catch (Exception e) { // of Spark's messages
                    throw new IOException("the driver has not deleted " + path, e);
                }
            });
        }
    }

    private static final class Driver implements DriverPlugin {
        private Session session;
        private Configuration hadoop;

        /** Handles the message of {@link #removedByDriver}. */
        @Override
        public Object receive(Object message) throws IOException {
            Path path = new Path(String.valueOf(message).substring(REMOVE.length()));
            FileSystem storage = path.getFileSystem(hadoop);
            return TimelineGuard.delete(path, () -> storage.delete(path, false));
        }

        @Override
        public Map<String, String> init(SparkContext context, PluginContext pluginContext) {
            MetadataSchema.pin();
            LostExecutors.drivenBy(context);
            LocalScope.drivenBy(context);
            hadoop = context.hadoopConfiguration();
            Map<String, String> env = System.getenv();
            if (!env.getOrDefault(Environment.TABLE_ID, "").isEmpty()) {
                session = OpenSessions.openDriver(env, Map.of(), OpenSessions::haltJvm);
                session.reads().begin(HadoopFSUtils.getStorageConf(context.hadoopConfiguration()), session.basePath());
            }
            return session != null && session.isWriter() ? told(context) : Map.of();
        }

        /** Settings for the executors. */
        private Map<String, String> told(SparkContext context) {
            Map<String, String> told = new HashMap<>();
            if (Boolean.parseBoolean(System.getenv().getOrDefault(PROGRAM, "false"))) {
                told.putAll(ProgramFiles.rules(
                        HadoopFSUtils.getStorageConf(context.hadoopConfiguration()), session.basePath()));
                ProgramFiles.ofProgram(session.basePath(), told);
            }
            told.put(WRITES, session.basePath());
            return told;
        }

        /** Spark calls this once the application id is known. */
        @Override
        public void registerMetrics(String appId, PluginContext pluginContext) {
            if (session != null) {
                session.setAppId(appId);
            }
        }

        /** A session that cannot exit cleanly keeps its registration; the operator settles it. */
        @Override
        public void shutdown() {
            if (session != null) {
                session.close();
            }
        }
    }
}
