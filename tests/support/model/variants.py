"""Designs that must fail: each lacks one rule of the protocol, and the search must find what that
rule is for.

A model that cannot fail proves nothing. The expected invariants are those that the counter-example
is about; others may break as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.support.model import configurations as on
from tests.support.model.rules import Configuration, Rules


@dataclass(frozen=True)
class Variant:
    """One broken design, searched in one configuration."""

    name: str
    rules: Rules
    on: Configuration
    breaks: frozenset[str]

    @property
    def configuration(self) -> Configuration:
        """The configuration with the broken rules, without reductions: names stay what they are,
        the counter-example is a shortest one.

        (Except for I6, which needs the complete graph.)
        """
        return replace(self.on, rules=self.rules, symmetric=False, reduced=self.breaks == {"I6"})


def _variant(name: str, c: Configuration, breaks: str, **off: bool) -> Variant:
    return Variant(name, Rules(**off), c, frozenset(breaks.split()))  # type: ignore[arg-type]


def _lacks(name: str, c: Configuration, breaks: str, *compares: tuple[str, str], **off: bool) -> Variant:
    return Variant(name, replace(Rules(**off), without=frozenset(compares)), c, frozenset(breaks.split()))  # type: ignore[arg-type]


_SMALL = replace(on.COMMIT, files=(on.OVERLAP,))

# Those that docs/design/testing.md names.
REQUIRED: tuple[Variant, ...] = (
    _variant("lease lock", _SMALL, "I1 I9", lock_without_lease=False),
    _variant("rollback under a lease lock", on.STREAMING, "I4", lock_without_lease=False, proof_before_rollback=False),
    _variant("force-delete as proof", _SMALL, "I1 I11", live_proof=False),
    _variant("no drain", _SMALL, "I1 I3 I9", drain=False),
    _variant("release with an unknown publication", _SMALL, "I1 I9", release_waits=False),
    _variant("ownership recorded at release", on.WIRE, "I6", record_ahead=False),
    _variant("read-back as definite outcome", on.SESSION, "I1", renew_moves_alive=False),
    _variant("rollback by Hudi's own expiry", on.AGENTS, "I4 I7", chosen_by_record=False),
    _variant("unclaimed service instants", on.SERVICES, "I4 I12", claims=False),
    _lacks("mode not in the transaction", on.GATE, "I1", ("acquire", "mod(gate) = g")),
    _variant(
        "early next attempt without progress check", on.ATTEMPTS, "I9", next_attempt_waits=False, progress_check=False
    ),
    _variant("clock not written ahead", on.CLOCK, "I10", clock_ahead=False),
    _lacks(
        "Abandoned not checked at publication", on.STREAMING, "I3", ("publish", "mod(instant/<t>) = mine and Pending")
    ),
)

# More rules, each with what it is for.
FURTHER: tuple[Variant, ...] = (
    _variant("two JVMs of one attempt without progress check", on.TWINS, "I9", progress_check=False),
    _variant(
        "next attempt beside one that is not fenced, without progress check",
        on.ATTEMPTS,
        "I9",
        next_attempt_after_fence=False,
        progress_check=False,
    ),
    _variant("no conflict check", _SMALL, "I9", conflict_check=False),
    _variant("inserted keys are not compared", on.INSERTS, "I13", insert_check=False),
    _variant("inserted keys are compared outside the lock alone", on.INSERTS, "I13", inserts_compared_under_lock=False),
    _variant("inserted keys: no drain", on.INSERTS, "I13", drain=False),
    _variant("inserted keys: release with an unknown publication", on.INSERTS, "I13", release_waits=False),
    _variant("proof without the executors", on.STREAMING, "I11", executors_in_proof=False),
    _variant("drain only for the owner of the lock", on.WIRE, "I6", drain_always=False),
    _variant("sweep of an Abandoned instant not repeated", on.STREAMING, "I5", sweep_after_lost=False),
    _variant("sweep without the metadata table", on.WIRE, "I5", sweep_metadata=False),
    _variant("failed listing taken for an empty one", on.WIRE, "I4 I11", failed_look_keeps=False),
    _variant("look at the timeline loaded earlier", on.STREAMING, "I4 I11", fresh_look=False),
    _variant("pending rollback ignored when the instant is gone", on.AGENTS, "I6", finish_pending_rollback=False),
    _variant("left-over heartbeat of a rollback", on.AGENTS, "I6", beats_removed=False),
    _variant("rollback taken over without a claim", on.AGENTS, "I12", claims=False),
    _variant(
        "exit with an unresolved acquire, suspects from writer/* alone",
        on.SESSION,
        "I6",
        resolve_before_exit=False,
        suspects_from_lock=False,
    ),
    _lacks(
        "fence collected, acquire guarded by the fence alone",
        on.SESSION,
        "I2",
        ("acquire", "mod(alive/<inc>) = m"),
        collect_waits=False,
    ),
    _lacks(
        "record and fence collected before it is settled",
        on.SESSION,
        "I2",
        ("collect", "version(writer/<inc>) = 0"),
        collects_settled=False,
    ),
    _variant("admission left behind by an attempt that never registered", on.REQUESTS, "I6", admit_withdrawn=False),
    _variant("mode changed while writers are left", on.GATE, "I1", gate_waits=False),
    _variant("credentials: no drain", on.CREDENTIALS, "I1 I3 I9", drain=False),
    _variant("credentials: the broker's word for a refusal", on.CREDENTIALS, "I1 I3 I9 I11", revocation_verified=False),
    _variant(
        "credentials: others than the writer's are refused", on.CREDENTIALS, "I1 I3 I9 I11", own_credentials_asked=False
    ),
    _variant(
        "credentials: one server has refused, another still knows them",
        on.CREDENTIALS,
        "I1 I3 I9 I11",
        identity_cache_waited=False,
    ),
    _variant(
        "credentials: new ones for the old attempt after the revocation",
        on.CREDENTIALS,
        "I1 I3 I9 I11",
        no_new_credentials=False,
    ),
)
ALL = REQUIRED + FURTHER
