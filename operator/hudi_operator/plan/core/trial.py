"""The trial of a HudiTable inside a prefix that several namespaces share (F617).

Nobody takes the gate of such a path before its own credentials have created a file there and
deleted it, and read the table if there is one. Only the agent has these credentials. So it gets a
trial first: a range of etcd of the HudiTable's own, by its uid, in which the agent is
admitted as in that of a table. At the path's keys it has no right yet, and so it cannot keep the
path, its lock or its limits from anybody. It reports there, and from that report on the gate is
taken as elsewhere.
"""

from __future__ import annotations

from hudi_contract import naming, records
from hudi_contract.keys import TIMELINE
from hudi_contract.reports import TimelineReport
from hudi_contract.table_keys import Gate
from hudi_operator.api.spec import TableSpec
from hudi_operator.model import doubts
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import EtcdFacts
from hudi_operator.plan.core.actions import EndTrial
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View


def shared(table: TableSpec, config: OperatorConfig) -> bool:
    """Whether another namespace may use the table's path, too.

    A configuration without namespaces and without prefixes is that of one tenant: the chart makes
    none.
    """
    mine, listed, watched = table.ref.namespace, config.path_prefixes, config.watch_namespaces
    if not listed and not watched:
        return False
    if watched:
        return any(_may_use(config, name, table.canonical_path) for name in watched if name != mine)
    # "*" is the rule for every namespace without a line of its own; there is always one more.
    return any(_may_use(config, name, table.canonical_path) for name in {*listed, "*"} if name != mine)


def _may_use(config: OperatorConfig, namespace: str, path: str) -> bool:
    prefixes = config.path_prefixes.get(namespace, config.path_prefixes.get("*"))
    if prefixes is None or "*" in prefixes:
        return True
    return any(path == p or path.startswith(p + "/") for p in map(naming.canonical_path, prefixes))


def concerns(table: TableSpec, etcd: EtcdFacts, config: OperatorConfig) -> bool:
    """Whether keys of a trial may exist: until the gate was open for this HudiTable."""
    gate = records.read(etcd.gate, Gate)
    return shared(table, config) and not (gate.table_uid == table.ref.uid and gate.was_open)


def needed(view: View) -> bool:
    """Whether the HudiTable has to show that it reaches its path before it may take the gate."""
    if doubts.gate_unreadable(view.etcd) or view.table.ref.deleting:
        return False
    return not view.gate.table_uid and shared(view.table, view.config)


def report(view: View) -> TimelineReport:
    """What the agent of this HudiTable, as it is specified now, has said of the path."""
    trial = view.observed.trial
    found = records.read(trial.reports.get(TIMELINE), TimelineReport) if trial is not None else TimelineReport()
    mine = naming.attempt_id(view.table.ref.namespace, view.agent) + "-"
    admitted = trial is not None and found.agent_inc in trial.admits
    return found if admitted and found.agent_inc.startswith(mine) else TimelineReport()


def reached(view: View) -> bool:
    """Whether the trial has shown that this HudiTable's own credentials reach the path."""
    told = report(view)
    return told.exists and told.error is None


def over(view: View) -> bool:
    """Whether no key of a trial is left."""
    trial = view.observed.trial
    if trial is None:
        return True
    single = (trial.gate, trial.lock, trial.clock, trial.assignment)
    groups = (trial.admits, trial.writers, trial.alive, trial.queue, trial.instants, trial.fences, trial.settles)
    return not (any(single) or any((*groups, trial.requests, trial.seen, trial.reports, trial.done, trial.elsewhere)))


def end(view: View) -> PartialPlan:
    """Delete what is left of the trial."""
    if over(view):
        return PartialPlan()
    trial = view.observed.trial
    agents = (view.agent, *(trial.elsewhere if trial is not None else ()))
    ended = EndTrial(naming.trial_id(view.table.ref.uid), agents)
    return PartialPlan.of(ended, summary="ending the trial of the path", requeue=0.5)
