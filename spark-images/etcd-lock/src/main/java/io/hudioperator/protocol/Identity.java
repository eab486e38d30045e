package io.hudioperator.protocol;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.hudioperator.contract.Environment;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.Json;
import io.hudioperator.contract.ProtocolData;
import io.hudioperator.contract.Words.InstantState;
import io.hudioperator.contract.Words.Role;
import io.hudioperator.etcd.EtcdSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.UUID;

/** The identity of an incarnation, as it writes it into etcd. */
public final class Identity {
    private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

    public final String inc = UUID.randomUUID().toString();
    public final String attempt;
    public final String role;
    public final int priority;
    private final String pod;
    private final String namespace;
    private final String podUid;
    private final String node;
    private final String bootId;
    public volatile String appId;

    public Identity(Map<String, String> settings, Map<String, String> env) {
        attempt = EtcdSettings.pick(settings, "attempt", env, Environment.ATTEMPT, "");
        role = EtcdSettings.pick(settings, "role", env, Environment.ROLE, Role.WRITER.word());
        priority = priority(EtcdSettings.pick(settings, "priority", env, Environment.PRIORITY, "0"));
        pod = EtcdSettings.pick(settings, "podName", env, Environment.POD_NAME, "");
        namespace = EtcdSettings.pick(settings, "namespace", env, Environment.POD_NAMESPACE, "");
        podUid = EtcdSettings.pick(settings, "podUID", env, Environment.POD_UID, "");
        node = EtcdSettings.pick(settings, "node", env, Environment.NODE_NAME, "");
        bootId = EtcdSettings.pick(settings, "bootId", env, null, readBootId());
        appId = EtcdSettings.pick(settings, "appId", env, null, "");
        if (attempt.isEmpty()) {
            throw ErrorCode.OPTION.exception("no attempt: set " + Environment.ATTEMPT);
        }
    }

    private static int priority(String text) {
        try {
            return Integer.parseInt(text.trim());
        } catch (NumberFormatException e) {
            throw ErrorCode.OPTION.exception("priority must be a whole number, not " + text, e);
        }
    }

    private static String readBootId() {
        try {
            return Files.readString(BOOT_ID).trim();
        } catch (IOException e) {
            return "";
        }
    }

    boolean isAgent() {
        return Role.AGENT.is(role);
    }

    public boolean isWriter() {
        return Role.WRITER.is(role);
    }

    /**
     * Value of {@code writer/<inc>}. It contains the wall clock so that the operator can fence a
     * host whose clock is wrong (F19).
     */
    String registration() {
        return Json.object()
                .put("inc", inc)
                .put("attempt", attempt)
                .put("role", role)
                .put("pod", pod)
                .put("namespace", namespace)
                .put("podUID", podUid)
                .put("node", node)
                .put("bootId", bootId)
                .put("appId", appId)
                .put("priority", priority)
                .put("protocolVersion", ProtocolData.protocolVersion())
                .put("wallClockMs", System.currentTimeMillis())
                .toString();
    }

    String lockValue(String nonce) {
        return Json.object()
                .put("inc", inc)
                .put("attempt", attempt)
                .put("podUID", podUid)
                .put("nonce", nonce)
                .put("sinceMs", System.currentTimeMillis())
                .toString();
    }

    String ticketValue(int overtaken, long sinceMs) {
        return Json.object()
                .put("inc", inc)
                .put("priority", priority)
                .put("overtaken", overtaken)
                .put("sinceMs", sinceMs)
                .toString();
    }

    ObjectNode instantRecord(String action, InstantState state) {
        return Json.object()
                .put("inc", inc)
                .put("action", action)
                .put("state", state.word())
                .put("atMs", System.currentTimeMillis());
    }
}
