package io.hudioperator;

import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/** Opens the driver's session before anything of Hudi runs. Without a table in the environment (agent, executor) it does nothing. */
public final class HudiOperatorPlugin implements SparkPlugin {

  @Override
  public DriverPlugin driverPlugin() {
    return new Driver();
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return null;
  }

  private static final class Driver implements DriverPlugin {
    private Session session;

    @Override
    public Map<String, String> init(SparkContext context, PluginContext pluginContext) {
      Map<String, String> env = System.getenv();
      if (!env.getOrDefault("HUDI_OPERATOR_TABLE_ID", "").isEmpty()) {
        session = Sessions.openDriver(env, Map.of(), Sessions::haltJvm);
      }
      return Map.of();
    }

    /** Called when the application id is known. */
    @Override
    public void registerMetrics(String appId, PluginContext pluginContext) {
      if (session != null) {
        session.setAppId(appId);
      }
    }

    /** A session that cannot exit cleanly keeps its registration: the operator settles it. */
    @Override
    public void shutdown() {
      if (session != null) {
        session.close();
      }
    }
  }
}
