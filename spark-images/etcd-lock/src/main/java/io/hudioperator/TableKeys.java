package io.hudioperator;

/** The keys of one table, made from the templates of protocol.json. */
final class TableKeys {
  private final String prefix;
  private final String tableId;

  TableKeys(String prefix, String tableId) {
    this.prefix = prefix.endsWith("/") ? prefix.substring(0, prefix.length() - 1) : prefix;
    this.tableId = tableId;
  }

  String prefix() {
    return prefix;
  }

  String tablePrefix() {
    return prefix + "/tables/" + tableId + "/";
  }

  String controlPrefix() {
    return prefix + "/control/" + tableId + "/";
  }

  String gate() {
    return key("gate", "");
  }

  String admit(String attempt) {
    return key("admit", attempt);
  }

  String fence(String inc) {
    return key("fence", inc);
  }

  String writer(String inc) {
    return key("writer", inc);
  }

  String alive(String inc) {
    return key("alive", inc);
  }

  String lock() {
    return key("lock", "");
  }

  String queue(String ticket) {
    return key("queue", ticket);
  }

  String instant(String time) {
    return key("instant", time);
  }

  String clock() {
    return key("clock", "");
  }

  String settle(String inc) {
    return key("settle", inc);
  }

  private String key(String name, String argument) {
    return prefix + "/" + ProtocolData.keyRange(name) + "/" + tableId + "/" + ProtocolData.keyPath(name).replaceFirst("<[a-z]+>", argument);
  }

  /** First key after all that begin with the prefix. */
  static String rangeEnd(String prefix) {
    int last = prefix.length() - 1;
    return prefix.substring(0, last) + (char) (prefix.charAt(last) + 1);
  }
}
