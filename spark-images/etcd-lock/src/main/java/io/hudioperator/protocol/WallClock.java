package io.hudioperator.protocol;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.InstantTime;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.concurrent.TimeUnit;

/**
 * Keeps this host's wall clock from falling behind a promised time: instants and completion times
 * increase with tokens (I10).
 */
public final class WallClock {
    private WallClock() {}

    /**
     * Returns once the wall clock has passed the time. Throws when the wall clock is further behind
     * than allowed.
     */
    public static void passes(String clock, int maxSkewSeconds) throws InterruptedException {
        if (clock.isEmpty()) {
            return;
        }
        long target = InstantTime.millis(clock);
        while (true) {
            long behind = target - System.currentTimeMillis();
            if (behind < 0) {
                return;
            }
            if (behind > TimeUnit.SECONDS.toMillis(maxSkewSeconds)) {
                throw ErrorCode.CLOCK_BEHIND.exception("the wall clock of host " + host() + " is " + behind
                        + " ms behind the table's clock " + clock + "; at most " + maxSkewSeconds + " s are allowed");
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
