"""Mutations of what the operator reads and writes, and when: nothing for nothing, and nothing too
late.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_settling import ATTEMPTS, o
from tests.campaigns.mutations.mutation import mutation

LOOP = "tests/tiers/unit/control/test_loop.py"
LISTS = "tests/tiers/unit/adapters/test_lists_of_pods.py"
ROUTING = "tests/tiers/unit/control/test_routing.py"

SCALE = (
    mutation(
        "backs-off-from-a-lost-node",
        "F260",
        "the attempt after a killed driver or a lost node waits for a back-off",
        o("plan/writers/attempts", "last.class_ in classify.LOST_WITH_ITS_PLACE", "not last.class_"),
        f"{ATTEMPTS}::test_who_was_ended_from_outside_is_followed_at_once",
    ),
    mutation(
        "killed-as-fast-as-it-starts",
        "F260",
        "attempts that are killed as soon as they have started follow each other without a pause",
        o(
            "plan/writers/attempts",
            "since = ended if began is None else began",
            "since = ended if began is None else 0",
        ),
        f"{ATTEMPTS}::test_who_was_ended_from_outside_is_followed_at_once",
    ),
    mutation(
        "shared-objects-for-each-pod",
        "F261",
        "what pods of a namespace share is applied again for each of them",
        o("control/told", "self._clock() - at < KEPT_SECONDS", "self._clock() < at"),
        f"{LOOP}::test_what_a_namespace_shares_is_written_when_it_changes",
    ),
    mutation(
        "once-is-for-ever",
        "F261",
        "what pods of a namespace share is never applied again, although somebody may have deleted it",
        o("control/told", "self._clock() - at < KEPT_SECONDS", "self._clock() >= at"),
        f"{LOOP}::test_what_a_namespace_shares_is_written_when_it_changes",
    ),
    mutation(
        "another-namespace-of-that-name",
        "F261",
        "a namespace that was made anew is taken for the one of that name before it",
        o("control/told", "(uid, known) == (namespace_uid, manifest)", "known == manifest"),
        f"{LOOP}::test_what_a_namespace_shares_is_written_when_it_changes",
    ),
    mutation(
        "the-authority-is-believed-to-be-there",
        "F261",
        "a pod is made that waits for a ConfigMap that somebody has deleted",
        o("control/executor", " and await self._is_there(manifest):", ":"),
        f"{LOOP}::test_no_pod_starts_without_the_gateways_authority",
    ),
    mutation(
        "a-refusal-teaches-nothing",
        "F261",
        "pods are refused until what they miss in their namespace is applied for another reason",
        o("control/executor", '            self._told.forget(meta["namespace"])\n'),
        f"{LOOP}::test_a_refused_pod_has_its_namespace_made_again",
    ),
    mutation(
        "running-is-polled",
        "F262",
        "a table whose writers run is looked at every 15 s",
        o("control/loop", ' or conditions.is_true(status, "Running")'),
        f"{LOOP}::test_a_quiet_table_is_looked_at_ever_less_often",
    ),
    mutation(
        "ending-is-at-rest",
        "F262",
        "a table with a pod that is about to start or to end is looked at every four minutes",
        o("control/loop", 'and (pod.phase != "Running" or pod.deleting)', 'and pod.phase == "Unknown"'),
        f"{LOOP}::test_a_quiet_table_is_looked_at_ever_less_often",
    ),
    mutation(
        "held-unseen",
        "F262",
        "how long a lock is held is measured from the next look on, which may be minutes away",
        o("control/held_locks", "if since <= until]", "if since > until + 1e9]"),
        f"{ROUTING}::test_a_lock_that_stays_leads_to_its_table_once",
    ),
    mutation(
        "a-look-for-each-commit",
        "F262",
        "a lock that was given back leads to a look",
        o(
            "control/held_locks",
            "            if match and change.deleted:\n",
            "            if match and change.deleted is None:\n",
        ),
        f"{ROUTING}::test_a_lock_that_stays_leads_to_its_table_once",
    ),
    mutation(
        "writers-of-the-whole-namespace",
        "F263",
        "each look lists the writers of all tables of the namespace",
        o("adapters/kubernetes", 'if self._selectable else ""', 'if self._selectable is None else ""'),
        f"{LISTS}::test_a_look_asks_for_the_writers_of_its_table_only",
    ),
    mutation(
        "writers-of-others",
        "F263",
        "where the API server cannot select, the writers of all tables are taken for the table's",
        o("adapters/kubernetes", "if _table_of(writer) == table]", "if writer]"),
        f"{LISTS}::test_where_fields_cannot_be_selected_all_are_listed",
    ),
)
