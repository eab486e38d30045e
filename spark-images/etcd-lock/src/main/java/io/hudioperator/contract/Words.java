package io.hudioperator.contract;

import java.util.Locale;

/**
 * States, phases, roles and modes in records that the operator or the runtime writes or reads, too.
 * protocol.json lists the same values. A value that is not among them comes from a later version.
 */
public final class Words {
    private Words() {}

    /** State of the gate. */
    public enum GateState implements Word {
        OPEN,
        CLOSED,
        FROZEN;

        @Override
        public String word() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** The condition under which a dead writer's lock is deleted. */
    public enum FencingMode implements Word {
        POD_TERMINATION,
        CREDENTIALS,
        LEASE_ONLY
    }

    /** Number of writers that a table has at a time, and the handling of conflicts. */
    public enum Concurrency implements Word {
        SINGLE_WRITER,
        OPTIMISTIC,
        NON_BLOCKING
    }

    /** The role of an incarnation. */
    public enum Role implements Word {
        WRITER,
        AGENT;

        @Override
        public String word() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** State of the record of an instant. */
    public enum InstantState implements Word {
        /** Not completed, and not given up by its owner. */
        PENDING,
        /** Its owner has declared that it will never publish the instant (F4). */
        ABANDONED
    }

    /** Handling of a key that an insert finds in the table. */
    public enum Duplicates implements Word {
        FAIL,
        DROP,
        ALLOW
    }

    /** Phases of settling in their order. */
    public enum Phase implements Word {
        FENCED,
        TERMINATING,
        DRAINING,
        UNLOCKED,
        ROLLING_BACK,
        SWEPT,
        SETTLED
    }
}
