package io.hudioperator.etcd;

import io.hudioperator.contract.Environment;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.ProtocolData;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Addresses of etcd and credentials of this process. Holds no secrets, only file names. */
public final class EtcdSettings {
    final List<String> endpoints;
    public final String prefix;
    final String ca;
    final String cert;
    final String key;
    final String token;
    final Duration rpcTimeout;

    private EtcdSettings(
            List<String> endpoints,
            String prefix,
            String ca,
            String cert,
            String key,
            String token,
            Duration rpcTimeout) {
        this.endpoints = endpoints;
        this.prefix = prefix;
        this.ca = ca;
        this.cert = cert;
        this.key = key;
        this.token = token;
        this.rpcTimeout = rpcTimeout;
    }

    /** A setting takes precedence over its environment variable {@code HUDI_OPERATOR_ETCD_…}. */
    public static EtcdSettings of(Map<String, String> settings, Map<String, String> env) {
        String list = pick(settings, "endpoints", env, Environment.ETCD_ENDPOINTS, "");
        List<String> endpoints = new ArrayList<>();
        for (String endpoint : list.split(",")) {
            if (!endpoint.isBlank()) {
                endpoints.add(endpoint.trim());
            }
        }
        if (endpoints.isEmpty()) {
            throw ErrorCode.OPTION.exception("no etcd endpoints: set " + Environment.ETCD_ENDPOINTS);
        }
        long rpcSeconds = Long.parseLong(
                settings.getOrDefault("rpcTimeoutSeconds", String.valueOf(ProtocolData.duration("rpcTimeoutSeconds"))));
        return new EtcdSettings(
                List.copyOf(endpoints),
                pick(settings, "prefix", env, Environment.ETCD_PREFIX, ProtocolData.defaultPrefix()),
                pick(settings, "ca", env, Environment.ETCD_CA, ""),
                pick(settings, "cert", env, Environment.ETCD_CERT, ""),
                pick(settings, "key", env, Environment.ETCD_KEY, ""),
                pick(settings, "token", env, Environment.ETCD_TOKEN, ""),
                Duration.ofSeconds(rpcSeconds));
    }

    public static String pick(
            Map<String, String> settings, String name, Map<String, String> env, String variable, String otherwise) {
        String value = settings.get(name);
        if (value == null || value.isEmpty()) {
            value = variable == null ? null : env.get(variable);
        }
        return value == null || value.isEmpty() ? otherwise : value;
    }
}
