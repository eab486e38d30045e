package io.hudioperator.protocol;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InstantTime;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.concurrent.TimeUnit;
import org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator;

/**
 * Keeps this host's wall clock from falling behind a promised time: instants and completion times
 * increase with tokens (I10).
 */
public final class WallClock {
    /**
     * Milliseconds beyond the allowed skew by which the gateway may let the table's clock be ahead:
     * it knows the API server's clock to within that. A waiter must wait that much longer (F416).
     */
    static final long TOLERANCE_MILLIS = 2000;

    private static volatile String refused;

    private WallClock() {}

    /**
     * Why this process can do nothing more at any table: the gateway has refused its times, or its
     * wall clock was set back. Null while neither has happened. It stays, whatever the clock says
     * later: Hudi keeps the times that it has made (F414). A table's clock that is ahead of this
     * host's concerns that table alone: a foreign file can be the reason.
     */
    public static String refused() {
        return refused;
    }

    static String refused(String why) {
        refused = why;
        return why;
    }

    /**
     * Returns once the wall clock has passed the table's clock. Throws when the wall clock is
     * further behind than allowed.
     */
    public static void passes(String clock, int maxSkewSeconds) throws InterruptedException {
        long behind = waitUntilPast(clock, maxSkewSeconds);
        if (behind > 0) {
            throw ErrorCode.CLOCK_BEHIND.exception("the wall clock of host " + host() + " is " + behind
                    + " ms behind the table's clock " + clock + "; at most " + maxSkewSeconds + " s are allowed");
        }
    }

    /**
     * The same for the last instant time that Hudi has made in this process, for whichever table.
     * Hudi makes no earlier one: it would repeat, with the table's lock, until the wall clock has
     * passed that time. It is in the future after the wall clock was set back (F415).
     */
    public static void passesOwnTimes(int maxSkewSeconds) throws InterruptedException {
        String last = HoodieInstantTimeGenerator.getLastInstantTime();
        long behind = InstantTime.isValid(last) ? waitUntilPast(last, maxSkewSeconds) : 0; // at first another text
        if (behind > 0) {
            throw ErrorCode.CLOCK_BEHIND.exception(refused("the wall clock of host " + host() + " was set back: it is "
                    + behind + " ms behind an instant time of this process, " + last + "; at most " + maxSkewSeconds
                    + " s are allowed"));
        }
    }

    /**
     * Returns 0 when the wall clock is past the time. When it is too far behind, returns at once
     * by how many milliseconds.
     */
    private static long waitUntilPast(String time, int maxSkewSeconds) throws InterruptedException {
        long target = InstantTime.millis(time);
        while (true) {
            long behind = target - System.currentTimeMillis();
            if (behind < 0) {
                return 0;
            }
            if (behind > TimeUnit.SECONDS.toMillis(maxSkewSeconds) + TOLERANCE_MILLIS) {
                return behind;
            }
            TimeUnit.MILLISECONDS.sleep(Math.min(behind + 1, 100));
        }
    }

    static String host() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return "unknown";
        }
    }
}
