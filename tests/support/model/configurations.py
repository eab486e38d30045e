"""The searches.

Each is small because its faults are bounded; their union covers everything that the protocol says.
"""

from __future__ import annotations

from tests.support.model.rules import Configuration

DISJOINT, OVERLAP, PARTLY = (1, 2), (1, 1), (3, 2)

SESSION = Configuration(
    "session",
    "leases run out and are renewed, acquires are executed late, clean exit, settling, a second writer",
    roles=("writer", "plain"),
    names=("W", "V"),
    program="lock",
    late=frozenset({"acquire"}),
    leases=frozenset({0}),
    deaths=frozenset({0}),
    hold_limit=frozenset({0}),
    collects=True,
)
REQUESTS = Configuration(
    "requests",
    "registration, keep-alive, release and clean exit executed long after their client gave up",
    roles=("writer", "plain"),
    names=("W", "V"),
    program="lock",
    max_late=2,
    max_acquires=1,
    renewals=1,
    late=frozenset({"register", "keepalive", "release", "clean-exit"}),
    leases=frozenset({0}),
    deaths=frozenset({0}),
    hold_limit=frozenset({0}),
    collects=True,
)
GATE = Configuration(
    "gate",
    "the mode changes from LeaseOnly to PodTermination while writers come and go",
    roles=("writer", "plain"),
    names=("W", "V"),
    program="lock",
    gate=True,
    max_acquires=1,
    renewals=1,
    late=frozenset({"acquire"}),
    leases=frozenset({0}),
    deaths=frozenset({0}),
)
COMMIT = Configuration(
    "commit",
    "two writers on two file groups, unknown publications, death, pause, settling, rollback by the agent",
    roles=("writer", "writer", "agent"),
    names=("Writer 1", "Writer 2", "Agent"),
    files=(OVERLAP, DISJOINT, PARTLY),
    leases=frozenset({0}),
    deaths=frozenset({0}),
    unknown="c",
)
BOTH = Configuration(
    "both fail",
    "two equal writers that both may die, overlapping or not",
    roles=("writer", "writer", "agent"),
    names=("Writer 1", "Writer 2", "Agent"),
    files=(OVERLAP, DISJOINT),
    symmetric=True,
    deaths=frozenset({0, 1}),
)
WIRE = Configuration(
    "wire",
    "one writer whose every PUT may be late: requested, inflight, metadata table, completed; listings that fail",
    roles=("writer", "agent"),
    names=("Writer", "Agent"),
    leases=frozenset({0}),
    deaths=frozenset({0}),
    unknown="rimc",
    failing_lists=True,
    hold_limit=frozenset({0}),
    abandon=True,
)
STREAMING = Configuration(
    "streaming",
    "Abandoned instants, declared by a second thread too, lost executors, late files, archival",
    roles=("writer", "agent"),
    names=("Writer", "Agent"),
    leases=frozenset({0}),
    deaths=frozenset({0}),
    unknown="c",
    abandon=True,
    lost_executors=True,
    archival=True,
)
ATTEMPTS = Configuration(
    "attempts",
    "attempts 1 and 2 of one HudiWriter on the same source rows; attempt 2 may wait for the lock of attempt 1",
    roles=("writer", "next", "agent"),
    names=("Attempt 1", "Attempt 2", "Agent"),
    files=((0, 0),),
    leases=frozenset({0}),
    deaths=frozenset({0, 1}),
    unknown="c",
)
TWINS = Configuration(
    "twins",
    "two JVMs of one attempt at the same time (a container restarted in place), on the same source rows",
    roles=("writer", "twin", "agent"),
    names=("The first JVM", "The second JVM", "Agent"),
    files=((0, 0),),
    leases=frozenset({0}),
    deaths=frozenset({0}),
)
AGENTS = Configuration(
    "agents",
    (
        "agents that pause or die in the middle of a rollback, a second agent, left-over heartbeat files, a foreign "
        "instant"
    ),
    roles=("writer", "agent", "agent"),
    names=("Writer", "Agent 1", "Agent 2"),
    files=((0, 0),),
    foreign=True,
    leases=frozenset({0, 1}),
    deaths=frozenset({0, 1}),
    begun=True,
)
SERVICES = Configuration(
    "services",
    "a pending compaction whose executor pauses or dies, two agents that would take it over, claims that come late",
    roles=("agent", "agent", "agent"),
    names=("Agent 1", "Agent 2", "Agent 3"),
    files=((0,),),
    compaction=True,
    late=frozenset({"claim"}),
    leases=frozenset({0}),
    deaths=frozenset({0}),
    unknown="c",
)
CLOCK = Configuration(
    "clock",
    "wall clocks that differ and step back, a holder that dies before its release",
    roles=("writer", "writer", "agent"),
    names=("Writer 1", "Writer 2", "Agent"),
    files=((1, 2),),
    clock=5,
    deaths=frozenset({0}),
)
UPGRADE = Configuration(
    "upgrade",
    "two operators at once (an upgrade in the middle of settling), every transaction of the old one may come late",
    roles=("writer", "plain", "agent"),
    names=("Writer", "V", "Agent"),
    files=((0, 0),),
    max_late=2,
    late=frozenset({"fence", "unlock", "settle-update", "settled"}),
    leases=frozenset({0}),
    deaths=frozenset({0}),
    renewals=1,
    collects=True,
)
LATE = Configuration(
    "late writes",
    "the transactions about an instant (record, publish, abandon, release) executed after their client gave up",
    roles=("writer", "agent"),
    names=("Writer", "Agent"),
    abandon=True,
    unknown="c",
    late=frozenset({"record-instant", "publish", "abandon", "release"}),
    leases=frozenset({0}),
    deaths=frozenset({0}),
    renewals=1,
    collects=True,
)
CREDENTIALS = Configuration(
    "credentials",
    (
        "a writer on a node that is lost for ever, paused or not: its credentials are revoked, servers of the store "
        "forget them one by one, the broker's answers are lost or untrue"
    ),
    roles=("writer", "writer", "agent"),
    names=("The lost writer", "Writer 2", "Agent"),
    files=(OVERLAP, DISJOINT),
    credentials=True,
    leases=frozenset({0}),
    unknown="c",
    reduced=False,
)
INSERTS = Configuration(
    "inserts",
    (
        "two writers that insert one key into file groups of their own, compared outside the lock and under it, the "
        "lock given back for another comparison outside; unknown publications, death, pause, settling"
    ),
    roles=("writer", "writer", "agent"),
    names=("Writer 1", "Writer 2", "Agent"),
    files=(DISJOINT,),
    keys=(1, 1),
    leases=frozenset({0}),
    deaths=frozenset({0}),
    unknown="c",
)
ALL = {
    c.name: c
    for c in (
        SESSION,
        REQUESTS,
        GATE,
        COMMIT,
        BOTH,
        WIRE,
        STREAMING,
        LATE,
        ATTEMPTS,
        TWINS,
        AGENTS,
        SERVICES,
        CLOCK,
        UPGRADE,
        CREDENTIALS,
        INSERTS,
    )
}
