package io.hudioperator.statements;

import com.fasterxml.jackson.databind.JsonNode;
import io.hudioperator.contract.ErrorCode;
import io.hudioperator.contract.Json;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.hudi.command.procedures.HoodieProcedures;
import org.apache.spark.sql.hudi.command.procedures.Procedure;
import scala.collection.Iterator;

/**
 * Allowed operations of programs on a Hudi table: one verdict for each statement, procedure and way
 * to save. Anything that is not listed is refused.
 */
final class Statements {
    private static final JsonNode LIST = load();

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

    /**
     * By mode and operation, in lower case. An empty operation means all operations that are not
     * listed with that mode.
     */
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

    /**
     * Hudi's registry knows names and builders. Several names may stand for one class; if one of
     * them is refused, the class is.
     */
    private static String nameOf(Class<?> procedure) {
        String found = procedure.getSimpleName();
        Iterator<String> names = HoodieProcedures.procedures().keysIterator();
        while (names.hasNext()) {
            String name = names.next();
            if (HoodieProcedures.newBuilder(name).build().getClass() == procedure) {
                found = name;
                if (new Statements(name, LIST.path("procedures").path(name)).isRefused()) {
                    return name;
                }
            }
        }
        return found;
    }

    boolean isRefused() {
        String verdict = entry.path("verdict").asText();
        return !"works".equals(verdict) && !"harmless".equals(verdict);
    }

    void require() {
        if (isRefused()) {
            String instead = entry.path("instead").asText("what is listed there");
            throw refusal(what, instead);
        }
    }

    /** Throws where less may be done to a table of mode NonBlocking, and this is not among it. */
    void requireInNonBlocking() {
        String instead = Json.text(entry, "inNonBlocking");
        if (!instead.isEmpty()) {
            throw refusal(what + " in a table of mode NonBlocking", instead);
        }
    }

    static RuntimeException refusal(String what, String instead) {
        return ErrorCode.STATEMENT.exception(
                what + " is refused; use " + instead + " (docs/use/what-user-code-may-do.md)");
    }
}
