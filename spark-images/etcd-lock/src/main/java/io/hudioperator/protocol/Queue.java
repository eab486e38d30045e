package io.hudioperator.protocol;

import com.fasterxml.jackson.databind.JsonNode;
import io.hudioperator.contract.Json;
import io.hudioperator.etcd.KeyValue;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The order of waiters. Fairness only; safety does not depend on it: the acquire transaction
 * decides. Order: tickets that were overtaken 8 times, then priority, then age. So a stream of
 * high-priority writers cannot starve a low-priority one (F24).
 */
final class Queue {
    static final int MAX_OVERTAKES = 8;

    private static final class Ticket {
        final String name;
        final int priority;
        final int overtaken;
        final long createRevision;

        Ticket(KeyValue kv, String prefix) {
            JsonNode value = Json.parse(kv.value());
            name = kv.key().substring(prefix.length());
            priority = value.path("priority").asInt(0);
            overtaken = value.path("overtaken").asInt(0);
            createRevision = kv.createRevision();
        }
    }

    private static final Comparator<Ticket> ORDER = Comparator.comparing((Ticket t) -> t.overtaken < MAX_OVERTAKES)
            .thenComparing(t -> t.overtaken < MAX_OVERTAKES ? -t.priority : 0)
            .thenComparing(t -> t.createRevision);

    private final List<Ticket> tickets = new ArrayList<>();

    Queue(List<KeyValue> keys, String prefix) {
        keys.forEach(kv -> tickets.add(new Ticket(kv, prefix)));
        tickets.sort(ORDER);
    }

    boolean isEmpty() {
        return tickets.isEmpty();
    }

    boolean contains(String ticket) {
        return tickets.stream().anyMatch(t -> t.name.equals(ticket));
    }

    boolean isFirst(String ticket) {
        return !tickets.isEmpty() && tickets.get(0).name.equals(ticket);
    }

    /** The ticket directly before this one; null when this one is first or absent. */
    String predecessor(String ticket) {
        String before = null;
        for (Ticket t : tickets) {
            if (t.name.equals(ticket)) {
                return before;
            }
            before = t.name;
        }
        return null;
    }

    /**
     * Tickets that are older than this one: being served after them does not count as being
     * overtaken.
     */
    Set<String> olderThan(String ticket) {
        Set<String> older = new HashSet<>();
        long mine = tickets.stream()
                .filter(t -> t.name.equals(ticket))
                .mapToLong(t -> t.createRevision)
                .findFirst()
                .orElse(Long.MAX_VALUE);
        tickets.stream().filter(t -> t.createRevision < mine).forEach(t -> older.add(t.name));
        return older;
    }
}
