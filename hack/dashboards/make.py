"""Make the Grafana dashboards of the chart."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import prometheus as queries

from hudi_operator.metrics import catalog

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "charts" / "hudi-operator" / "files" / "dashboards"
SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
TEXTS = {series: metric.text for metric in catalog.every() for series in metric.series}
WIDTH = 24

JOB = 'job="$job"'
ONE = f'{JOB}, namespace="$namespace", table="$table"'
GATEWAY = 'job="${job}-gateway"'

RED_ABOVE_0 = [(None, "green"), (1.0, "red")]
GREY = [(None, "text")]


def about(*expressions: str) -> str:
    """Meaning of the first metric of a panel."""
    found = re.search(r"\b(hudi_(?:operator|gateway)_\w+)", expressions[0])
    return TEXTS[found[1]] + "." if found else ""


def query(expression: str, legend: str, *, instant: bool = False) -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(expression).legend_format(legend).datasource(SOURCE)
    return made.instant().format(queries.PromQueryFormat.TABLE) if instant else made.range()


def thresholds(steps: list[tuple[float | None, str]]) -> dashboard.ThresholdsConfig:
    made = [models.Threshold(value=value, color=color) for value, color in steps]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(made)


def number(title: str, expression: str, *, steps: Any = None, unit: str = "short", span: int = 3) -> stat.Panel:
    """One number."""
    panel = stat.Panel().title(title).description(about(expression)).datasource(SOURCE).height(4).span(span)
    panel = panel.unit(unit).thresholds(thresholds(steps or GREY)).graph_mode(common.BigValueGraphMode.NONE)
    reduced = common_builders.ReduceDataOptions().calcs(["lastNotNull"])
    return panel.reduce_options(reduced).with_target(query(expression, ""))


def lines(
    title: str, *asked: tuple[str, str], unit: str = "short", span: int = 8, stacked: bool = False, least: float = 0
) -> timeseries.Panel:
    """Lines over time: pairs of expression and legend."""
    panel = timeseries.Panel().title(title).description(about(*(e for e, _ in asked))).datasource(SOURCE)
    panel = panel.height(8).span(span).unit(unit).min(least).fill_opacity(30 if stacked else 5).line_width(1)
    panel = panel.show_points(common.VisibilityMode.NEVER)
    legend = common_builders.VizLegendOptions().show_legend(True).placement(common.LegendPlacement.BOTTOM)
    panel = panel.legend(legend.display_mode(common.LegendDisplayMode.LIST).calcs([]))
    tooltip = common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI)
    panel = panel.tooltip(tooltip.sort(common.SortOrder.DESCENDING))
    if stacked:
        panel = panel.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
    for expression, legend_format in asked:
        panel = panel.with_target(query(expression, legend_format))
    return panel


def states(title: str, expression: str, legend: str, *, span: int = 24, height: int = 9) -> statetimeline.Panel:
    """Panel that shows when something was 1 and when 0."""
    panel = statetimeline.Panel().title(title).description(about(expression)).datasource(SOURCE)
    panel = panel.height(height).span(span).min(0).max(1).show_value(common.VisibilityMode.NEVER)
    no, yes = (
        models.ValueMappingResult(text="False", color="text"),
        models.ValueMappingResult(text="True", color="blue"),
    )
    mapping = models.ValueMap(options={"0": no, "1": yes})
    return panel.mappings([mapping]).thresholds(thresholds(GREY)).with_target(query(expression, legend))


def rows(title: str, expression: str, hidden: tuple[str, ...], *, span: int = 12) -> table.Panel:
    """A table of what an expression finds now."""
    panel = table.Panel().title(title).description(about(expression)).datasource(SOURCE).height(8).span(span)
    leave_out = dict.fromkeys(("Time", "Value", "__name__", "instance", "job", "pod", *hidden), True)
    transformed = models.DataTransformerConfig(id_val="organize", options={"excludeByName": leave_out})
    panel = panel.no_value("none").transformations([transformed])
    return panel.with_target(query(expression, "", instant=True))


def quantile(rank: float, metric: str, by: str, labels: str) -> str:
    grouped = f"{by}, le" if by else "le"
    return f"histogram_quantile({rank}, sum by ({grouped}) (rate({metric}_bucket{{{labels}}}[$__rate_interval])))"


def variable(name: str, label: str, asked: str, *, all_values: bool = False) -> dashboard.QueryVariable:
    made = dashboard.QueryVariable(name).label(label).datasource(SOURCE).query(asked)
    made = made.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(models.VariableSort.ALPHABETICAL_ASC)
    return made.include_all(True).multi(True) if all_values else made


def page(uid: str, title: str, text: str, *variables: dashboard.QueryVariable) -> dashboard.Dashboard:
    made = dashboard.Dashboard(title).uid(uid).description(text).tags(["hudi-operator"]).timezone("browser")
    made = made.time("now-6h", "now").refresh("1m").tooltip(models.DashboardCursorSync.CROSSHAIR).editable()
    made = made.variables([dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")])
    for one in (variable("job", "Operator", "label_values(hudi_operator_build_info, job)"), *variables):
        made = made.with_variable(one)
    others = dashboard.DashboardLink("Hudi").type(models.DashboardLinkType.DASHBOARDS).tags(["hudi-operator"])
    others = others.as_dropdown(True).include_vars(True).keep_time(True).icon("dashboard")
    return made.links([others])


def condition(name: str) -> str:
    return f'hudi_operator_table_condition{{{JOB}, condition="{name}"}}'


def overview() -> dashboard.Dashboard:
    """All tables of an operator."""
    top = "{{namespace}}/{{table}}"
    made = page("hudi-overview", "Hudi / Overview", "All tables and writers of one operator.")
    made = made.with_row(dashboard.Row("Now"))
    for title, name in (
        ("Tables Stalled", "Stalled"),
        ("Waiting for proof of death", "AwaitingProofOfDeath"),
        ("Foreign writers", "ForeignWriters"),
        ("Services unhealthy", "ServicesHealthy"),
    ):
        counted = f"count({condition(name)} == {int(name != 'ServicesHealthy')}) or vector(0)"
        made = made.with_panel(number(title, counted, steps=RED_ABOVE_0, span=4))
    stalled = f'count(hudi_operator_writer_condition{{{JOB}, condition="Stalled"}} == 1) or vector(0)'
    made = made.with_panel(number("Writers Stalled", stalled, steps=RED_ABOVE_0, span=4))
    made = made.with_panel(number("Tables", f"sum(hudi_operator_tables{{{JOB}}})", span=4))
    hidden = ("condition",)
    made = made.with_panel(rows("Tables that are not Ready", f"{condition('Ready')} == 0", hidden))
    not_ready = f'hudi_operator_writer_condition{{{JOB}, condition="Ready"}} == 0'
    made = made.with_panel(rows("Writers that are not Ready", not_ready, hidden))

    made = made.with_row(dashboard.Row("Commits"))
    commits = f"sum by (namespace) (rate(hudi_operator_commits_total{{{JOB}}}[$__rate_interval]))"
    made = made.with_panel(lines("Commits per second", (commits, "{{namespace}}"), unit="cps", stacked=True))
    records = f"sum by (namespace) (rate(hudi_operator_writer_records_total{{{JOB}}}[$__rate_interval]))"
    made = made.with_panel(lines("Records per second", (records, "{{namespace}}"), unit="cps", stacked=True))
    conflicts = f"sum(rate(hudi_operator_write_conflicts_total{{{JOB}}}[$__rate_interval]))"
    made = made.with_panel(lines("Conflicts per second", (conflicts, "conflicts"), unit="cps"))
    age = f"topk(10, time() - hudi_operator_last_commit_timestamp_seconds{{{JOB}}})"
    made = made.with_panel(lines("Time since the last commit (top 10)", (age, top), unit="s"))
    wasted = (
        "topk(10, sum by (namespace, table, writer) "
        f"(rate(hudi_operator_writer_conflict_wasted_seconds_total{{{JOB}}}[$__rate_interval])))"
    )
    legend = "{{namespace}}/{{writer}}"
    made = made.with_panel(lines("Share of time lost to conflicts (top 10)", (wasted, legend), unit="percentunit"))
    backlog = f"topk(10, hudi_operator_writer_backlog{{{JOB}}})"
    made = made.with_panel(lines("Backlog of writers (top 10)", (backlog, legend)))

    made = made.with_row(dashboard.Row("Writers"))
    by_state = f"sum by (state) (hudi_operator_writers{{{JOB}}})"
    made = made.with_panel(lines("Writers by state", (by_state, "{{state}}"), stacked=True))
    started = f"sum(increase(hudi_operator_attempts_total{{{JOB}}}[$__rate_interval]))"
    ended = f"sum by (class) (increase(hudi_operator_attempts_ended_total{{{JOB}}}[$__rate_interval])) > 0"
    made = made.with_panel(lines("Attempts", (started, "started"), (ended, "ended: {{class}}")))
    waiting = f"topk(10, time() - hudi_operator_writer_waiting_since_timestamp_seconds{{{JOB}}})"
    made = made.with_panel(lines("Writers that wait for their turn (top 10)", (waiting, legend), unit="s"))

    made = made.with_row(dashboard.Row("Locks"))
    for title, metric in (
        ("Wait for", "hudi_operator_lock_wait_seconds"),
        ("Hold of", "hudi_operator_lock_hold_seconds"),
    ):
        slow = f"topk(10, {quantile(0.95, metric, 'namespace, table', JOB)})"
        made = made.with_panel(lines(f"{title} the lock, 95th percentile (top 10)", (slow, top), unit="s"))
    held = f"topk(10, time() - hudi_operator_lock_held_since_timestamp_seconds{{{JOB}}})"
    made = made.with_panel(lines("Locks that are held for long", (held, top), unit="s"))

    made = made.with_row(dashboard.Row("Fencing"))
    fences = f"sum by (reason) (increase(hudi_operator_fences_total{{{JOB}}}[$__rate_interval])) > 0"
    made = made.with_panel(lines("Fenced processes", (fences, "{{reason}}"), stacked=True))
    settling = f"sum by (phase) (hudi_operator_settling{{{JOB}}})"
    made = made.with_panel(lines("Dead processes that are being settled", (settling, "{{phase}}"), stacked=True))
    phases = quantile(0.95, "hudi_operator_settle_phase_seconds", "phase", JOB)
    made = made.with_panel(lines("Time in a phase, 95th percentile", (phases, "{{phase}}"), unit="s"))

    made = made.with_row(dashboard.Row("Services and agents"))
    failures = f"topk(10, hudi_operator_service_failures{{{JOB}}} > 0)"
    made = made.with_panel(
        lines("Services that fail (runs in a row, top 10)", (failures, top + " {{service}}"), span=6)
    )
    ratio = f"topk(10, hudi_operator_log_file_bytes{{{JOB}}} / (hudi_operator_base_file_bytes{{{JOB}}} > 0))"
    made = made.with_panel(lines("Log files to base files (top 10)", (ratio, top), unit="percentunit", span=6))
    agents = f"sum by (namespace) (hudi_operator_agent_tables{{{JOB}}})"
    made = made.with_panel(lines("Tables with an agent", (agents, "{{namespace}}"), stacked=True, span=6))
    waiting_commits = f"topk(10, hudi_operator_callback_undelivered{{{JOB}}})"
    return made.with_panel(lines("Commits that wait for a receiver (top 10)", (waiting_commits, top), span=6))


def one_table() -> dashboard.Dashboard:
    """One table and its writers."""
    writer = "{{writer}}"
    made = page(
        "hudi-table",
        "Hudi / Table",
        "One HudiTable and its HudiWriters.",
        variable("namespace", "Namespace", f"label_values(hudi_operator_table_condition{{{JOB}}}, namespace)"),
        variable(
            "table", "Table", f'label_values(hudi_operator_table_condition{{{JOB}, namespace="$namespace"}}, table)'
        ),
    )
    made = made.with_row(dashboard.Row("Now"))
    ready = f'hudi_operator_table_condition{{{ONE}, condition="Ready"}}'
    made = made.with_panel(number("Ready", ready, steps=[(None, "red"), (1.0, "green")]))
    for title, metric in (
        ("Last commit", "hudi_operator_last_commit_timestamp_seconds"),
        ("Oldest pending instant", "hudi_operator_oldest_pending_instant_timestamp_seconds"),
        ("Agent's last report", "hudi_operator_timeline_report_timestamp_seconds"),
        ("Lock held for", "hudi_operator_lock_held_since_timestamp_seconds"),
    ):
        made = made.with_panel(number(title, f"time() - {metric}{{{ONE}}}", unit="s"))
    made = made.with_panel(number("Pending instants", f"hudi_operator_pending_instants{{{ONE}}}"))
    foreign = f"hudi_operator_foreign_instants{{{ONE}}}"
    made = made.with_panel(number("Foreign instants", foreign, steps=RED_ABOVE_0))
    lost = f"hudi_operator_callback_archived_undelivered{{{ONE}}}"
    made = made.with_panel(number("Archived before delivery", lost, steps=RED_ABOVE_0))
    conditions = f"hudi_operator_table_condition{{{ONE}}}"
    made = made.with_panel(states("Conditions", conditions, "{{condition}}", span=12))
    of_writers = f'hudi_operator_writer_condition{{{ONE}, condition="Ready"}}'
    made = made.with_panel(states("Writers that are Ready", of_writers, writer, span=12))

    made = made.with_row(dashboard.Row("Writers"))
    commits = f"rate(hudi_operator_commits_total{{{ONE}}}[$__rate_interval])"
    made = made.with_panel(lines("Commits per second", (commits, "commits"), unit="cps"))
    records = f"rate(hudi_operator_writer_records_total{{{ONE}}}[$__rate_interval])"
    bad = f"rate(hudi_operator_writer_bad_records_total{{{ONE}}}[$__rate_interval])"
    read = ((records, writer), (bad, f"{writer}, left out"))
    made = made.with_panel(lines("Records per second", *read, unit="cps", stacked=True))
    made = made.with_panel(lines("Backlog", (f"hudi_operator_writer_backlog{{{ONE}}}", writer)))
    age = f"time() - hudi_operator_writer_last_commit_timestamp_seconds{{{ONE}}}"
    made = made.with_panel(lines("Time since the last commit", (age, writer), unit="s"))
    conflicts = f"increase(hudi_operator_writer_conflicts_total{{{ONE}}}[$__rate_interval])"
    made = made.with_panel(lines("Conflicts", (conflicts, writer), stacked=True))
    wasted = f"rate(hudi_operator_writer_conflict_wasted_seconds_total{{{ONE}}}[$__rate_interval])"
    made = made.with_panel(lines("Share of time lost to conflicts", (wasted, writer), unit="percentunit"))
    by_state = f"hudi_operator_writers{{{ONE}}}"
    made = made.with_panel(lines("Writers by state", (by_state, "{{state}}"), stacked=True, span=12))
    waiting = f"time() - hudi_operator_writer_waiting_since_timestamp_seconds{{{ONE}}}"
    made = made.with_panel(lines("Waiting for their turn", (waiting, writer), unit="s", span=12))

    made = made.with_row(dashboard.Row("Lock and settling"))
    for title, metric in (
        ("Wait for", "hudi_operator_lock_wait_seconds"),
        ("Hold of", "hudi_operator_lock_hold_seconds"),
    ):
        asked = [(quantile(rank, metric, "", ONE), name) for rank, name in ((0.5, "median"), (0.95, "95 %"))]
        made = made.with_panel(lines(f"{title} the lock", *asked, unit="s", span=6))
    settling = f"hudi_operator_settling{{{ONE}}}"
    made = made.with_panel(lines("Being settled", (settling, "{{phase}}"), stacked=True, span=6))
    since = f"time() - hudi_operator_settling_since_timestamp_seconds{{{ONE}}}"
    made = made.with_panel(lines("In this phase for", (since, "{{phase}}"), unit="s", span=6))

    made = made.with_row(dashboard.Row("Services"))
    ran = f"time() - hudi_operator_service_last_run_timestamp_seconds{{{ONE}}}"
    made = made.with_panel(lines("Time since the last run", (ran, "{{service}}"), unit="s", span=6))
    failures = f"hudi_operator_service_failures{{{ONE}}}"
    made = made.with_panel(lines("Failed runs in a row", (failures, "{{service}}"), span=6))
    base, log = f"hudi_operator_base_file_bytes{{{ONE}}}", f"hudi_operator_log_file_bytes{{{ONE}}}"
    made = made.with_panel(lines("What readers merge", (base, "base files"), (log, "log files"), unit="bytes", span=6))
    undelivered = f"hudi_operator_callback_undelivered{{{ONE}}}"
    failed = f"hudi_operator_callback_failures{{{ONE}}}"
    oldest = f"time() - (hudi_operator_callback_undelivered_since_timestamp_seconds{{{ONE}}} > 0)"
    made = made.with_panel(
        lines("Commit callback", (undelivered, "commits that wait"), (failed, "failures in a row"), span=3)
    )
    made = made.with_panel(lines("Oldest commit that waits", (oldest, "age"), unit="s", span=3))
    behind = f"hudi_operator_catalog_lag_seconds{{{ONE}}}"
    made = made.with_panel(lines("Catalog is behind by", (behind, "lag"), unit="s", span=8))
    shown = f"time() - hudi_operator_catalog_last_commit_timestamp_seconds{{{ONE}}}"
    made = made.with_panel(lines("Age of the commit that the catalog shows", (shown, "age"), unit="s", span=8))
    tries = f"hudi_operator_catalog_failures{{{ONE}}}"
    return made.with_panel(lines("Failures of the catalog in a row", (tries, "failures"), span=8))


def operator() -> dashboard.Dashboard:
    """The operator, etcd and the gateway."""
    made = page("hudi-operator", "Hudi / Operator", "The operator's own health, its etcd and its gateway.")
    made = made.with_row(dashboard.Row("Now"))
    made = made.with_panel(
        number(
            "Leaders",
            f"sum(hudi_operator_leader{{{JOB}}})",
            steps=[(None, "red"), (1.0, "green"), (2.0, "red")],
            span=4,
        )
    )
    made = made.with_panel(number("Replicas", f"count(hudi_operator_build_info{{{JOB}}})", span=3))
    made = made.with_panel(number("Tables", f"sum(hudi_operator_tables{{{JOB}}})", span=3))
    ends = f"min(hudi_operator_certificate_expiration_timestamp_seconds{{{JOB}}}) - time()"
    soon = [(None, "red"), (129600.0, "green")]
    made = made.with_panel(number("Next certificate expires in", ends, unit="s", steps=soon, span=4))
    clock = f"max(abs(hudi_operator_api_clock_offset_seconds{{{JOB}}}))"
    made = made.with_panel(number("Clocks differ by", clock, unit="s", steps=[(None, "green"), (5.0, "red")], span=4))
    agents = f"sum(increase(hudi_operator_agents_total{{{JOB}}}[$__range]))"
    made = made.with_panel(number("Agents started", agents, span=3))
    settings = f"min(hudi_operator_config_in_force{{{JOB}}})"
    in_force = [(None, "red"), (1.0, "green")]
    made = made.with_panel(number("Configuration in force", settings, steps=in_force, span=3))

    made = made.with_row(dashboard.Row("Reconciles"))
    outcomes = f"sum by (outcome) (rate(hudi_operator_reconciles_total{{{JOB}}}[$__rate_interval]))"
    made = made.with_panel(lines("Reconciles per second", (outcomes, "{{outcome}}"), unit="cps", stacked=True, span=6))
    asked = [
        (quantile(rank, "hudi_operator_reconcile_seconds", "", JOB), name)
        for rank, name in ((0.5, "median"), (0.99, "99 %"))
    ]
    made = made.with_panel(lines("Duration of a reconcile", *asked, unit="s", span=6))
    queue = f"sum(hudi_operator_queue_length{{{JOB}}})"
    made = made.with_panel(lines("Tables that wait", (queue, "tables"), span=6))
    lag = quantile(0.99, "hudi_operator_event_loop_lag_seconds", "pod", JOB)
    made = made.with_panel(lines("Lag of the event loop, 99th percentile", (lag, "{{pod}}"), unit="s", span=6))

    made = made.with_row(dashboard.Row("API server"))
    codes = f"sum by (verb, code) (rate(hudi_operator_api_requests_total{{{JOB}}}[$__rate_interval])) > 0"
    made = made.with_panel(lines("Requests per second", (codes, "{{verb}} {{code}}"), unit="cps", stacked=True))
    slow = quantile(0.99, "hudi_operator_api_request_seconds", "verb", JOB)
    made = made.with_panel(lines("Duration of a request, 99th percentile", (slow, "{{verb}}"), unit="s"))
    wait = quantile(0.99, "hudi_operator_api_wait_seconds", "", JOB)
    made = made.with_panel(lines("Wait before a request, 99th percentile", (wait, "wait"), unit="s"))

    made = made.with_row(dashboard.Row("etcd and certificates"))
    calls = quantile(0.99, "hudi_operator_etcd_seconds", "action", JOB)
    made = made.with_panel(lines("Duration of a call, 99th percentile", (calls, "{{action}}"), unit="s"))
    sizes = [
        (f"max(hudi_operator_etcd_database_{name}bytes{{{JOB}}})", legend)
        for name, legend in (("", "file"), ("in_use_", "in use"), ("quota_", "quota"))
    ]
    made = made.with_panel(lines("Database", *sizes, unit="bytes"))
    left = f"min by (certificate) (hudi_operator_certificate_expiration_timestamp_seconds{{{JOB}}}) - time()"
    made = made.with_panel(lines("Certificates expire in", (left, "{{certificate}}"), unit="s"))

    made = made.with_row(dashboard.Row("Gateway and processes"))
    requests = f"sum by (pod) (rate(hudi_gateway_requests_total{{{GATEWAY}}}[$__rate_interval]))"
    made = made.with_panel(lines("Requests of pods per second", (requests, "{{pod}}"), unit="cps", span=6))
    refused = f"sum by (code) (rate(hudi_gateway_refused_total{{{GATEWAY}}}[$__rate_interval]))"
    made = made.with_panel(lines("Refused requests per second", (refused, "{{code}}"), unit="cps", span=6))
    sockets = f"hudi_gateway_connections{{{GATEWAY}}}"
    made = made.with_panel(lines("Open connections of pods", (sockets, "{{pod}}"), unit="short", span=6))
    closed = f"sum by (pod) (rate(hudi_gateway_connections_refused_total{{{GATEWAY}}}[$__rate_interval]))"
    made = made.with_panel(lines("Refused connections per second", (closed, "{{pod}}"), unit="cps", span=6))
    cpu = f"rate(process_cpu_seconds_total{{{JOB}}}[$__rate_interval])"
    made = made.with_panel(lines("Processor time of the operator", (cpu, "{{pod}}"), unit="percentunit", span=6))
    memory = f"process_resident_memory_bytes{{{JOB}}}"
    return made.with_panel(lines("Memory of the operator", (memory, "{{pod}}"), unit="bytes", span=6))


PAGES: dict[str, Callable[[], dashboard.Dashboard]] = {
    "overview.json": overview,
    "table.json": one_table,
    "operator.json": operator,
}


def text(name: str) -> str:
    """The JSON of a dashboard."""
    made = json.loads(json.dumps(PAGES[name]().build(), cls=JSONEncoder))
    for number_of, panel in enumerate(made["panels"], start=1):
        panel["id"] = number_of
        for index, target in enumerate(panel.get("targets", ())):
            target["refId"] = chr(ord("A") + index)
    return json.dumps(made, indent=1, sort_keys=True) + "\n"


def main() -> int:
    wrong = []
    FOLDER.mkdir(exist_ok=True)
    for name in PAGES:
        file = FOLDER / name
        if "--check" in sys.argv[1:]:
            wrong += [name] if not file.exists() or file.read_text() != text(name) else []
        else:
            file.write_text(text(name))
    for name in wrong:
        print(f"{FOLDER / name} is not what hack/dashboards/make.py makes: run it", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
