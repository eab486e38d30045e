package io.hudioperator;

import io.hudioperator.contract.TableKeys;
import io.hudioperator.etcd.EtcdFacade;
import io.hudioperator.etcd.EtcdSettings;
import io.hudioperator.etcd.GrpcEtcdClient;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import java.util.Map;

/**
 * The entry points for Python through py4j: the sessions of this JVM, and etcd without a table.
 * API.md lists what callers may use of the returned objects.
 */
public final class Sessions {
    private Sessions() {}

    /**
     * Registers at a table and starts the heartbeat, or returns the open session of that table.
     * API.md lists the settings.
     */
    public static Session open(Map<String, String> settings) {
        return OpenSessions.open(settings, System.getenv(), OpenSessions::haltJvm);
    }

    /** The driver's session, which the Spark plugin opened; null in other processes. */
    public static Session current() {
        return OpenSessions.current();
    }

    /** etcd without a table, for an agent that is still looking for its tables. */
    public static EtcdFacade etcd(Map<String, String> settings) {
        EtcdSettings etcdSettings = EtcdSettings.of(settings, System.getenv());
        String prefix = new TableKeys(etcdSettings.prefix, "").prefix();
        return new EtcdFacade(GrpcEtcdClient.shared(etcdSettings), prefix, prefix + "/", prefix + "/control/");
    }
}
