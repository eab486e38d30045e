"""All mutations, and the controls that show that the runner tells caught from survived
and from broken.
"""

from __future__ import annotations

from tests.campaigns.mutations import (
    in_admission,
    in_adoption,
    in_agent,
    in_bootstrap,
    in_callback,
    in_certificates,
    in_clustering,
    in_deletes,
    in_duplicates,
    in_fairness,
    in_gateway,
    in_halves,
    in_inserts,
    in_jvm,
    in_options,
    in_own_agents,
    in_proofs,
    in_publication,
    in_records,
    in_restore,
    in_secrets,
    in_services,
    in_settling,
    in_statements,
    in_store,
    in_stores,
    in_streams,
    in_tenants,
    in_updates,
    in_values,
    in_wrapper,
    in_zombies,
)
from tests.campaigns.mutations.in_agent import SETTLING, a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.mutation import Mutation, mutation

MUTATIONS: tuple[Mutation, ...] = (
    *in_jvm.TRANSACTIONS,
    *in_wrapper.RELEASE,
    *in_publication.SENT,
    *in_wrapper.CLOCK,
    *in_wrapper.GUARD,
    *in_wrapper.COMMITS,
    *in_settling.PROOFS,
    *in_proofs.BOOTS,
    *in_proofs.CONTAINERS,
    *in_proofs.REFUSALS,
    *in_proofs.OWNERS,
    *in_proofs.OUTSIDE,
    *in_proofs.PEOPLE,
    *in_proofs.LAUNCHES,
    *in_tenants.TENANTS,
    *in_records.READING,
    *in_settling.SETTLING,
    *in_settling.SUSPECTS,
    *in_certificates.CERTIFICATES,
    *in_admission.GATES,
    *in_admission.OLD_TABLES,
    *in_admission.COLLECTING,
    *in_halves.WORDS,
    *in_halves.ONE_TABLE,
    *in_halves.SETTLING,
    *in_store.STORE,
    *in_store.PODS,
    *in_stores.ASKING,
    *in_gateway.IDENTITIES,
    *in_agent.LOOK,
    *in_agent.SWEEP,
    *in_agent.SETTLE,
    *in_agent.AUDIT_OF_ROLLBACKS,
    *in_fairness.FAIRNESS,
    *in_services.TENDING,
    *in_clustering.LEAVING_OUT,
    *in_services.PROGRESS,
    *in_streams.STREAMS,
    *in_services.COLUMNS,
    *in_services.AUDIT,
    *in_adoption.ADOPTING,
    *in_adoption.KEEPING,
    *in_bootstrap.BEGINNING,
    *in_updates.UPDATES,
    *in_statements.STATEMENTS,
    *in_values.VALUES,
    *in_restore.UNDOING,
    *in_deletes.DELETES,
    *in_own_agents.EXECUTORS,
    *in_own_agents.SHARED,
    *in_own_agents.LEFT,
    *in_zombies.ZOMBIES,
    *in_callback.TELLING,
    *in_duplicates.LOOKS,
    *in_duplicates.PARTITIONS,
    *in_duplicates.REMOVAL,
    *in_inserts.KEYS,
    *in_options.OPTIONS,
    *in_secrets.KEYS,
)

NO_PLACE = {
    "F25": "a release only deletes, and a full etcd still accepts deletions: there is nothing to take out",
    "F28": "the mode Credentials is designed, not offered",
    "F112": "the right is one that the chart does not grant",
}
"""Findings that the product's code has no place for, with the reason."""

CONTROLS: tuple[tuple[Mutation, str], ...] = (
    (
        mutation(
            "control-equivalent-python",
            "",
            "the same in other words",
            a(
                "settle/rollback",
                "if found is not None and not found.pending:\n        return Step.KEEP",
                "if not (found is None or found.pending):\n        return Step.KEEP",
            ),
            f"{SETTLING}::test_decision",
        ),
        "survived",
    ),
    (
        mutation(
            "control-equivalent-java",
            "",
            "the same in other words",
            j("Queue", "return !tickets.isEmpty() && tickets.get(0)", "return tickets.size() > 0 && tickets.get(0)"),
            t("QueueTest.priorityThenAgeAndNobodyIsOvertakenMoreThanEightTimes"),
        ),
        "survived",
    ),
    (
        mutation(
            "control-syntax-error",
            "",
            "is no Python",
            a("settle/rollback", "class NotYet(Exception):", "class NotYet(Exception:"),
            f"{SETTLING}::test_decision",
        ),
        "invalid",
    ),
    (
        mutation(
            "control-unknown-name",
            "",
            "ends with a NameError",
            a(
                "settle/rollback",
                "    found = timeline.get(instant)\n    if found is not None and not",
                "    found = timelines.get(instant)\n    if found is not None and not",
            ),
            f"{SETTLING}::test_decision",
        ),
        "invalid",
    ),
    (
        mutation(
            "control-compile-error",
            "",
            "is no Java",
            j("Queue", "return tickets.isEmpty();", "return tickets.isEmpty()"),
            t("QueueTest.priorityThenAgeAndNobodyIsOvertakenMoreThanEightTimes"),
        ),
        "invalid",
    ),
)
"""Each with the outcome that the runner must come to."""
