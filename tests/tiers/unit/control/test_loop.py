"""One look after the other, with planners and ports of the test's own."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hudi_contract import naming
from hudi_contract.records import Stored
from hudi_contract.words import Role
from hudi_operator.control.applied_objects import KEPT_SECONDS, KEY_SECONDS, AppliedObjects
from hudi_operator.control.counts import COUNTS_SECONDS, Counts, left
from hudi_operator.control.executor import Executor
from hudi_operator.control.loop import QUIET_SECONDS, Reconciler, is_quiet, quiet_interval
from hudi_operator.control.refusals import Refusals
from hudi_operator.control.repeated import Repeated
from hudi_operator.control.timers import Timers
from hudi_operator.main import _api_problem
from hudi_operator.manifests.namespace import authority_config_map
from hudi_operator.model import conditions
from hudi_operator.model.facts import EtcdFacts, Nodes, Observed, PodFacts, Refusal
from hudi_operator.model.objects import Objects
from hudi_operator.model.ports import Conflict, Fatal, LeaseLost, Refused, Retryable
from hudi_operator.plan.core import actions as act

KEY = ("ns", "t")
TABLE = {"metadata": {"namespace": "ns", "name": "t", "uid": "u", "resourceVersion": "1"}, "status": {"a": 1}}


def observed(
    *,
    pods: Sequence[PodFacts] = (),
    settles: dict[str, Stored] | None = None,
    timers: dict[str, float] | None = None,
    writers: Sequence[Any] = (),
    status: dict[str, Any] | None = None,
    reports: dict[str, Stored] | None = None,
) -> Observed:
    etcd = EtcdFacts(revision=1, cluster_id="c", settles=settles or {}, reports=reports or {})
    table = TABLE if status is None else {**TABLE, "status": status}
    return Observed(Objects(table, tuple(writers)), pods=tuple(pods), nodes=Nodes(), etcd=etcd, timers=timers or {})


def pod(role: str) -> PodFacts:
    return PodFacts("ns", "p", "u", {naming.LABEL_ROLE: role}, "Running", "n", False, (naming.EVIDENCE_FINALIZER,), ())


class Recorder:
    """Both ports: notes each call, answers True, fails where it is told to."""

    def __init__(self, *, refuse: str = "", held: bool = True) -> None:
        self.calls: list[str] = []
        self._refuse, self._held = refuse, held

    def __getattr__(self, name: str) -> Any:
        async def call(*_: Any, **__: Any) -> bool:
            self.calls.append(name)
            if name == self._refuse:
                raise Fatal("refused")
            return self._held

        return call


def executor(port: Any, *, leading: Sequence[bool] = ()) -> Executor:
    answers = iter(leading)

    def check() -> None:
        if not next(answers, True):
            raise LeaseLost("lost")

    return Executor(kubernetes=port, etcd=port, timers=Timers(), check_leader=check)


def perform(made: Executor, *actions: act.Action) -> list[act.Action]:
    return asyncio.run(made.perform(KEY, observed(), act.Plan("x", actions)))


UNLOCK = act.Unlock("t", "i", 7)
DELETE = act.DeletePod("ns", "p", "u", 30)


def test_actions_are_performed_in_order() -> None:
    port = Recorder()
    assert perform(executor(port), DELETE, UNLOCK) == [DELETE, UNLOCK]
    assert port.calls == ["delete", "unlock"]


def test_the_first_failure_ends_the_plan() -> None:
    port = Recorder(refuse="delete")
    with pytest.raises(Fatal):
        perform(executor(port), DELETE, UNLOCK)
    assert port.calls == ["delete"]


def test_a_compare_that_does_not_hold_ends_the_plan() -> None:
    port = Recorder(held=False)
    with pytest.raises(Conflict):
        perform(executor(port), UNLOCK, DELETE)
    assert port.calls == ["unlock"]


def test_a_former_leader_stops_before_its_next_action() -> None:
    port = Recorder()
    with pytest.raises(LeaseLost):
        perform(executor(port, leading=[True, False]), DELETE, UNLOCK)
    assert port.calls == ["delete"]


def test_an_equal_status_is_not_sent() -> None:
    port = Recorder()
    perform(executor(port), act.UpdateStatus("HudiTable", "ns", "t", "1", {"a": 1}))
    assert port.calls == []
    perform(executor(port), act.UpdateStatus("HudiTable", "ns", "t", "1", {"a": 2}))
    assert port.calls == ["replace_status"]


def test_an_event_is_sent_once_per_object_reason_and_attempt() -> None:
    port = Recorder()
    made = executor(port)
    for attempt, message in ((1, "x"), (1, "y"), (2, "x")):
        perform(made, act.EmitEvent("HudiWriter", "ns", "w", "u", "Normal", "Started", message, attempt))
    assert port.calls == ["event", "event"]


def test_timers_start_once_and_are_forgotten() -> None:
    now = [0.0]
    timers = Timers(lambda: now[0])
    timers.start(KEY, "drain")
    now[0] = 3.0
    timers.start(KEY, "drain")
    assert timers.ages(KEY) == {"drain": 3.0}
    timers.stop(KEY, "drain")
    assert timers.ages(KEY) == {}


def test_a_quiet_table_is_looked_at_ever_less_often() -> None:
    assert is_quiet(observed(pods=[pod("agent")]))
    assert is_quiet(observed(pods=[pod("driver")])), "its end is an event"
    for other in (replace(pod("driver"), phase="Pending"), replace(pod("executor"), deleting=True)):
        assert not is_quiet(observed(pods=[other])), "it is about to start or to end"
    assert not is_quiet(observed(timers={"drain": 1.0}))
    assert not is_quiet(observed(settles={"i": Stored({"phase": "Terminating"}, 1, 1)}))
    assert is_quiet(observed(settles={"i": Stored({"phase": "Settled"}, 1, 1)}))
    waiting = {
        "metadata": {"name": "w"},
        "spec": {},
        "status": {"conditions": [{"type": "Finished", "status": "False"}]},
    }
    finished = {
        "metadata": {"name": "w"},
        "spec": {},
        "status": {"conditions": [{"type": "Finished", "status": "True"}]},
    }
    running = {
        "metadata": {"name": "w"},
        "spec": {},
        "status": {"conditions": [{"type": "Running", "status": "True"}]},
    }
    assert not is_quiet(observed(writers=[waiting])), "its next attempt has a time"
    assert is_quiet(observed(writers=[finished]))
    assert is_quiet(observed(writers=[running, finished])), "F262: nothing is polled that comes with an event"
    for minutes, quiet in ((4, False), (5, True)):
        tick = conditions.rfc3339(minutes * 60_000)
        scheduled = {
            **running,
            "spec": {"schedule": {"cron": "@daily"}},
            "status": {**running["status"], "nextScheduleTime": tick},
        }
        assert is_quiet(observed(writers=[scheduled])) is quiet
        assert is_quiet(observed(status={"services": {"clean": {"nextTime": tick}, "ttl": {}}})) is quiet
    assert [quiet_interval(15, looks) for looks in (-1, 0, 1, 2, 3, 50)] == [
        15,
        30,
        60,
        120,
        QUIET_SECONDS,
        QUIET_SECONDS,
    ]


@pytest.mark.parametrize(
    ("spec", "entry", "stage", "quiet"),
    [
        ({"readyDeadlineSeconds": 60}, {}, "", False),
        ({"readyDeadlineSeconds": 60}, {"readyTime": "x"}, "", True),
        ({"readyDeadlineSeconds": 60}, {"class": "Succeeded"}, "", True),
        ({"commitDeadlineSeconds": 60}, {"readyTime": "x"}, "", False),
        ({"commitDeadlineSeconds": 60}, {"readyTime": "x", "waitingSince": "x"}, "Waiting", True),
        ({"commitDeadlineSeconds": 60}, {"readyTime": "x", "waitingSince": "x"}, "Writing", False),
        ({"commitDeadlineSeconds": 60}, {"readyTime": "x"}, "Waiting", False),
        ({"commitDeadlineSeconds": 60}, {"readyTime": "x", "class": "Eviction"}, "", True),
    ],
)
def test_a_deadline_is_polled_while_no_event_tells_of_it(
    spec: dict[str, Any], entry: dict[str, Any], stage: str, *, quiet: bool
) -> None:
    """An idle stream costs no looks, however long it runs."""
    last = {"number": 1, "pod": "w-1", **entry}
    stream = {
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"tableRef": {"name": "t"}, "source": {"files": {"format": "csv", "paths": ["s3a://b/x/"]}}, **spec},
        "status": {"conditions": [{"type": "Running", "status": "True"}], "attempts": [last]},
    }
    seen = observed(writers=[stream], reports={"attempt/ns.w-1": Stored({"inc": "i", "stage": stage}, 1, 1)})
    assert is_quiet(seen) is quiet


class Api:
    """Answers of an API server by path."""

    def __init__(self, minor: str, kinds: list[str] | None) -> None:
        self._minor, self._kinds = minor, kinds

    async def request(self, method: str, path: str) -> dict[str, Any]:
        from hudi_operator.adapters.kubernetes import ApiError

        if path == "/version":
            return {"major": "1", "minor": self._minor}
        if self._kinds is None:
            raise ApiError(404, "not found", retry_after=None)
        return {"resources": [{"name": kind} for kind in self._kinds]}


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (None, "install the CustomResourceDefinitions"),
        (["huditables"], "missing: hudiwriters"),
        (["huditables", "huditables/status", "hudiwriters"], ""),
    ],
)
def test_missing_definitions_are_named_and_waited_for(kinds: list[str] | None, said: str) -> None:
    problem = asyncio.run(_api_problem(Api("37", kinds)))  # type: ignore[arg-type]
    assert said in problem
    assert bool(problem) == bool(said)


def _secret(pod: str) -> dict[str, Any]:
    meta = {"namespace": "lake", "name": f"{pod}-spark-key", "ownerReferences": [{"name": pod, "uid": f"uid-{pod}"}]}
    return {"kind": "Secret", "metadata": meta}


def test_each_key_is_random_and_one_that_exists_stays() -> None:
    made: list[dict[str, Any]] = []

    class Cluster(Recorder):
        async def create(self, manifest: dict[str, Any]) -> str:
            made.append(manifest)
            return "" if len(made) == 3 else "made"

        async def owners(self, kind: str, namespace: str, name: str) -> tuple[str, ...]:
            return (f"uid-{name.removesuffix('-spark-key')}",)

    done = perform(executor(Cluster()), *(act.CreateKey(_secret(pod), "key") for pod in ("a-1", "b-1", "c-1")))
    keys = [base64.b64decode(manifest["data"]["key"]) for manifest in made]
    assert [len(key) for key in keys] == [32, 32, 32]
    assert len(set(keys)) == 3
    assert len(done) == 2, "nothing was changed by the third"


def test_a_key_is_made_with_its_pod_and_not_asked_for_at_each_look() -> None:
    """F150: its kubelet waits for it; one that somebody deletes is made again."""
    now, made = [0.0], list[dict[str, Any]]()

    class Cluster(Recorder):
        async def create(self, manifest: dict[str, Any]) -> str:
            made.append(manifest)
            return f"uid-{manifest['metadata']['name']}"

        async def get(self, kind: str, namespace: str, name: str) -> None:
            return None

        async def owners(self, kind: str, namespace: str, name: str) -> None:
            return None

    both: Any = Cluster()
    actor = Executor(
        kubernetes=both,
        etcd=both,
        timers=Timers(),
        check_leader=lambda: None,
        applied=AppliedObjects(lambda: now[0]),
    )
    create = _pod("load-1", {"secret": {"secretName": naming.spark_key_name("load-1")}})
    done = perform(actor, create, _pod("alone-1"))
    assert [(m["kind"], m["metadata"]["name"]) for m in made] == [
        ("Pod", "load-1"),
        ("Secret", "load-1-spark-key"),
        ("Pod", "alone-1"),
    ]
    assert made[1]["metadata"]["ownerReferences"][0] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "load-1",
        "uid": "uid-load-1",
    }
    assert [type(action) for action in done] == [act.CreatePod, act.CreateKey, act.CreatePod]
    for seconds, wanted in ((KEY_SECONDS - 1, 3), (KEY_SECONDS, 4)):
        now[0] = seconds
        perform(actor, act.CreateKey(_secret("load-1"), "key"))
        assert len(made) == wanted


def test_a_key_that_is_refused_leaves_its_pod_admitted() -> None:
    """F291: the pod is there; a later look makes its key, or says why not."""

    class Cluster(Recorder):
        async def create(self, manifest: dict[str, Any]) -> str:
            if manifest["kind"] == "Secret":
                raise Refused("exceeded quota", reason="QuotaExceeded")
            self.pod = manifest
            return "uid"

        async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
            return vars(self).get("pod") if kind == "Pod" else None

        async def owners(self, kind: str, namespace: str, name: str) -> None:
            return None

    cluster = Cluster()
    create = _pod("load-1", {"secret": {"secretName": naming.spark_key_name("load-1")}})
    refusals = Refusals()
    both: Any = cluster
    actor = Executor(kubernetes=both, etcd=both, timers=Timers(), check_leader=lambda: None, refusals=refusals)
    done = perform(actor, act.PutAdmit("t", "ns.load-1", Role.WRITER), create)
    assert [type(action) for action in done] == [act.PutAdmit, act.CreatePod]
    assert "delete_admit" not in cluster.calls
    assert refusals.facts(KEY) == {"ns.load-1": Refusal("QuotaExceeded", "exceeded quota")}


def test_a_status_that_only_counts_writers_waits_a_moment() -> None:
    """Of many writers that start together each has a look of its own."""
    now = [0.0]
    counts = Counts(lambda: now[0])

    def waits(old: dict[str, Any], new: dict[str, Any], kind: str = naming.TABLE_KIND) -> bool:
        return counts.may_wait(KEY, act.UpdateStatus(kind, "ns", "t", "1", new), {"status": old})

    one, two = ({"writers": {"running": n}, "writersSummary": f"{n}/0/0", "agent": "a"} for n in (1, 2))
    assert not waits(one, two), "the first one says so at once"
    assert waits(one, two)
    assert not waits(one, {**two, "agent": "b"}), "something else has changed"
    assert not waits(one, two, naming.WRITER_KIND)
    now[0] = COUNTS_SECONDS
    assert not waits(one, two)
    assert waits(one, two)
    update = act.UpdateStatus(naming.TABLE_KIND, "ns", "t", "1", two)
    assert left(act.Plan("", (update,)), [])
    assert not left(act.Plan("", (update,)), [update])
    assert not left(act.Plan("", (DELETE,)), [])


def _pod(name: str, *sources: dict[str, Any]) -> act.CreatePod:
    volumes = [{"name": f"v{n}", **source} for n, source in enumerate(sources)]
    return act.CreatePod({"kind": "Pod", "metadata": {"namespace": "ns", "name": name}, "spec": {"volumes": volumes}})


def _config(name: str) -> act.Apply:
    return act.Apply({"kind": "ConfigMap", "metadata": {"namespace": "ns", "name": name}})


@pytest.mark.parametrize("projected", [False, True])
def test_a_config_map_of_somebody_else_stops_only_the_pods_that_would_mount_it(*, projected: bool) -> None:
    """F272: names of attempts and agents can be computed by whoever sees tables and writers."""
    made: list[str] = []

    class Cluster(Recorder):
        async def apply(self, manifest: dict[str, Any]) -> None:
            if manifest["metadata"]["name"] == "a-1":
                raise Fatal("ConfigMap ns/a-1 is none that the operator has made")

        async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
            return {"metadata": {"labels": {}}} if (kind, name) == ("ConfigMap", "a-1") else None

        async def create(self, manifest: dict[str, Any]) -> str:
            made.append(manifest["metadata"]["name"])
            return "uid"

    file = {"configMap": {"name": "a-1"}}
    theirs = {"projected": {"sources": [{"serviceAccountToken": {}}, file]}} if projected else file
    begun = (_config("a-1"), act.PutAdmit("t", "ns.a-1", Role.WRITER), _pod("a-1", theirs, {"emptyDir": {}}))
    other = (_config("b-1"), act.PutAdmit("t", "ns.b-1", Role.WRITER), _pod("b-1", {"configMap": {"name": "b-1"}}))
    cluster = Cluster()
    with pytest.raises(Fatal, match="ConfigMap ns/a-1 exists, but was not created by the operator"):
        perform(executor(cluster), *begun, *other, DELETE)
    assert made == ["b-1"]
    assert [call for call in cluster.calls if call != "owners"] == ["put_admit", "delete"]


def test_a_volume_that_names_no_config_map_stops_nothing() -> None:
    """F506: that pod is for the API server to judge."""

    class Cluster(Recorder):
        async def get(self, *_: str) -> None:
            """Nothing is there."""

    odd = [{"configMap": {}}, {"secret": {}}, {"configMap": "settings"}, "settings", None]
    nameless = _pod("w", {"configMap": {}}, {"configMap": "x"}, {"projected": {"sources": odd}}, {"projected": None})
    done = perform(executor(Cluster()), nameless, DELETE)
    assert done == [nameless, DELETE]


class Refusing(Recorder):
    """Makes nothing of these names."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names, self.made, self.tried = set(names), list[str](), list[str]()

    async def _make(self, manifest: dict[str, Any]) -> str:
        name = manifest["metadata"]["name"]
        self.tried.append(name)
        if name in self.names:
            raise Refused(f"create {name}: exceeded quota", reason="QuotaExceeded")
        self.made.append(name)
        return name

    create = apply = _make

    async def get(self, kind: str, namespace: str, name: str) -> None:
        return None

    async def owners(self, kind: str, namespace: str, name: str) -> None:
        return None


def _start(name: str) -> tuple[act.Action, ...]:
    file = act.Apply({"kind": "ConfigMap", "metadata": {"namespace": "ns", "name": f"{name}-conf"}}, f"ns.{name}")
    return file, act.PutAdmit("t", f"ns.{name}", Role.WRITER), _pod(name)


def _key(name: str) -> act.CreateKey:
    meta = {"namespace": "ns", "name": f"{name}-key", "ownerReferences": [{"name": name, "uid": f"uid-{name}"}]}
    return act.CreateKey({"kind": "Secret", "metadata": meta}, "key")


@pytest.mark.parametrize("refused", ["a-1", "a-1-conf", "a-1-key"])
def test_what_is_refused_to_one_attempt_stops_no_other(refused: str) -> None:
    """F245: quota, admission policies and PodSecurity may let some pods pass and others not."""
    refusals, cluster = Refusals(), Refusing(refused)
    made = Executor(kubernetes=cluster, etcd=cluster, timers=Timers(), check_leader=lambda: None, refusals=refusals)
    actions = (*_start("a-1"), *_start("b-1"), _key("a-1"), _key("c-1"), DELETE)
    perform(made, *actions)
    assert {"b-1-conf", "b-1", "c-1-key"} <= set(cluster.made)
    assert cluster.calls[-1] == "delete"
    assert refusals.facts(KEY) == {"ns.a-1": Refusal("QuotaExceeded", f"create {refused}: exceeded quota")}
    assert made.has_news(KEY, observed())
    cluster.tried.clear()
    perform(made, *actions)
    assert not [name for name in cluster.tried if name.startswith("a-1")], "it waits"
    assert "b-1" in cluster.tried


def test_a_refused_attempt_is_tried_again_with_back_off_and_at_once_when_it_is_another_one() -> None:
    now = [0.0]
    refusals, cluster = Refusals(lambda: now[0]), Refusing("a-1")
    made = Executor(kubernetes=cluster, etcd=cluster, timers=Timers(), check_leader=lambda: None, refusals=refusals)
    tries = []
    for second in range(400):
        now[0], before = float(second), len(cluster.tried)
        perform(made, _pod("a-1"))
        if len(cluster.tried) > before:
            tries.append(second)
    assert tries == [0, 5, 15, 35, 75, 155, 275, 395]
    perform(made, _pod("a-1", {"emptyDir": {}}))
    assert len(cluster.tried) == len(tries) + 1, "the user has changed the pod"
    cluster.names.clear()
    perform(made, _pod("a-1"))
    assert cluster.made == ["a-1"]
    assert refusals.facts(KEY) == {}


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize("spec", [None, {"volumes": 3}, {"volumes": [], "containers": {1}}, {"containers": ENDLESS}])
def test_an_attempt_that_cannot_be_read_stops_no_other(spec: Any) -> None:
    """F516: whatever stands in its pod, nobody else waits for it, and it is told once."""
    refusals, cluster = Refusals(), Refusing()
    made = Executor(kubernetes=cluster, etcd=cluster, timers=Timers(), check_leader=lambda: None, refusals=refusals)
    odd = act.CreatePod({**_pod("a-1").manifest, "spec": spec})
    actions = (*_start("a-1")[:2], odd, *_start("b-1"), DELETE)
    with pytest.raises(Fatal, match=r"what is made for attempt ns\.a-1 cannot be read: \w+Error"):
        perform(made, *actions)
    assert cluster.made == ["b-1-conf", "b-1"]
    assert cluster.calls == ["put_admit", "delete"]
    assert [(attempt, told.reason) for attempt, told in refusals.facts(KEY).items()] == [("ns.a-1", "Invalid")]
    assert made.has_news(KEY, observed()), "its writer says so"
    cluster.made.clear()
    perform(made, *actions)
    assert cluster.made == ["b-1-conf", "b-1"]
    perform(made, *_start("a-1"))
    assert cluster.made[2:] == ["a-1-conf", "a-1"], "at once when it can be read"
    assert refusals.facts(KEY) == {}


def test_an_attempt_that_is_not_begun_any_more_is_forgotten() -> None:
    refusals, cluster = Refusals(), Refusing("a-1")
    made = Executor(kubernetes=cluster, etcd=cluster, timers=Timers(), check_leader=lambda: None, refusals=refusals)
    perform(made, _pod("a-1"))
    assert refusals.facts(KEY)
    perform(made)
    assert refusals.facts(KEY) == {}


class Admitting(Refusing):
    """Notes who is admitted. ``pods``: those that are there, by name."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.admitted, self.pods = set[str](), dict[str, dict[str, Any]]()

    async def put_admit(self, table_id: str, *, attempt: str, role: str) -> bool:
        self.admitted.add(attempt)
        return True

    async def delete_admit(self, table_id: str, *, attempt: str) -> bool:
        self.admitted.discard(attempt)
        return True

    async def get(self, kind: str, namespace: str, name: str) -> Any:
        return self.pods.get(name) if kind == "Pod" else None

    def look(self, made: Executor, *actions: act.Action) -> None:
        etcd = EtcdFacts(1, "c", admits={attempt: Stored({}, 1, 1) for attempt in self.admitted})
        asyncio.run(made.perform(KEY, replace(observed(), etcd=etcd), act.Plan("x", actions)))


def test_who_gets_no_pod_is_not_admitted() -> None:
    """F291: the gateway knows a pod by its name, and another one of that name may come."""
    cluster = Admitting("a-1")
    made = Executor(kubernetes=cluster, etcd=cluster, timers=Timers(), check_leader=lambda: None)  # type: ignore[arg-type]
    actions = (*_start("a-1"), *_start("b-1"))
    cluster.look(made, *actions)
    assert cluster.admitted == {"ns.b-1"}
    cluster.admitted.add("ns.a-1")
    cluster.look(made, *actions)
    assert cluster.admitted == {"ns.b-1"}, "it waits, and was admitted by an operator that has ended"
    cluster.admitted.add("ns.a-1")
    cluster.pods["a-1"] = {"metadata": {"namespace": "ns", "name": "a-1", "labels": {}, "ownerReferences": []}}
    named = act.CreatePod(
        {**_pod("a-1").manifest, "metadata": {**_pod("a-1").manifest["metadata"], "labels": {"x": "y"}}}
    )
    with pytest.raises(Fatal, match="Pod ns/a-1 exists, but was not created by the operator"):
        cluster.look(made, *_start("a-1")[:2], named)
    assert cluster.admitted == {"ns.b-1"}, "somebody else's pod has the name"


def test_an_attempt_with_a_pod_stays_admitted_whatever_is_refused_to_it() -> None:
    """The API server looks at a quota before it looks whether the pod is there."""
    cluster = Admitting("a-1", "c-1-key")
    cluster.pods["a-1"] = _pod("a-1").manifest
    cluster.admitted.add("ns.c-1")
    made = Executor(kubernetes=cluster, etcd=cluster, timers=Timers(), check_leader=lambda: None)  # type: ignore[arg-type]
    for _ in range(2):
        cluster.look(made, *_start("b-1"), _key("c-1"))
        assert cluster.admitted == {"ns.b-1", "ns.c-1"}
    cluster.look(made, *_start("a-1"))
    assert cluster.admitted == {"ns.a-1", "ns.b-1", "ns.c-1"}


def test_what_is_refused_to_all_is_reported_and_ends_nothing_else() -> None:
    class Cluster(Recorder):
        async def apply(self, manifest: dict[str, Any]) -> None:
            raise Refused("quota", reason="QuotaExceeded")

        async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
            return {"metadata": {"labels": dict(naming.MANAGED)}}

    cluster = Cluster()
    with pytest.raises(Fatal, match="quota"):
        perform(executor(cluster), _config("a-1"), DELETE)
    assert cluster.calls == ["delete"]


class Webhook(Recorder):
    """Refuses what is written to objects of these names; notes what is tried, with its name."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = names

    async def _write(self, kind: str, namespace: str, name: str, **_: Any) -> None:
        self.calls.append(name)
        if name in self._names:
            raise Refused(f"{kind} {name}: denied by a webhook", reason="AdmissionWebhook")

    patch_finalizers = delete = replace_status = _write

    async def get(self, kind: str, namespace: str, name: str) -> None:
        return None

    owners = get


def _status(kind: str, name: str, *pods: str) -> act.UpdateStatus:
    attempts = [{"number": n + 1, "pod": pod} for n, pod in enumerate(pods)]
    return act.UpdateStatus(kind, "ns", name, "1", {"attempts": attempts})


def test_a_refused_write_stops_only_what_depends_on_its_object() -> None:
    """F430: a policy that is newer than an old pod refuses its finalizer at each look."""
    cluster = Webhook("old", "t", "w")
    writer = {"metadata": {"name": "w"}, "status": {"attempts": [{"number": 1, "pod": "w-1"}]}}
    seen = observed(writers=[writer])
    plan = act.Plan(
        "x",
        (
            act.DropEvidence("ns", "old", "u"),
            act.ReleaseConfigMap("ns", "old", "u"),
            act.DropEvidence("ns", "dead", "u"),
            act.DeletePod("elsewhere", "p", "u", 30),
            UNLOCK,
            _status("HudiTable", "t"),
            _status("HudiWriter", "w", "w-1", "w-2"),
            _status("HudiWriter", "v", "v-1"),
            _key("w-1"),
            *_start("w-2"),
            *_start("v-1"),
            act.DeleteObject("ConfigMap", "ns", "old"),
            act.PatchFinalizers("HudiWriter", "ns", "v", remove="f"),
            act.PatchFinalizers("HudiWriter", "ns", "w", remove="f"),
            act.PatchFinalizers("HudiTable", "ns", "t2", remove="f"),
        ),
    )
    with pytest.raises(Fatal) as told:
        asyncio.run(executor(cluster).perform(KEY, seen, plan))
    for name in ("Pod old", "HudiTable t", "HudiWriter w", "elsewhere/p"):
        assert name in str(told.value), "each one is told"
    key, start = ["create"], ["apply", "put_admit", "create"]
    assert cluster.calls == ["old", "dead", "unlock", "t", "w", "v", *key, *start, "v"]


def test_no_agent_gets_a_table_whose_status_cannot_name_it() -> None:
    """F585: the next operator would choose another one, and know nothing of the first."""
    new, old = (f"hudi-agent-{digit * 32}" for digit in "ba")
    status = act.UpdateStatus("HudiTable", "ns", "t", "1", {"agent": new})
    begins = (act.PutAssignment(new, "T", {"T": "T"}), *_start(naming.agent_pod_name(new, 1)))
    plan = act.Plan("x", (act.PutAssignment(old, "T", None), status, *begins, UNLOCK))
    for names, called in (("t",), ["put_assignment", "t", "unlock"]), ((), None):
        cluster = Webhook(*names)
        seen = replace(observed(), objects=replace(observed().objects, table={"metadata": {"name": "t"}, "status": {}}))
        if called is None:
            asyncio.run(executor(cluster).perform(KEY, seen, plan))
            assert cluster.calls == ["put_assignment", "t", "put_assignment", "apply", "put_admit", "create", "unlock"]
        else:
            with pytest.raises(Fatal):
                asyncio.run(executor(cluster).perform(KEY, seen, plan))
            assert cluster.calls == called


def test_what_is_refused_at_each_look_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """F461: the first time, and for each object. It is tried at each look."""
    now = [0.0]
    cluster = Webhook("old", "other")
    made = Executor(
        kubernetes=cluster,  # type: ignore[arg-type]
        etcd=cluster,  # type: ignore[arg-type]
        timers=Timers(),
        check_leader=lambda: None,
        logged=Repeated(lambda: now[0]),
    )

    def logged(*names: str) -> int:
        caplog.clear()
        plan = act.Plan("x", tuple(act.DropEvidence("ns", name, "u") for name in names))
        with pytest.raises(Fatal, match=names[-1]):
            asyncio.run(made.perform(KEY, observed(), plan))
        return len(caplog.records)

    assert [logged("old"), logged("old"), logged("old", "other")] == [1, 0, 1]
    now[0] = 59.0
    assert logged("old") == 0
    now[0] = 60.0
    assert [logged("old"), logged("old")] == [1, 0]
    assert len(cluster.calls) == 7


def test_a_config_map_that_is_not_held_stops_no_pod() -> None:
    cluster = Webhook("old")
    actions = (act.HoldConfigMap("ns", "old", "u"), act.DeletePod("ns", "old", "u", 30))
    with pytest.raises(Fatal, match="old"):
        asyncio.run(executor(cluster).perform(KEY, observed(), act.Plan("x", actions)))
    assert cluster.calls == ["old", "old"]


def test_with_the_last_writer_nothing_stays_undone() -> None:
    cluster = Webhook("old")
    alone = replace(observed(), objects=Objects(None, ()))
    actions = (act.ReleaseConfigMap("ns", "old", "u"), act.PatchFinalizers("HudiWriter", "ns", "v", remove="f"))
    with pytest.raises(Fatal, match="old"):
        asyncio.run(executor(cluster).perform(KEY, alone, act.Plan("x", actions)))
    assert cluster.calls == ["old"]


@pytest.mark.parametrize("error", [Conflict("changed"), Retryable("later"), Fatal("never"), Refused("no", reason="x")])
def test_what_was_done_before_a_failure_is_known(error: Exception) -> None:
    """F430: it is counted and logged, whatever ends the plan."""

    class Cluster(Recorder):
        async def delete(self, *_: Any, **__: Any) -> None:
            raise error

    first = act.DropEvidence("ns", "p", "u")
    with pytest.raises((Retryable, Fatal)) as told:
        perform(executor(Cluster()), first, DELETE)
    assert list(told.value.done) == [first]


@pytest.mark.parametrize(
    ("phase", "requeue", "wanted"), [("Draining", 1.0, 1.0), ("Settled", 1.0, 5.0), ("Settled", 300.0, 60.0)]
)
def test_what_is_refused_delays_nothing_else(
    phase: str, requeue: float, wanted: float, caplog: pytest.LogCaptureFixture
) -> None:
    """F430: the back-off of refusals is for looks that wait for nothing else.

    What was done beside it is counted.
    """
    seen = observed(settles={"i": Stored({"phase": phase}, 1, 1)})
    again: list[float] = []

    class Queue:
        left = 2

        async def get(self) -> tuple[str, str]:
            if not self.left:
                raise asyncio.CancelledError
            self.left -= 1
            return KEY

        def failed(self, key: object) -> float:
            return 60.0

        def done(self, key: object, *, again: float) -> None:
            delays.append(again)

    class Eyes:
        async def observe(self, key: object) -> Observed:
            return seen

        async def glance(self, key: object) -> None:
            return None

    delays, meter = again, Recorder()
    counted: list[Any] = []
    meter.__dict__.update(reconciled=lambda *_: None, performed=lambda _, done: counted.extend(done))
    other = act.DropEvidence("ns", "dead", "u")
    plan = act.Plan("x", (act.DropEvidence("ns", "old", "u"), other), requeue)
    loop: Any = Reconciler
    made = loop(
        queue=Queue(), observer=Eyes(), executor=executor(Webhook("old")), planner=lambda *_: plan, timers=Timers(),
        config=None, meter=meter,
    )  # fmt: skip
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(made.work())
    assert again == [wanted, wanted]
    assert counted == [other, other]
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1, "F461: it says so once a minute"


def test_what_was_copied_of_the_gateways_authority_is_remembered_when_it_was() -> None:
    """F274: what is not remembered is copied again at the next look."""
    copied = AppliedObjects()
    made = act.Apply(authority_config_map("ns", "new"))

    def copy(port: Any) -> None:
        actor = Executor(kubernetes=port, etcd=port, timers=Timers(), check_leader=lambda: None, applied=copied)
        perform(actor, made, _config("other"))

    class Refusing(Recorder):
        async def apply(self, manifest: dict[str, Any]) -> None:
            raise Fatal("refused")

        async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
            return None

    with pytest.raises(Fatal):
        copy(Refusing())
    assert copied.authority("ns") == ""
    copy(Recorder())
    assert (copied.authority("ns"), copied.authority("other")) == ("new", "")


class Shared(Recorder):
    """A namespace: what was applied to it, and the ConfigMaps that are there."""

    def __init__(self) -> None:
        super().__init__()
        self.applied: list[str] = []
        self.there: dict[str, dict[str, Any]] = {}
        self.account = True

    async def apply(self, manifest: dict[str, Any]) -> None:
        self.applied.append(manifest["metadata"]["name"])
        self.there[manifest["metadata"]["name"]] = manifest

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        return self.there.get(name)

    async def create(self, manifest: dict[str, Any]) -> str:
        if not self.account:
            raise Fatal('error looking up service account ns/hudi-driver: serviceaccount "hudi-driver" not found')
        return "uid"


def _ensured(port: Shared, told: AppliedObjects, *actions: act.Action, uid: str = "uid-1") -> list[str]:
    """What is applied of what all pods of a namespace share."""
    port.applied.clear()
    actor = Executor(kubernetes=port, etcd=port, timers=Timers(), check_leader=lambda: None, applied=told)  # type: ignore[arg-type]
    made = [act.Ensure(authority_config_map("ns", "ca")), act.Ensure(_account("hudi-driver")), *actions]
    asyncio.run(
        actor.perform(("ns", "t"), Observed(Objects(None), (), {}, None, namespace_uid=uid), act.Plan("", tuple(made)))
    )
    return list(port.applied)


def _account(name: str, **more: Any) -> dict[str, Any]:
    return {"kind": "ServiceAccount", "metadata": {"namespace": "ns", "name": name}, **more}


def test_what_a_namespace_shares_is_written_when_it_changes() -> None:
    """F261: and not for each pod."""
    now = [0.0]
    port, told = Shared(), AppliedObjects(clock=lambda: now[0])
    both = ["hudi-operator-etcd", "hudi-driver"]
    assert _ensured(port, told) == both
    assert _ensured(port, told) == []
    changed = act.Ensure(_account("hudi-driver", automountServiceAccountToken=False))
    assert _ensured(port, told, changed) == ["hudi-driver"], "it changed"
    assert _ensured(port, told, uid="uid-2") == both, "the namespace was made anew under its name"
    now[0] = KEPT_SECONDS
    assert _ensured(port, told, uid="uid-2") == both, "somebody may have deleted it"


@pytest.mark.parametrize(
    "lost",
    [{}, {"hudi-operator-etcd": {**authority_config_map("ns", "ca"), "data": {"ca.crt": "theirs"}}}],
    ids=["gone", "another"],
)
def test_no_pod_starts_without_the_gateways_authority(lost: dict[str, Any]) -> None:
    """F261: a pod that mounts a ConfigMap that is not there waits for it for ever."""
    port, told = Shared(), AppliedObjects()
    _ensured(port, told)
    port.there = lost
    assert _ensured(port, told) == ["hudi-operator-etcd"]


def test_a_refused_pod_has_its_namespace_made_again() -> None:
    """F261: its ServiceAccount is gone."""
    port, told = Shared(), AppliedObjects()
    _ensured(port, told)
    port.account = False
    with pytest.raises(Fatal, match="not found"):
        _ensured(port, told, _pod("b-1"))
    port.account = True
    assert _ensured(port, told, _pod("b-1")) == ["hudi-operator-etcd", "hudi-driver"]


def test_what_was_refused_is_applied_again() -> None:
    class Refusing(Shared):
        async def apply(self, manifest: dict[str, Any]) -> None:
            raise Fatal("refused")

    told = AppliedObjects()
    with pytest.raises(Fatal, match="refused"):
        _ensured(Refusing(), told)
    assert len(_ensured(Shared(), told)) == 2


def test_a_look_that_read_by_another_configuration_decides_nothing() -> None:
    """What it has read (consents, tables of paths) follows from the former one (F650)."""
    planned: list[str] = []

    class Eyes:
        async def observe(self, key: object) -> Observed:
            if not planned:
                made.configure("new")
            return observed()

        async def glance(self, key: object) -> None:
            return None

        def configure(self, config: str) -> None:
            planned.append(f"reads by {config}")

    def planner(_: Observed, config: str) -> act.Plan:
        planned.append(f"plans by {config}")
        return act.Plan("x", ())

    loop: Any = Reconciler
    port = Recorder()
    port.__dict__.update(performed=lambda *_: None)
    made = loop(
        queue=None, observer=Eyes(), executor=executor(port), planner=planner, timers=Timers(), config="old", meter=port
    )
    with pytest.raises(Conflict, match="configuration"):
        asyncio.run(made._reconcile(KEY))
    asyncio.run(made._reconcile(KEY))
    assert planned == ["reads by new", "plans by new"]
