package io.hudioperator.session;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TimelineRefusedException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.Path;

/**
 * Instants that this session has given up. Hudi 1.2 does not end its heartbeat for a write to the metadata table when the commit is refused:
 * a timer of the living driver would make the file anew, every minute, after the table's agent has rolled the instant back (F77). Refused
 * once, the timer ends.
 */
public final class GivenUp {
  private static final Pattern HEARTBEAT = Pattern.compile("(.+?)/\\.hoodie/(?:metadata/\\.hoodie/)?\\.heartbeat/(\\d{14,17})\\d*");

  private final Set<String> instants = ConcurrentHashMap.newKeySet();

  void add(String instant) {
    instants.add(instant);
  }

  /** The session has claimed it: it is executed again. */
  void remove(String instant) {
    instants.remove(instant);
  }

  /** Refuses Hudi's heartbeat file of an instant that this process has given up; any other path may be written. */
  public static void requireNotBeating(String what, Path path) throws TimelineRefusedException {
    Matcher m = HEARTBEAT.matcher(path.toString());
    Session session = m.matches() ? OpenSessions.byPath(m.group(1)) : null;
    if (session != null && session.givenUp.instants.contains(m.group(2))) {
      throw ErrorCode.NOT_PENDING.refusal("instant " + m.group(2) + " was given up, Hudi's heartbeat of it ends: " + what);
    }
  }
}
