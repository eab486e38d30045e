package io.hudioperator;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import org.apache.spark.sql.hudi.command.procedures.HoodieProcedures;
import org.apache.spark.sql.hudi.command.procedures.Procedure;
import scala.collection.Iterator;

/** What programs may do to a Hudi table, one verdict for each statement, procedure and way to save; what is not listed is refused. */
final class Statements {
  private static final JsonNode LIST = load();
  private static final Pattern OUTER = Pattern.compile("\\$.*$");

  private final String what;
  private final JsonNode entry;

  private Statements(String what, JsonNode entry) {
    this.what = what;
    this.entry = entry;
  }

  private static JsonNode load() {
    try (InputStream in = Statements.class.getResourceAsStream("statements.json")) {
      return Json.parse(new String(in.readAllBytes(), StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new IllegalStateException("statements.json is not in the jar", e);
    }
  }

  /** By the name of the class that runs it. */
  static Statements statement(String command) {
    JsonNode entry = LIST.path("statements").path(command);
    return new Statements(entry.isMissingNode() ? command : Json.text(entry, "statement"), entry);
  }

  /** By mode and operation, in lower case; an empty operation stands for any that is not listed with that mode. */
  static Statements save(String mode, String operation) {
    String what = "saving with mode " + mode + (operation.isEmpty() ? "" : " and operation " + operation);
    JsonNode entry = LIST.path("saves").path(mode + "/" + operation);
    boolean any = entry.isMissingNode() && !"append".equals(mode);
    return new Statements(what, any ? LIST.path("saves").path(mode + "/") : entry);
  }

  static Statements procedure(Procedure procedure) {
    String name = nameOf(procedure.getClass());
    return new Statements("CALL " + name, LIST.path("procedures").path(name));
  }

  /** Hudi's registry knows names and builders; a builder lies in the class of what it builds. */
  private static String nameOf(Class<?> procedure) {
    String wanted = OUTER.matcher(procedure.getName()).replaceFirst("");
    Iterator<String> names = HoodieProcedures.procedures().keysIterator();
    while (names.hasNext()) {
      String name = names.next();
      if (OUTER.matcher(HoodieProcedures.procedures().apply(name).getClass().getName()).replaceFirst("").equals(wanted)) {
        return name;
      }
    }
    return procedure.getSimpleName();
  }

  boolean isRefused() {
    String verdict = entry.path("verdict").asText();
    return !"works".equals(verdict) && !"harmless".equals(verdict);
  }

  void require() {
    if (isRefused()) {
      String instead = entry.path("instead").asText("what is listed there");
      throw StatementRules.refusal(what, instead);
    }
  }
}
