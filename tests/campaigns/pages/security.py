"""Findings of the product's security review, and the tests that show the fixes: a section of
docs/results/shown.md.
"""

from __future__ import annotations

from dataclasses import dataclass

_CRDS, _COMPONENT, _UNIT = "tests/tiers/component/crds", "tests/tiers/component/operator", "tests/tiers/unit"
_HUDI, _E2E = "tests/tiers/hudi", "tests/tiers/e2e"
_IDENTITIES, _REFERENCES = f"{_COMPONENT}/test_identities.py", f"{_CRDS}/test_references.py"
_DRIVERS, _CHART = f"{_CRDS}/test_drivers.py", f"{_CRDS}/test_chart.py"


@dataclass(frozen=True)
class Finding:
    """One finding of the review.

    ``mutations``: deliberate mistakes (tests/campaigns/mutations) that take the cure out again.
    """

    about: str
    tests: tuple[str, ...]
    mutations: tuple[str, ...] = ()


FINDINGS = (
    Finding(
        "keys of other tables and other roles in etcd (F110)",
        (
            f"{_IDENTITIES}::test_no_key_of_another_table",
            f"{_IDENTITIES}::test_a_role_puts_the_keys_that_the_contract_gives_it",
            f"{_IDENTITIES}::test_whose_heartbeat_whose_place_whose_lock_whose_instant",
            f"{_IDENTITIES}::test_leases_are_the_pods_own",
            f"{_IDENTITIES}::test_nobody_deletes_a_range",
        ),
        ("any-table-is-ones-own", "a-heartbeat-is-anybodys", "pods-may-lift-fences"),
    ),
    Finding(
        "one table fills etcd for all (F204)",
        (f"{_IDENTITIES}::test_a_table_that_fills_up_stops_itself",),
        ("a-table-stores-without-end", "each-replica-grants-it-all"),
    ),
    Finding(
        "a value that no reader understands stops its table",
        (f"{_UNIT}/plan/test_unreadable.py",),
        ("what-is-unreadable-is-empty", "an-unreadable-gate-is-made-anew", "one-defect-stops-the-plan"),
    ),
    Finding(
        "Secrets, accounts and images that a spec may name (F120, F121)",
        (
            f"{_REFERENCES}::test_what_an_object_names_needs_the_verb_use",
            f"{_REFERENCES}::test_the_operators_own_secrets_are_nobodys",
            f"{_REFERENCES}::test_an_image_must_be_allowed",
            f"{_UNIT}/plan/test_launch.py::test_without_it_nothing_is_made",
        ),
        ("silence-is-consent", "any-image-starts"),
    ),
    Finding(
        "files, queries and tables that a source may read (F130)",
        (
            f"{_UNIT}/api/test_hostile_specs.py::test_an_attack",
            f"{_HUDI}/test_queries.py",
            f"{_UNIT}/plan/writers/test_source_tables.py::test_files_are_held_to_the_rules_for_tables",
        ),
        ("files-of-the-pod-are-a-source",),
    ),
    Finding(
        "connections between a driver and its executors (F150)",
        (
            f"{_HUDI}/test_wire.py::test_who_does_not_have_the_key_is_refused",
            f"{_HUDI}/test_wire.py::test_rows_are_unreadable_on_the_wire_and_on_the_disk",
            f"{_COMPONENT}/test_executor_pods.py::test_an_executor_needs_the_key_of_its_driver",
            f"{_E2E}/test_network_policies.py",
        ),
        ("a-driver-serves-whoever-connects",),
    ),
    Finding(
        "certificates of etcd: renewal, and another authority (F140, F141, F274)",
        (
            f"{_CRDS}/test_certificates.py",
            f"{_CRDS}/test_rotation.py",
            f"{_COMPONENT}/test_certificates_that_ended.py",
            f"{_E2E}/test_rotated_authority.py",
            f"{_E2E}/test_gitops.py",
            "TlsTest.aRenewedTokenIsReadAndALostOneOutlived",
        ),
        ("certificates-are-not-renewed", "old-authority-is-forgotten", "damaged-authority-is-not-noticed"),
    ),
    Finding(
        "storage keys that change while pods run (F151)",
        (f"{_E2E}/test_rotated_keys.py", f"{_HUDI}/test_credentials.py"),
        ("keys-are-read-once",),
    ),
    Finding(
        "options of JVM, environment and storage that run code (F131, F132)",
        (f"{_UNIT}/api/test_hostile_specs.py::test_an_attack", f"{_UNIT}/layout/test_entrypoint.py"),
        ("any-option-of-the-jvm", "any-variable-is-a-users", "a-shell-starts-the-pods"),
    ),
    Finding(
        "evidence and decisions of the wrong people (F124, F125)",
        (
            f"{_CRDS}/test_policies.py::test_evidence_is_not_stripped",
            f"{_REFERENCES}::test_a_decision_needs_a_verb_of_its_own",
            f"{_REFERENCES}::test_unfreezing_needs_a_verb_of_its_own",
        ),
        ("labels-of-evidence-are-free", "an-editor-fences-by-lease"),
    ),
    Finding(
        "what the operator's own token may write and read (F126, F403)",
        (
            f"{_CRDS}/test_operators_account.py::test_it_may_not_create",
            f"{_CRDS}/test_operators_account.py::test_it_may_not_change",
            f"{_CRDS}/test_policies.py::test_the_operators_rights",
        ),
        ("the-operator-deletes-any-pod", "the-operator-deletes-any-binding", "secrets-are-read-everywhere"),
    ),
    Finding(
        "paths of namespaces, and those that they share (F127, F191, F617)",
        (
            f"{_CHART}::test_paths_of_namespaces_that_are_not_listed",
            f"{_UNIT}/plan/gate/test_turns.py",
            f"{_UNIT}/plan/gate/test_trial.py",
            f"{_COMPONENT}/test_shared_paths.py",
        ),
        ("whoever-comes-first-keeps-the-path", "the-gate-comes-before-the-trial", "any-word-in-a-trial-counts"),
    ),
    Finding(
        "an etcd without authentication, or too old (F185, F343)",
        (f"{_COMPONENT}/test_etcd_fitness.py",),
        ("an-open-etcd-will-do", "an-old-etcd-that-is-open-will-do"),
    ),
    Finding(
        "where images and their parts come from",
        (
            f"{_UNIT}/layout/test_pins.py",
            f"{_UNIT}/layout/test_bills.py",
            f"{_E2E}/test_images.py",
            f"{_CHART}::test_images_are_named_with_their_registry",
        ),
        ("packages-without-a-hash", "a-base-image-by-its-tag", "an-image-of-whoever-has-the-name"),
    ),
    Finding(
        "scratch space, metrics, secrets in messages, spellings of a path (F142, F143)",
        (
            f"{_CHART}::test_no_scratch_space_is_without_a_limit",
            f"{_CHART}::test_metrics_behind_a_token_and_certificates",
            f"{_UNIT}/runtime/process/test_errors.py",
            f"{_UNIT}/contract/test_naming.py::test_canonical_path",
        ),
        ("scratch-space-without-a-limit", "any-token-opens-the-metrics"),
    ),
    Finding(
        "a registration that names another pod (F186)",
        (f"{_COMPONENT}/test_lookalikes.py::test_a_registration_of_another_pod_stops_nobody",),
        ("a-pod-of-any-namespace",),
    ),
    Finding(
        "what a driver's token starts and ends (F122, F123, F200)",
        (f"{_DRIVERS}::test_a_driver_starts_nothing_else", f"{_DRIVERS}::test_a_driver_ends_its_own_executors_only"),
        ("drivers-are-known-by-name", "a-driver-ends-any-pod"),
    ),
)
"""All that it has found, one row each."""
