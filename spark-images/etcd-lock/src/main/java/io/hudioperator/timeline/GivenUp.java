package io.hudioperator.timeline;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.TimelineRefusedException;
import io.hudioperator.session.OpenSessions;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.Path;

/**
 * Refuses the heartbeat file of an instant that its session has given up. Hudi 1.2 does not stop
 * its heartbeat for a write to the metadata table when the commit is refused: a timer in the living
 * driver would recreate the file every minute, even after the table's agent has rolled the instant
 * back (F77). One refusal stops the timer. It must also come while the JVM ends, after the session
 * was closed.
 */
final class GivenUp {
    private static final Pattern HEARTBEAT =
            Pattern.compile("(.+?)/\\.hoodie/(?:metadata/\\.hoodie/)?\\.heartbeat/(\\d{14,17})\\d*");

    private GivenUp() {}

    /**
     * Refuses Hudi's heartbeat file of an instant that this process has given up; any other path
     * may be written.
     */
    static void requireNotBeating(String what, Path path) throws TimelineRefusedException {
        Matcher m = HEARTBEAT.matcher(path.toString());
        if (m.matches() && OpenSessions.hasGivenUp(m.group(1), m.group(2))) {
            throw ErrorCode.NOT_PENDING.refusal(
                    "instant " + m.group(2) + " was given up, so Hudi's heartbeat for it must end: " + what);
        }
    }
}
