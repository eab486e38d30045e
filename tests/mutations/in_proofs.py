"""Mutations of what the operator takes for a death: boots, kubelets' words, containers."""

from __future__ import annotations

from tests.mutations.in_settling import PROOF, o
from tests.mutations.mutation import mutation

SIGHTINGS = "tests/unit/reconcile/test_sightings.py"

BOOTS = (
    mutation(
        "a-boot-id-needs-no-sighting",
        "I1 F13",
        "the boot id that a JVM has read is taken for its node's",
        (
            o("reconcile/sightings", " or node.boot_id != inc.boot_id:\n        return None", ":\n        return None"),
            o("reconcile/sightings", '"bootId": node.boot_id}', '"bootId": inc.boot_id}'),
        ),
        f"{SIGHTINGS}::test_what_is_seen_too_late_proves_nothing",
        f"{SIGHTINGS}::test_a_sandbox_with_a_kernel_of_its_own_is_no_reboot",
    ),
    mutation(
        "any-machine-of-that-name-reboots",
        "I1 F13",
        "another machine under the node's name counts as the node, rebooted",
        o("model/proof", "return (node.name, node.uid, node.machine) == (seen.node, seen.node_uid, seen.machine)", "return node.name == seen.node"),
        f"{SIGHTINGS}::test_another_machine_under_the_nodes_name_is_no_reboot",
        f"{SIGHTINGS}::test_another_machine_behind_the_same_object_is_no_reboot",
        f"{PROOF}::test_proofs",
        f"{PROOF}::test_trusted_nodes",
    ),
    mutation(
        "an-executor-is-rebooted-with-its-driver",
        "I1 F26",
        "the boot of a driver's node is taken for that of its executors",
        o("reconcile/settling", "node=node, evidence=bool", "node=node, seen=sightings.seen(view, inc), evidence=bool"),
        f"{SIGHTINGS}::test_a_reboot_proves_nothing_of_an_executor",
    ),
    mutation(
        "a-sighting-of-anybody-counts",
        "I1",
        "a note about another pod or node is believed",
        o("reconcile/sightings", 'if not whole or words["podUid"] != inc.pod_uid or words["node"] != inc.node:', "if not whole:"),
        f"{SIGHTINGS}::test_a_note_of_something_else_proves_nothing",
    ),
)
