package io.hudioperator.protocol;

import com.fasterxml.jackson.databind.JsonNode;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.ProtocolData;
import java.util.Map;

/**
 * The durations of the protocol, in seconds. A setting takes precedence over the table's gate, and
 * the gate over protocol.json.
 */
public final class Durations {
    public final int lease;
    final int keepAlive;
    public final int silence;
    public final int maxClockSkew;
    public final int drain;

    private Durations(Map<String, String> settings, JsonNode lock) {
        lease = pick("leaseSeconds", settings, lock);
        keepAlive = pick("keepAliveSeconds", settings, lock);
        silence = pick("silenceSeconds", settings, lock);
        maxClockSkew = pick("maxClockSkewSeconds", settings, lock);
        drain = pick("drainSeconds", settings, lock);
        int rpc = pick("rpcTimeoutSeconds", settings, lock);
        if (keepAlive + 2 * rpc > lease) {
            throw ErrorCode.OPTION.exception("keepAliveSeconds + 2 x rpcTimeoutSeconds must not exceed leaseSeconds: "
                    + keepAlive + " + 2 x " + rpc + " > " + lease);
        }
    }

    public static Durations of(Map<String, String> settings, JsonNode gate) {
        return new Durations(settings, gate.path("lock"));
    }

    private static int pick(String name, Map<String, String> settings, JsonNode lock) {
        String set = settings.get(name);
        if (set != null && !set.isEmpty()) {
            return Integer.parseInt(set);
        }
        return lock.path(name).asInt(ProtocolData.duration(name));
    }
}
