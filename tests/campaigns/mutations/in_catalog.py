"""Mutations of catalogs: when they are synchronized, where nothing is ever sent, and what is
shown.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, a
from tests.campaigns.mutations.mutation import AVAILABILITY, Edit, mutation

SYNCER = f"{RUNTIME}/catalog/test_catalog.py"
STATUS = "tests/tiers/unit/plan/requests/test_catalog_status.py"

LISTING = (
    mutation(
        "a-catalog-on-this-pod",
        AVAILABILITY,
        "a catalog may be at an address of the agent's own pod, of its node or of a cloud's metadata",
        a(
            "catalog/hive",
            "resolved(host, port, refused=refused)",
            "resolved(host, port, refused=lambda address: False)",
        ),
        f"{SYNCER}::test_what_is_connected_to_are_the_addresses_that_were_checked",
    ),
    mutation(
        "the-catalogs-name-is-looked-up-again",
        AVAILABILITY,
        "the metastore's client resolves a name again that was checked",
        a(
            "catalog/hive",
            "thrift://{f'[{address}]' if ':' in address else address}:{port}",
            "{uri}",
        ),
        f"{SYNCER}::test_what_is_connected_to_are_the_addresses_that_were_checked",
    ),
    mutation(
        "a-failed-catalog-is-tried-at-once",
        AVAILABILITY,
        "a catalog that fails is tried again without a pause",
        a("catalog/catalog", " or self._clock() < self._retry_at:", ":"),
        f"{SYNCER}::test_a_failure_is_repeated_with_pauses",
    ),
    mutation(
        "a-failed-catalog-is-forgotten",
        AVAILABILITY,
        "a try that failed counts as done",
        a("catalog/catalog", "            self._failed(known, error)\n            return\n", "            pass\n"),
        f"{SYNCER}::test_a_failure_is_repeated_with_pauses",
    ),
    mutation(
        "a-catalog-for-each-listing",
        AVAILABILITY,
        "a catalog is synchronized with each listing, not with each change",
        a(
            "catalog/catalog",
            "last is None or (last.completion <= known.completion_time and not known.failures)",
            "last is None",
        ),
        f"{SYNCER}::test_each_new_commit_once",
    ),
    mutation(
        "a-restore-undoes-no-partition",
        AVAILABILITY,
        "after a restore the catalog keeps partitions of the commits that were undone",
        a("catalog/catalog", "everything=undone or not known.completion_time", "everything=not known.completion_time"),
        f"{SYNCER}::test_after_a_restore_everything_is_compared",
    ),
    mutation(
        "a-stopped-catalog-reports",
        AVAILABILITY,
        "a stopped try still reports, over the report of the next agent",
        a(
            "catalog/catalog",
            "        if self._stopped.is_set():\n            return\n        self._etcd.put(",
            "        self._etcd.put(",
        ),
        f"{SYNCER}::test_who_looks_at_the_table_never_waits_and_a_stopped_one_reports_nothing",
    ),
    mutation(
        "another-catalogs-report",
        AVAILABILITY,
        "what an earlier catalog showed counts for the one that the table has now",
        a("catalog/catalog", "if found.target != self._wanted.target:", "if not found.target:"),
        f"{SYNCER}::test_another_agent_goes_on_and_another_catalog_begins_anew",
    ),
    mutation(
        "status-of-another-catalog",
        AVAILABILITY,
        "status shows the report of an earlier catalog",
        Edit(
            "operator/hudi_operator/plan/requests/catalogs.py",
            "report is not None and report.target == order.target",
            "report is not None",
        ),
        f"{STATUS}::test_status_and_condition",
    ),
    mutation(
        "a-catalog-on-loopback-launches",
        AVAILABILITY,
        "the launch accepts a catalog's address that the CRD refuses",
        Edit("operator/hudi_operator/api/catalog.py", "if _NEVER.fullmatch(uri):", "if not uri:"),
        f"{STATUS}::test_addresses_are_refused_at_launch_too",
    ),
    mutation(
        "a-catalog-without-a-port-launches",
        AVAILABILITY,
        "the launch accepts a catalog's port that does not exist",
        Edit("operator/hudi_operator/api/catalog.py", "if not 0 < int(", "if not int("),
        f"{STATUS}::test_addresses_are_refused_at_launch_too",
    ),
    mutation(
        "a-broken-catalog-does-not-stall",
        AVAILABILITY,
        "a HudiTable whose catalog is refused is not stalled",
        Edit("operator/hudi_operator/plan/gate/stalled.py", "    _catalog_is_wrong,\n", ""),
        f"{STATUS}::test_addresses_are_refused_at_launch_too",
    ),
)
