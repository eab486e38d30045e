package io.hudioperator.protocol;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Shared knowledge of etcd's silence among the sessions of an agent's process. One halt ends the
 * work at all tables of the process, so no session halts before each of them has been without an
 * answer for its own silenceSeconds. A session whose own requests have no answer while those of
 * others have one ends alone.
 */
final class SilenceOfAgents {
    static final SilenceOfAgents OF_PROCESS = new SilenceOfAgents();

    /** A session of the process. */
    interface Member {
        /** For longer than its silenceSeconds. */
        boolean silentTooLong();

        Silence silence();
    }

    private final Set<Member> sessions = ConcurrentHashMap.newKeySet();

    /** For a process with one session. */
    static SilenceOfAgents alone() {
        return new SilenceOfAgents();
    }

    void joined(Member session) {
        sessions.add(session);
    }

    /** It has ended: its silence means nothing any more. */
    void left(Member session) {
        sessions.remove(session);
    }

    boolean allSilent() {
        return sessions.stream().allMatch(Member::silentTooLong);
    }

    /** Whether a session of the process has answers while this one has none. */
    boolean anotherIsAnswered(Silence one) {
        return sessions.stream().map(Member::silence).anyMatch(one::isPassedOverFor);
    }
}
