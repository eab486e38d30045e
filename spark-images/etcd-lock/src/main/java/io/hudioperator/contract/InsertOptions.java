package io.hudioperator.contract;

import java.util.Map;

/**
 * The two options of Hudi with which a write leaves out rows whose keys the table has: it is then
 * carried out as an insert, whatever its operation is called. The runtime's own writes set both to
 * their defaults.
 */
public final class InsertOptions {
    public static final String DROPS = "hoodie.datasource.write.insert.drop.duplicates";
    public static final String POLICY = "hoodie.datasource.insert.dup.policy";

    /** Both options with Hudi's defaults. With these no row is left out. */
    public static final Map<String, String> DEFAULTS = Map.of(DROPS, "false", POLICY, "none");

    private InsertOptions() {}
}
