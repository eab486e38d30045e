package io.hudioperator.contract;

/** The keys of one table, made from the templates of protocol.json. */
public final class TableKeys {
    private final String prefix;
    private final String tableId;

    public TableKeys(String prefix, String tableId) {
        this.prefix = prefix.endsWith("/") ? prefix.substring(0, prefix.length() - 1) : prefix;
        this.tableId = tableId;
    }

    public String prefix() {
        return prefix;
    }

    public String tablePrefix() {
        return prefix + "/tables/" + tableId + "/";
    }

    public String controlPrefix() {
        return prefix + "/control/" + tableId + "/";
    }

    public String gate() {
        return key("gate", "");
    }

    public String admit(String attempt) {
        return key("admit", attempt);
    }

    public String fence(String inc) {
        return key("fence", inc);
    }

    public String writer(String inc) {
        return key("writer", inc);
    }

    public String alive(String inc) {
        return key("alive", inc);
    }

    public String lock() {
        return key("lock", "");
    }

    public String queue(String ticket) {
        return key("queue", ticket);
    }

    public String instant(String time) {
        return key("instant", time);
    }

    public String clock() {
        return key("clock", "");
    }

    public String settle(String inc) {
        return key("settle", inc);
    }

    private String key(String name, String argument) {
        return prefix + "/" + ProtocolData.keyRange(name) + "/" + tableId + "/"
                + ProtocolData.keyPath(name).replaceFirst("<[a-z]+>", argument);
    }

    /** The first key after all keys with the prefix. */
    public static String rangeEnd(String prefix) {
        int last = prefix.length() - 1;
        return prefix.substring(0, last) + (char) (prefix.charAt(last) + 1);
    }
}
