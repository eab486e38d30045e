package io.hudioperator.session;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.spark.SparkContext;
import org.apache.spark.status.api.v1.ExecutorSummary;

/**
 * Which instants were written while an executor was lost. A task of it may still run, and its file may come after Hudi has compared the
 * files with the commit's metadata: a file of a completed instant that no metadata names, which readers that list files would show (F36).
 */
public final class LostExecutors {
  private static final long EVENTS_MILLIS = 2_000;
  private static final long UNKNOWN = -1;

  private static volatile SparkContext driver;

  private final Map<String, Long> atBegin = new ConcurrentHashMap<>();

  /** This JVM is the driver of executors; said by the Spark plugin, which is in every such JVM. */
  public static void drivenBy(SparkContext context) {
    driver = context;
  }

  /** The instant begins: tasks for it run on executors that are not lost yet. A loss of which the driver is told later counts as one during it. */
  void begins(String instant) {
    atBegin.put(instant, count(0));
  }

  /**
   * Of completed instants those that no lost executor can have written for. The records of the others stay: their owner cannot leave, and
   * they are swept when it and its executors are proven dead.
   */
  List<String> untouched(List<String> completed) {
    if (completed.isEmpty()) {
      return completed;
    }
    long now = count(EVENTS_MILLIS);
    return completed.stream().filter(t -> now != UNKNOWN && now == atBegin.getOrDefault(t, 0L)).collect(Collectors.toList());
  }

  void forget(List<String> instants) {
    atBegin.keySet().removeAll(instants);
  }

  /** Executors that this JVM's driver has lost since it began; none where there is no driver, or where it runs tasks itself. */
  private static long count(long waitMillis) {
    SparkContext context = driver;
    if (context == null || context.isLocal()) {
      return 0;
    }
    try {
      if (waitMillis > 0) {
        context.listenerBus().waitUntilEmpty(waitMillis); // the store below is told by events
      }
    } catch (TimeoutException e) {
      return UNKNOWN;
    }
    List<ExecutorSummary> known = scala.collection.JavaConverters.seqAsJavaList(context.statusStore().executorList(false));
    long lost = known.stream().filter(executor -> !executor.isActive()).count();
    return lost < context.getConf().getInt("spark.ui.retainedDeadExecutors", 100) ? lost : UNKNOWN;
  }
}
