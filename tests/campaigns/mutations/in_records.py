"""Mutations of how values of etcd are read, and of what stops when they cannot be."""

from __future__ import annotations

from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import Edit, mutation

UNREADABLE = "tests/tiers/unit/plan/test_unreadable.py"
UNREADABLE_TABLE = "tests/tiers/unit/plan/test_unreadable_table.py"
RECORDS = "tests/tiers/unit/contract/test_records.py"

READING = (
    mutation(
        "any-number-of-elements-is-parsed",
        "F520 availability",
        "values of many lists fill the operator's memory",
        Edit("operator/hudi_contract/records.py", "if _elements(raw) > at_most and", "if not raw and"),
        f"{RECORDS}::test_a_value_of_many_elements_is_not_parsed",
    ),
    mutation(
        "the-value-of-a-ticket-is-believed",
        "F511",
        "somebody is fenced because another one's ticket names him",
        Edit("operator/hudi_contract/records.py", " and not _NONCE.search(name):", ":"),
        f"{RECORDS}::test_the_name_of_a_ticket_counts_and_not_its_value",
    ),
    mutation(
        "half-a-character-is-text",
        "F511",
        "a text that no key can have ends the settling of a table",
        Edit(
            "operator/hudi_contract/shape.py",
            'return "" if value.isascii() or not _SURROGATE.search(value) else',
            'return "" if value.isascii() or value else',
        ),
        f"{RECORDS}::test_half_of_a_surrogate_pair_is_no_text",
    ),
    mutation(
        "a-settle-record-repeats-anything",
        "F512",
        "a registration makes its own settle record too long to be written",
        Edit("operator/hudi_contract/table_keys.py", '    boot_id: Short = ""', '    boot_id: str = ""'),
        f"{RECORDS}::test_what_a_settle_record_repeats_is_short",
    ),
    mutation(
        "a-driver-with-many-executors",
        "F510 availability",
        "the settle record of a driver with many executors is too long to be written",
        o(
            "adapters/etcd",
            "most = kind.max_value_bytes if kind is not None else MAX_VALUE_BYTES",
            "most = MAX_VALUE_BYTES",
        ),
        "tests/tiers/unit/adapters/test_sizes.py::test_the_record_of_the_largest_driver_can_be_written",
    ),
    mutation(
        "what-is-unreadable-is-empty",
        "F46 I11",
        "a value that no reader understands is one without fields, and nobody is told",
        Edit(
            "operator/hudi_contract/records.py",
            'unreadable = wrong or ("" if isinstance(value, dict) else '
            'f"is a JSON {_json_type(value)}, not an object")',
            'unreadable = "" if wrong or isinstance(value, dict) else _json_type(value)[:0]',
        ),
        f"{UNREADABLE}::test_a_suspect_is_fenced_and_unlocked_whatever_stands_beside_it",
        f"{UNREADABLE}::test_an_unreadable_settle_record_keeps_everything_of_its_incarnation",
    ),
    mutation(
        "a-lock-of-nobody-known-is-passed",
        "I1 F46",
        "a lock whose owner cannot be read is taken for somebody else's",
        o("plan/fencing/settling", "if inc.lock_unknown:", "if inc.lock_unknown and not inc.inc:"),
        f"{UNREADABLE}::test_an_unreadable_lock_may_be_anybodys",
    ),
    mutation(
        "an-unreadable-record-is-settled-anew",
        "I6 F46",
        "a settle record that cannot be read counts as Fenced, without pods and proofs",
        o("plan/fencing/settling", "if inc.record is not None and inc.record.unreadable:", "if inc.record is None:"),
        f"{UNREADABLE}::test_an_unreadable_settle_record_keeps_everything_of_its_incarnation",
    ),
    mutation(
        "an-instant-of-nobody-known-is-left-behind",
        "I4 F46",
        "settling ends beside an instant whose owner cannot be read",
        o(
            "plan/fencing/settling",
            "for t, stored in view.etcd.instants.items() if stored.unreadable)",
            "for t, stored in view.etcd.instants.items() if not t)",
        ),
        f"{UNREADABLE}::test_an_unreadable_instant_keeps_who_may_own_it",
    ),
    mutation(
        "an-unreadable-gate-is-made-anew",
        "I1 F46",
        "a gate that cannot be read is replaced, with another authority",
        o(
            "plan/gate/gate",
            "if doubts.gate_unreadable(view.etcd):",
            "if doubts.gate_unreadable(view.etcd) and not view.table:",
        ),
        f"{UNREADABLE}::test_an_unreadable_gate_stays_and_the_dead_are_settled_with_the_longest_drain",
    ),
    mutation(
        "a-ticket-is-somebody-elses",
        "F46 availability",
        (
            "the name of a ticket is cut at its last hyphen: an incarnation is fenced that never was, and nobody can "
            "prove it dead"
        ),
        o(
            "hudi_contract/records",
            'return name[: -len(nonce[0])] if (nonce := _NONCE.search(name)) else name.rpartition("-")[0]',
            'return name.rpartition("-")[0]',
        ),
        f"{RECORDS}::test_a_ticket_names_its_incarnation_and_not_a_part_of_its_nonce",
        "tests/tiers/unit/plan/test_table_plan.py::test_who_waits_for_the_lock_is_nobody_else",
    ),
    mutation(
        "one-defect-stops-the-plan",
        "F46",
        "a defect of one planner is everybody's",
        o("plan/core/partial_plan", "    except Exception as error:", "    except MemoryError as error:"),
        f"{UNREADABLE}::test_a_defect_of_one_planner_keeps_nobody_from_being_fenced",
    ),
    mutation(
        "values-are-believed",
        "F46",
        "values are taken as they are",
        o(
            "hudi_contract/records",
            "if wrong:\n                found",
            "if wrong and not field:\n                found",
        ),
        f"{RECORDS}::test_a_field_on_which_no_decision_leans_is_left_out",
        f"{RECORDS}::test_of_a_value_with_a_vital_field_that_is_wrong_nothing_is_believed",
    ),
    mutation(
        "a-table-that-cannot-be-read-is-not-settled",
        "F69",
        "of a HudiTable that cannot be read nothing is known, and its dead writers are nobody's",
        o("api/tolerant", "return _for_settling(obj), why_unread(error)", "return None, why_unread(error)"),
        f"{UNREADABLE_TABLE}::test_the_dead_are_fenced_proven_unlocked_and_rolled_back",
    ),
    mutation(
        "an-unreadable-drain-is-the-default",
        "I1 F69",
        "of a gate without a drain and a spec that cannot be read the default is taken",
        o("plan/core/view", "(self.unreadable and not stored)", "(self.unreadable and stored)"),
        f"{UNREADABLE_TABLE}::test_without_a_stored_drain_the_longest_is_waited_for",
    ),
    mutation(
        "an-attempt-is-made-from-defaults",
        "F69",
        "an announced attempt is made although its table cannot be read",
        o("plan/writers/attempts", "None if view.unreadable else source_tables", "source_tables"),
        f"{UNREADABLE_TABLE}::test_an_attempt_that_was_announced_is_not_made_from_defaults",
    ),
)
