"""Page on the access of roles to assets, with the tests that show it: docs/operate/reach.md.

    python -m tests.campaigns.pages.reach       write the page;
                                                `python -m tests.campaigns.pages.last_run` does it,
                                                too

Answers are typed here, beside the tests that show them. A test checks that these exist; their last
results are read from docs/results/raw/last-run. An answer that no test shows begins with NOT
TESTED. A cell is never empty.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from tests.campaigns.pages import shown
from tests.support import evidence
from tests.support.evidence import catalog
from tests.support.evidence.prose import wrapping

PAGE = evidence.ROOT / "docs" / "operate" / "reach.md"
NOT_TESTED = "not tested:"
CRDS, COMPONENT, UNIT = "tests/tiers/component/crds", "tests/tiers/component/operator", "tests/tiers/unit"
ROLE = f"{CRDS}/test_isolation.py::test_a_role_can_do_what_the_page_says"
USE = f"{CRDS}/test_references.py::test_what_an_object_names_needs_the_verb_use"
DECISION = f"{CRDS}/test_references.py::test_a_decision_needs_a_verb_of_its_own"
STARTS = f"{CRDS}/test_drivers.py::test_a_driver_starts_nothing_else"
OUTLIVES = f"{CRDS}/test_drivers.py::test_it_outlives_its_writer"
ENDS = f"{CRDS}/test_drivers.py::test_a_driver_ends_its_own_executors_only"
DRIVERS_RIGHTS = f"{CRDS}/test_policies.py::test_a_driver_may_do_nothing_else"
OPERATORS_RIGHTS = f"{CRDS}/test_policies.py::test_the_operators_rights"
READS_SECRETS = f"{COMPONENT}/test_rights.py::test_the_charts_rights_are_enough"
MAKES = f"{CRDS}/test_operators_account.py::test_what_it_makes_is_accepted"
MAY_NOT_CREATE = f"{CRDS}/test_operators_account.py::test_it_may_not_create"
MAY_NOT_CHANGE = f"{CRDS}/test_operators_account.py::test_it_may_not_change"
OTHER_TABLE = f"{COMPONENT}/test_identities.py::test_no_key_of_another_table"
OWN_KEYS = f"{COMPONENT}/test_identities.py::test_a_role_puts_the_keys_that_the_contract_gives_it"
NEIGHBOUR = f"{COMPONENT}/test_identities.py::test_a_pod_of_the_tables_namespace_reads_and_writes_nothing"
NO_TOKEN = f"{COMPONENT}/test_identities.py::test_without_a_good_token_nothing"
CONNECTIONS = f"{COMPONENT}/test_gateway_rules.py::test_go"
FULL = f"{COMPONENT}/test_identities.py::test_a_table_that_fills_up_stops_itself"
NO_CERTIFICATE = f"{COMPONENT}/test_etcd_access.py::test_etcd_refuses_clients_without_a_certificate"
ANONYMOUS = "tests/tiers/hudi/test_wire.py::test_the_store_answers_nobody_without_credentials"
QUOTA = f"{CRDS}/test_isolation.py::test_a_quota_bounds_the_number_of_tables"
OPERATORS_QUOTA = f"{COMPONENT}/test_etcd_access.py::test_the_operators_certificate_is_bounded_by_the_quota_only"
DECIDES = f"{COMPONENT}/test_etcd_access.py::test_a_pod_reads_what_the_operator_decides_and_cannot_change_it"
WIRE = "tests/tiers/hudi/test_wire.py::test_who_does_not_have_the_key_is_refused"
EXECUTORS_KEY = f"{COMPONENT}/test_executor_pods.py::test_an_executor_needs_the_key_of_its_driver"
NO_API_TOKEN = f"{UNIT}/manifests/test_manifests.py::test_only_drivers_with_executors_get_a_token"
NO_ETCD = f"{UNIT}/manifests/test_manifests.py::test_executors_do_not_get_the_identity_for_etcd"
MOUNTS = f"{UNIT}/manifests/test_manifests.py::test_executors_may_mount_what_they_do_mount"
POLICIES = f"{UNIT}/manifests/test_manifests.py::test_pods_of_tables_are_reached_by_their_executors_and_drivers_only"
ENFORCED = "tests/tiers/e2e/test_network_policies.py::test_a_neighbour_reaches_no_pod_of_ours_and_writers_work"
CHART_POLICIES = f"{CRDS}/test_chart.py::test_network_policies_of_every_pod_of_the_release"
ETCD_METRICS = f"{CRDS}/test_chart.py::test_nobody_reads_etcds_metrics_without_a_certificate"
METRICS = f"{UNIT}/adapters/test_metrics_access.py::test_without_the_token_nothing_is_told"
GATEWAY_METRICS = f"{COMPONENT}/test_dashboards.py::test_every_panel_shows_something"
PATHS = f"{UNIT}/plan/writers/test_source_tables.py::test_files_are_held_to_the_rules_for_tables"
CONSENT = f"{UNIT}/plan/test_launch.py::test_without_it_nothing_is_made"
FINALIZER = f"{CRDS}/test_policies.py::test_the_operator_takes_the_finalizer_off"
STORES = f"{UNIT}/plan/gate/test_trial.py::test_another_store_under_the_same_name_is_not_the_path"
TRIAL, TURNS = f"{UNIT}/plan/gate/test_trial.py", f"{UNIT}/plan/gate/test_turns.py"
CATALOG_FIELDS = f"{CRDS}/test_catalogs.py::test_a_refusal_names_field_value_and_rule"
CATALOG_ADDRESSES = (
    f"{UNIT}/runtime/catalog/test_catalog.py::test_what_is_connected_to_are_the_addresses_that_were_checked"
)
CATALOG_OPTIONS = f"{UNIT}/api/test_options.py::test_owned_hudi_options"
CATALOG_SHOWS = "tests/tiers/hudi/test_catalog.py::test_a_metastore_shows_what_was_committed"
CATALOG_TAKEN = "tests/tiers/hudi/test_catalog.py::test_partitions_go_and_other_tables_stay"
CATALOG_OPEN = "tests/tiers/hudi/test_catalog.py::test_who_reaches_the_port_changes_and_drops_entries_and_files"
EVENT_LOGS = f"{UNIT}/plan/writers/test_event_log.py::test_a_refused_folder_stalls_the_writer"
EVENT_LOG_FOLDERS = f"{UNIT}/plan/writers/test_event_log.py::test_the_folder_of_any_table"
HISTORY = "tests/tiers/hudi/test_history_server.py::test_it_shows_the_attempts_of_a_writer"
HISTORY_RIGHTS = f"{CRDS}/test_history_chart.py::test_it_has_no_rights_and_no_token"
HISTORY_KEYS = f"{CRDS}/test_history_chart.py::test_keys_are_files_and_never_settings"
CATALOG_AGAIN = "tests/tiers/hudi/test_catalog.py::test_what_others_do_to_an_entry_stands_until_a_commit"

VIEWER, EDITOR, AUTHOR, DRIVER, EXECUTOR, NETWORK, HOLDER = ROLES = (
    "viewer",
    "editor",
    "table author",
    "driver of another table",
    "executor",
    "network neighbour",
    "holder of the operator's token",
)


@dataclass(frozen=True)
class Cell:
    """Access of a role to an asset, in words, and the tests that show it."""

    says: str
    tests: tuple[str, ...]


def cell(says: str, *tests: str) -> Cell:
    """A cell. One without a test says so."""
    return Cell(says, tests)


CELLS: dict[str, dict[str, Cell]] = {
    "Rows and files in the store": {
        VIEWER: cell("nothing: it reads no Secret and starts no pod", ROLE),
        EDITOR: cell("whatever the Secrets of the namespace allow: it reads them, and starts any pod", ROLE),
        AUTHOR: cell(
            "with code, whatever the credentials allow that it may use and whose owner allows its table; without "
            "code, paths of its namespace's prefixes",
            ROLE,
            USE,
            CONSENT,
            PATHS,
        ),
        DRIVER: cell(
            "with code, whatever its own table's credentials reach; that these end at its own table is the store's "
            "affair. It gets no others",
            DRIVERS_RIGHTS,
            STARTS,
        ),
        EXECUTOR: cell("as its driver: it has the same Secrets, and no others", STARTS, MOUNTS),
        NETWORK: cell("nothing without credentials, if the store asks for them", ANONYMOUS),
        HOLDER: cell(
            "by a pod of an allowed image with the Secrets of a namespace where tables may be: the images have an "
            "interpreter",
            MAKES,
            MAY_NOT_CREATE,
        ),
    },
    "Lock, registrations and instants in etcd": {
        VIEWER: cell("nothing: it has neither a certificate nor a pod's token", ROLE, NO_CERTIFICATE, NO_TOKEN),
        EDITOR: cell(
            "any pod that it starts in the table's namespace reads them and writes none; by `exec` into a driver or "
            "an agent it has that one's keys",
            ROLE,
            NEIGHBOUR,
            OWN_KEYS,
        ),
        AUTHOR: cell("its code in a driver has the keys that a writer of this table has", OWN_KEYS),
        DRIVER: cell(
            "of a table in another namespace nothing; of one in its own it reads and does not write",
            OTHER_TABLE,
            NEIGHBOUR,
        ),
        EXECUTOR: cell("nothing: it has no identity for etcd", NO_ETCD, NO_TOKEN),
        NETWORK: cell("nothing: the gateway asks for a pod's token, etcd for a certificate", NO_TOKEN, NO_CERTIFICATE),
        HOLDER: cell(
            "as an editor, by pods that it starts. It neither reads nor mounts the certificates of the operator and "
            "of etcd's root and the key of etcd's authority, unless `config.watchNamespaces` names the release's "
            "namespace or `admission.enabled` is `false`",
            OPERATORS_RIGHTS,
            MAY_NOT_CREATE,
            MAKES,
            NEIGHBOUR,
        ),
    },
    "Gate, fences and admissions": {
        VIEWER: cell("nothing", ROLE, NO_CERTIFICATE, NO_TOKEN),
        EDITOR: cell(
            "a pod that it starts in the table's namespace reads them and writes none; through the table's spec what "
            "the operator decides",
            DECIDES,
            NEIGHBOUR,
            ROLE,
        ),
        AUTHOR: cell(
            "through the spec what the operator decides. A path that other namespaces may use, too, is had by who "
            "reaches it, at a store of its own choice unless `config.storeEndpoints` lists them; one of its own "
            "namespace alone for the time of a try",
            DECISION,
            TRIAL,
            STORES,
            TURNS,
        ),
        DRIVER: cell(
            "of a table in its own namespace it reads them and writes none; of another one nothing",
            NEIGHBOUR,
            OTHER_TABLE,
            DECIDES,
        ),
        EXECUTOR: cell("nothing: it has no identity for etcd", NO_ETCD, NO_TOKEN),
        NETWORK: cell("nothing", NO_TOKEN, NO_CERTIFICATE),
        HOLDER: cell("as an editor, by pods that it starts (as above)", OPERATORS_RIGHTS, MAY_NOT_CREATE, NEIGHBOUR),
    },
    "etcd's space and time for other tables": {
        VIEWER: cell("nothing", NO_CERTIFICATE, NO_TOKEN),
        EDITOR: cell(
            "up to the limits of each table, and it may create tables: how many is bounded by a ResourceQuota only",
            FULL,
            ROLE,
            QUOTA,
        ),
        AUTHOR: cell("up to the limits of each table; how many tables is bounded by a ResourceQuota only", FULL, QUOTA),
        DRIVER: cell("up to its table's limits: then its table stops, and others go on", FULL),
        EXECUTOR: cell("nothing", NO_ETCD, NO_TOKEN),
        NETWORK: cell(
            "opens as many connections to the gateway as one address may have; with many addresses it makes those "
            "with most connections give way",
            CONNECTIONS,
        ),
        HOLDER: cell(
            "up to the limits of each table, by pods that it starts. With the operator's certificate, which it does "
            "not read (as above), nothing but etcd's quota would be a limit",
            FULL,
            MAY_NOT_CREATE,
            OPERATORS_QUOTA,
        ),
    },
    "Storage credentials (the table's Secret)": {
        VIEWER: cell("nothing", ROLE),
        EDITOR: cell("reads it, and says which tables may use it", ROLE),
        AUTHOR: cell("reads no Secret; its code has those that its table may use", ROLE, USE, CONSENT),
        DRIVER: cell("neither reads it nor starts an executor with it", DRIVERS_RIGHTS, STARTS),
        EXECUTOR: cell("has its own driver's, and no token to ask for others", STARTS, MOUNTS, NO_API_TOKEN),
        NETWORK: cell("nothing: they are in pods, whose ports serve none without their key", WIRE),
        HOLDER: cell(
            "gets it by name with `consent.secrets` other than `Off`, or with a broker: in a release for all "
            "namespaces once it has bound that right to itself there; else by a pod with it",
            READS_SECRETS,
            MAKES,
        ),
    },
    "Other Secrets and accounts of the namespace": {
        VIEWER: cell("nothing", ROLE),
        EDITOR: cell("reads Secrets and starts pods under any account", ROLE),
        AUTHOR: cell("names those on which it has the verb `use`; those of the operator never", ROLE, USE),
        DRIVER: cell(
            "nothing: executors have the driver's account, its Secrets and no token, also when its HudiWriter is "
            "deleted",
            STARTS,
            OUTLIVES,
            DRIVERS_RIGHTS,
        ),
        EXECUTOR: cell("nothing", STARTS, NO_API_TOKEN),
        NETWORK: cell("nothing: it has no account there", NO_API_TOKEN),
        HOLDER: cell(
            "as above; it makes no token of an account, and changes no Secret or account of anybody",
            MAY_NOT_CHANGE,
            MAY_NOT_CREATE,
            OPERATORS_RIGHTS,
        ),
    },
    "Specs, status and decisions of tables and writers": {
        VIEWER: cell("reads them", ROLE),
        EDITOR: cell(
            "edits specs; does not fence by lease, attest, trust nodes, roll back, unfreeze, take paths over, or write "
            "status",
            ROLE,
        ),
        AUTHOR: cell("as an editor", ROLE, DECISION),
        DRIVER: cell("nothing", DRIVERS_RIGHTS),
        EXECUTOR: cell("nothing: it has no token", NO_API_TOKEN),
        NETWORK: cell("nothing: it has no account there", NO_API_TOKEN),
        HOLDER: cell(
            "writes status and its own finalizer; changes no spec, annotation or other finalizer", MAY_NOT_CHANGE
        ),
    },
    "Evidence of the end of pods": {
        VIEWER: cell("nothing", ROLE),
        EDITOR: cell("deletes pods, which waits for the proof; takes off neither finalizer nor labels", ROLE),
        AUTHOR: cell("nothing", ROLE),
        DRIVER: cell("starts none without evidence, and deletes its own executors only", STARTS, ENDS),
        EXECUTOR: cell("nothing: it has no token", NO_API_TOKEN),
        NETWORK: cell("nothing: it has no account there", NO_API_TOKEN),
        HOLDER: cell(
            "takes the finalizer off, which is the operator's work; does not write a pod's status",
            FINALIZER,
            MAY_NOT_CHANGE,
        ),
    },
    "Connections between a driver and its executors": {
        VIEWER: cell("nothing: it does not read the key", ROLE, WIRE),
        EDITOR: cell("reads the key, as any Secret, and may connect", ROLE),
        AUTHOR: cell(
            "of its own tables only: it names no key",
            USE,
            f"{CRDS}/test_references.py::test_the_operators_own_secrets_are_nobodys",
        ),
        DRIVER: cell("is refused: it has another key, and no executor of it mounts this one", WIRE, STARTS),
        EXECUTOR: cell("serves its own driver; with another key it is refused", EXECUTORS_KEY),
        NETWORK: cell("is refused without the key", WIRE),
        HOLDER: cell(
            "gets the key by name, as a table's Secret, with `consent.secrets` other than `Off`, or with a broker",
            READS_SECRETS,
        ),
    },
    "Other pods of the namespace, and their nodes": {
        VIEWER: cell("sees them and their logs", ROLE),
        EDITOR: cell("starts, enters and deletes any; the node as far as the namespace's Pod Security lets it", ROLE),
        AUTHOR: cell("nothing but pods of tables with allowed images", ROLE),
        DRIVER: cell("sees them all; starts and ends executors of its own, without any part of the node", STARTS, ENDS),
        EXECUTOR: cell("nothing: no token, no privilege, no part of the node", STARTS, NO_API_TOKEN),
        NETWORK: cell(
            "ports of Spark are closed by NetworkPolicies, where a plugin enforces them",
            POLICIES,
            ENFORCED,
        ),
        HOLDER: cell(
            "starts pods of allowed images without privilege; changes and deletes none of others, nor executors of "
            "other Spark applications",
            MAY_NOT_CREATE,
            MAY_NOT_CHANGE,
        ),
    },
    "What is in other namespaces": {
        VIEWER: cell("nothing", ROLE),
        EDITOR: cell("nothing", ROLE),
        AUTHOR: cell(
            "paths below a prefix that both namespaces may use, by the credentials that it has", ROLE, PATHS, TRIAL
        ),
        DRIVER: cell(
            "nothing",
            OTHER_TABLE,
            f"{COMPONENT}/test_identities.py::test_an_attempt_of_another_name_space_and_the_same_name_is_another_one",
        ),
        EXECUTOR: cell("nothing: it has no token", NO_API_TOKEN, NO_ETCD),
        NETWORK: cell("what it reaches over the network, without an identity: the rows above", NO_TOKEN, WIRE),
        HOLDER: cell(
            "as above in each namespace that the operator watches; makes nothing in its own and in Kubernetes' own",
            MAY_NOT_CREATE,
            f"{CRDS}/test_chart.py::test_rights_end_at_the_watched_namespaces",
        ),
    },
    "Entries in a Hive Metastore": {
        VIEWER: cell("nothing through the API server; over the network as a neighbour", ROLE),
        EDITOR: cell(
            "names metastore, database and table in specs, as a table author; by a pod that it starts as a neighbour",
            ROLE,
            CATALOG_FIELDS,
        ),
        AUTHOR: cell(
            "has the agent of its table keep the entry that the spec names; one of another location stays, and "
            "loopback, link-local and metadata addresses are refused. Its code is a neighbour",
            CATALOG_SHOWS,
            CATALOG_TAKEN,
            CATALOG_FIELDS,
            CATALOG_ADDRESSES,
        ),
        DRIVER: cell("no option of its names a catalog; its code is a neighbour", CATALOG_OPTIONS),
        EXECUTOR: cell("as a neighbour: it runs the driver's code, and nobody there is asked for more", CATALOG_OPEN),
        NETWORK: cell(
            "changes and drops them, where it reaches the metastore's port: it needs no name and no password there. "
            "Where the metastore may delete files in the store, it has the files of a table deleted, too. The next "
            "commit puts back what it writes, or an entry that is gone. Who reaches the port is limited by "
            "NetworkPolicies of the metastore's namespace",
            CATALOG_OPEN,
            CATALOG_AGAIN,
        ),
        HOLDER: cell(
            "changes no spec, and so no address or name; by a pod that it starts as a neighbour", MAY_NOT_CHANGE, MAKES
        ),
    },
    "Event logs of attempts, and the history server that shows them": {
        VIEWER: cell("nothing through the API server; over the network as a neighbour", ROLE),
        EDITOR: cell(
            "reads and writes the folder with the credentials of its namespace's tables; over the network as a "
            "neighbour",
            ROLE,
            EVENT_LOG_FOLDERS,
        ),
        AUTHOR: cell(
            "chooses the folder of its writers' logs: one that its namespace may use and that is in no table's folder. "
            "Its code reads and changes what else is in that folder, as far as its table's credentials allow",
            EVENT_LOGS,
            EVENT_LOG_FOLDERS,
        ),
        DRIVER: cell("as far as its own table's credentials reach into the folder", EVENT_LOGS),
        EXECUTOR: cell("as its driver: it has the same Secrets", MOUNTS),
        NETWORK: cell(
            "reads every log of the server's folder, where it reaches its port: statements, paths and settings, no "
            "values that are redacted. Where a plugin enforces the chart's NetworkPolicies, only who is in "
            "`networkPolicy.historyFrom` reaches it. The folder itself it does not reach without credentials",
            HISTORY,
            HISTORY_RIGHTS,
            CHART_POLICIES,
            ANONYMOUS,
        ),
        HOLDER: cell(
            "as an editor, by pods that it starts. The server's own credentials are in the release's namespace, where "
            "it makes no pod; the server itself has no right in the cluster",
            MAY_NOT_CREATE,
            HISTORY_RIGHTS,
            HISTORY_KEYS,
        ),
    },
    "Metrics of the operator, the gateway and etcd": {
        VIEWER: cell("nothing through the API server; over the network as a neighbour", ROLE, METRICS),
        EDITOR: cell("over the network, as a neighbour", METRICS),
        AUTHOR: cell("over the network, as a neighbour", METRICS),
        DRIVER: cell("over the network, as a neighbour", METRICS),
        EXECUTOR: cell("over the network, as a neighbour", METRICS),
        NETWORK: cell(
            "reads those of operator and gateway, and at the gateway those of etcd, unless the chart is given a token "
            "or certificates; where a plugin enforces its NetworkPolicies, none. etcd itself tells it nothing",
            METRICS,
            GATEWAY_METRICS,
            ETCD_METRICS,
            CHART_POLICIES,
            ENFORCED,
        ),
        HOLDER: cell("over the network, as a neighbour", METRICS),
    },
}
HEAD = """\
# Who reaches what

Made by `python -m tests.campaigns.pages.reach`; do not edit. For each asset of a table: what each
role can do to it, which tests show that, and what these said when they were last run and that was
noted ([last-run](../results/last-run.md)). What no test shows says *not tested* and why.

The **viewer** and the **table author** are the roles of
[examples/isolation](../../examples/isolation); the **editor** has Kubernetes' `edit` in the
namespace. A **driver of another table** runs user code with its pod's token. A **network
neighbour** is a pod that can open connections and has no identity here. The **holder of the
operator's token** has that and nothing else of the operator. Verb by verb:
[tenants](tenants.md#roles); keys of etcd: [identities](../design/identities.md).
"""


def tests() -> tuple[str, ...]:
    """Each test that a cell names, once."""
    return tuple(dict.fromkeys(test for row in CELLS.values() for one in row.values() for test in one.tests))


MARKS = (" (**failed when it was last run**)", " (**no result**)")
"""Behind the name of a test: each run may change them."""


def _unless_passed(test: str, stored: shown.Results) -> str:
    """Words behind the name of a test of which no result is noted, or a failure."""
    said = shown.last(catalog.named(test), stored)
    if "**failed**" in said:
        return MARKS[0]
    return MARKS[1] if "no result" in said else ""


def _lines(stored: shown.Results) -> Iterator[str]:
    for asset, row in CELLS.items():
        yield from ("", f"## {asset}", "", "| who | can | shown by |", "|---|---|---|")
        for role in ROLES:
            shown_by = ", ".join(
                f"`{test.removeprefix('tests/tiers/')}`{_unless_passed(test, stored)}" for test in row[role].tests
            )
            yield f"| {role} | {row[role].says} | {shown_by or '–'} |"
    yield from ("", "## What the tests said last", "", "| test | last |", "|---|---|")
    for test in sorted(tests()):
        yield f"| `{test.removeprefix('tests/tiers/')}` | {shown.last(catalog.named(test), stored)} |"


@wrapping
def page() -> str:
    """The whole page."""
    return "\n".join([HEAD.rstrip("\n"), *_lines(shown.noted()), ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(0)
