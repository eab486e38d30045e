package io.hudioperator.contract;

import static java.util.Map.entry;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Fields of records that Python writes or reads, too. protocol.json lists them, and the operator's
 * tests compare the classes of Python with the same file.
 *
 * <p>The names are found in the sources: each is a literal where JSON is read or written.
 */
class RecordFieldsTest {
    private static final Path SOURCES = Path.of("src/main/java/io/hudioperator");

    /** Where each record is read or written: in a whole class, or in one method or constructor. */
    private static final Map<String, List<String>> PLACES = Map.ofEntries(
            entry("Gate", List.of("protocol/Gate", "protocol/Durations.of")),
            entry("Durations", List.of("protocol/Durations.Durations")),
            entry("Registration", List.of("protocol/Identity.registration", "protocol/Precedence")),
            entry("Alive", List.of("protocol/Liveness")),
            entry("Lock", List.of("protocol/Identity.lockValue", "protocol/LockProtocol", "protocol/LockWatch")),
            entry("Ticket", List.of("protocol/Identity.ticketValue", "protocol/Queue")),
            entry("InstantRecord", List.of("protocol/Identity.instantRecord", "protocol/InstantRecord")),
            entry("Clock", List.of("protocol/TableClock")),
            entry("Fence", List.of("protocol/Registration")),
            entry("SettleRecord", List.of("protocol/InstantProtocol")),
            entry("ConflictReport", List.of("FencedConflictResolutionStrategy")),
            entry("JobRecord", List.of("commit/WriteOptions.of", "commit/WriteOptions.hasKeysOnce")));

    /** The packages that see values of etcd. */
    private static final List<String> PACKAGES = List.of("protocol", "session");

    /** JSON of this module alone, and settings. */
    private static final Set<String> OTHERS = Set.of("protocol/TableStorage", "session/OpenSessions");

    private static final Pattern FIELD = Pattern.compile("(?:\\bJson\\.text\\([^;\"]*?, |\\bpick\\("
            + "|\\.(?:put|path|get|has|hasNonNull|putArray|putObject|withArray|withObject)\\()\"(\\w+)\"");

    @Test
    void everyFieldIsInTheDataFileAndTheOtherWayRound() {
        Map<String, Set<String>> told = new TreeMap<>();
        ProtocolData.data().get("records").fields().forEachRemaining(record -> {
            Set<String> names = new TreeSet<>();
            record.getValue().forEach(name -> names.add(name.asText()));
            told.put(record.getKey(), names);
        });
        Map<String, Set<String>> found = new TreeMap<>();
        PLACES.forEach((record, places) -> found.put(
                record,
                places.stream()
                        .flatMap(place -> fields(text(place)).stream())
                        .collect(Collectors.toCollection(TreeSet::new))));
        assertEquals(told, found);
    }

    /** A class that reads one is added to the list. */
    @Test
    void noOtherClassReadsAValueOfEtcd() throws IOException {
        Map<String, Set<String>> unlisted = new TreeMap<>();
        for (String name : PACKAGES) {
            try (Stream<Path> files = Files.list(SOURCES.resolve(name))) {
                files.map(file -> name + "/" + file.getFileName().toString().replace(".java", ""))
                        .filter(place -> !OTHERS.contains(place))
                        .filter(place -> !fields(rest(place)).isEmpty())
                        .forEach(place -> unlisted.put(place, fields(rest(place))));
            }
        }
        assertEquals(Map.of(), unlisted);
    }

    @Test
    void fieldsAreFound() {
        String code = "Json.text(Json.parse(kv.value()), \"a\"); value.path(\"b\").asInt(0); json.put(\"c\", x)"
                + ".put(\"d\", y); job.path(\"e\").hasNonNull(\"f\"); pick(\"g\", settings, lock);";
        assertEquals(Set.of("a", "b", "c", "d", "e", "e.f", "g"), fields(code));
    }

    /** A field that is read of another one has the path {@code other.field}. */
    private static Set<String> fields(String code) {
        Set<String> names = new TreeSet<>();
        Matcher m = FIELD.matcher(code);
        String before = "";
        int end = -2;
        while (m.find()) {
            // one character, the bracket, is between path("a") and .path("b")
            before = m.start() == end + 1 ? before + "." + m.group(1) : m.group(1);
            end = m.end();
            names.add(before);
        }
        return names;
    }

    /** Source of a class without what the list has of it. */
    private static String rest(String place) {
        String rest = text(place);
        for (List<String> places : PLACES.values()) {
            for (String one : places) {
                if (one.equals(place) || one.startsWith(place + ".")) {
                    rest = rest.replace(text(one), "");
                }
            }
        }
        return rest;
    }

    /** Source of a class, or of its first method of that name. */
    private static String text(String place) {
        String[] names = place.split("\\.");
        try {
            String code = Files.readString(SOURCES.resolve(names[0] + ".java"));
            if (names.length == 1) {
                return code;
            }
            Matcher m = Pattern.compile(
                            "^ {4}\\w[^=;\\n]*\\b" + names[1] + "\\(.*?^ {4}\\}$", Pattern.MULTILINE | Pattern.DOTALL)
                    .matcher(code);
            assertTrue(m.find(), place + " is not there");
            return m.group();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
