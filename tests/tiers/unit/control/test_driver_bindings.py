"""RoleBindings of tables' accounts go when nothing in their namespace uses the account, and not
before; whoever needs one at that moment makes it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hudi_contract import naming
from hudi_operator.control.applied_objects import AppliedObjects
from hudi_operator.control.executor import Executor
from hudi_operator.control.timers import Timers
from hudi_operator.manifests.namespace import consent_binding, namespace_objects
from hudi_operator.model.config import ConsentBindingConfig, OperatorConfig
from hudi_operator.model.facts import Observed, PodFacts
from hudi_operator.model.objects import Objects
from hudi_operator.model.ports import Fatal, LeaseLost, Refused, Retryable
from hudi_operator.plan.core import actions as act

JsonDict = dict[str, Any]
CONFIG = OperatorConfig()
LAKE, OTHER = "hudi-driver-lake", "hudi-driver-other"
UNBIND = act.Unbind(CONFIG.driver_role)
DROP = act.PatchFinalizers(naming.TABLE_KIND, "ns", "flights", remove=naming.SETTLE_FINALIZER)


def _bindings(config: OperatorConfig = CONFIG) -> dict[str, JsonDict]:
    made = namespace_objects("ns", config, "", ["lake", "other"])
    found = {one["metadata"]["name"]: one for one in made if one["kind"] == "RoleBinding"}
    for name, one in found.items():
        one["metadata"]["uid"] = f"uid-of-{name}"
    return found


class Namespace:
    """The API server with one namespace. `meanwhile` is called when the HudiWriters are listed."""

    def __init__(self) -> None:
        self.bindings = _bindings()
        self.tables: dict[str, JsonDict] = {}
        self.writers: dict[str, JsonDict] = {}
        self.running: list[PodFacts] = []
        self.changes: list[tuple[str, str]] = []
        self.refuses: tuple[str, ...] = ()
        self.meanwhile: Callable[[], None] = lambda: None

    def table(self, name: str, account: str = "", **spec: Any) -> str:
        """Its uid."""
        storage = {"storage": {"serviceAccountName": account}} if account else {}
        meta = {"namespace": "ns", "name": name, "uid": f"uid-of-{name}", "generation": 1}
        self.tables[name] = {
            "metadata": meta,
            "spec": {"path": f"s3a://lake/{name}", "recordKeyFields": ["id"], **storage, **spec},
        }
        return str(meta["uid"])

    def writer(self, name: str, table: str, account: str = "", **spec: Any) -> None:
        meta = {"namespace": "ns", "name": name, "uid": f"uid-of-{name}", "generation": 1}
        own = {"serviceAccountName": account} if account else {}
        self.writers[name] = {"metadata": meta, "spec": {"tableRef": {"name": table}, **own, **spec}}

    async def list_objects(self, kind: str, namespace: str, *, labels: str = "", fields: str = "") -> list[JsonDict]:
        assert namespace == "ns"
        if kind in self.refuses:
            raise Fatal(f"list {kind} in ns: forbidden (403)")
        if kind == naming.WRITER_KIND:
            self.meanwhile()
            for _ in range(20):
                await asyncio.sleep(0)
        group = {"RoleBinding": self.bindings, naming.TABLE_KIND: self.tables, naming.WRITER_KIND: self.writers}[kind]
        wanted = dict(part.split("=") for part in labels.split(",") if part)
        found = (one for one in group.values() if wanted.items() <= (one["metadata"].get("labels") or {}).items())
        return list(found)

    async def pods(self, namespace: str, *, labels: str) -> list[PodFacts]:
        return self.running

    async def get(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        return None

    async def apply(self, manifest: JsonDict) -> None:
        name = manifest["metadata"]["name"]
        self.bindings.setdefault(name, {**manifest, "metadata": {**manifest["metadata"], "uid": "new"}})
        self.changes.append(("apply", name))

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str = "", grace_seconds: int | None = None
    ) -> None:
        assert (kind, namespace, uid) == ("RoleBinding", "ns", self.bindings[name]["metadata"]["uid"])
        if "delete" in self.refuses:
            raise Refused(f"delete RoleBinding ns/{name}: forbidden (403)", reason="Forbidden")
        del self.bindings[name]
        self.changes.append(("delete", name))

    async def patch_finalizers(
        self, kind: str, namespace: str, name: str, *, add: str = "", remove: str = "", uid: str = ""
    ) -> None:
        self.changes.append(("finalizer", name))


def _executor(
    ports: Namespace, told: AppliedObjects | None = None, check: Callable[[], None] = lambda: None
) -> Executor:
    return Executor(kubernetes=ports, etcd=ports, timers=Timers(), check_leader=check, applied=told)  # type: ignore[arg-type]


SEEN = Observed(Objects(None), (), {}, None, namespace_uid="ns-uid")


def _deleted(ports: Namespace, *actions: act.Action) -> list[str]:
    """Names of the RoleBindings that go."""
    before = set(ports.bindings)
    asyncio.run(_executor(ports).perform(("ns", "flights"), SEEN, act.Plan("", actions or (UNBIND,))))
    return sorted(before - set(ports.bindings))


def _pod(account: str, role: str = naming.ROLE_DRIVER, phase: str = "Running") -> PodFacts:
    labels = {naming.LABEL_ROLE: role, naming.LABEL_DRIVER: "load-1"}
    return PodFacts("ns", "load-1", "u", labels, phase, "n", False, (), (), service_account=account)


def test_the_last_table_of_an_account_takes_its_binding_along() -> None:
    ports = Namespace()
    going = replace(UNBIND, going=ports.table("flights", "lake"))
    ports.table("orders", "other")
    assert _deleted(ports, going, DROP) == [LAKE]
    assert ports.changes == [("delete", LAKE), ("finalizer", "flights")]
    del ports.tables["flights"]
    assert _deleted(ports) == []


def test_of_two_tables_with_one_account_the_last_one() -> None:
    """Both are deleted at once: each counts for the other one, and the look afterwards does it."""
    ports = Namespace()
    uids = [ports.table(name, "lake") for name in ("flights", "orders")]
    ports.table("others", "other")
    for uid in uids:
        assert _deleted(ports, replace(UNBIND, going=uid)) == []
    del ports.tables["flights"]
    assert _deleted(ports) == []
    del ports.tables["orders"]
    assert _deleted(ports) == [LAKE]


def test_the_account_of_a_writer_counts_as_long_as_its_table() -> None:
    ports = Namespace()
    uid = ports.table("flights", "lake")
    ports.writer("load", "flights", "other")
    assert _deleted(ports) == []
    assert _deleted(ports, replace(UNBIND, going=uid)) == [LAKE, OTHER]


def test_what_a_table_has_named_before_goes_with_the_next_that_is_deleted() -> None:
    ports = Namespace()
    ports.table("flights", "other")
    assert _deleted(ports) == [LAKE]


@pytest.mark.parametrize("role", [naming.ROLE_DRIVER, naming.ROLE_AGENT])
def test_a_driver_that_has_not_ended_keeps_it(role: str) -> None:
    """Whatever became of its table; it still starts and ends executors."""
    ports = Namespace()
    pod = _pod("lake", role)
    ports.running = (
        [replace(pod, name="a-1", labels={**pod.labels, naming.LABEL_AGENT: "a"})] if role != "driver" else [pod]
    )
    assert _deleted(ports) == [OTHER]
    ports.running = [replace(one, phase="Succeeded") for one in ports.running]
    assert _deleted(ports) == [LAKE]


def test_pods_of_users_need_no_drivers_role() -> None:
    ports = Namespace()
    ports.running = [replace(_pod("lake"), labels={**naming.MANAGED})]
    assert _deleted(ports) == [LAKE, OTHER]


def test_what_cannot_be_read_may_use_any_account() -> None:
    """I11: unknown is not unused."""
    for spoil in (
        lambda ports: ports.table("flights", lock={"leaseSeconds": "long"}),
        lambda ports: (ports.table("flights"), ports.writer("load", "flights", operation="Melt")),
    ):
        ports = Namespace()
        spoil(ports)
        assert _deleted(ports) == []
    ports = Namespace()
    ports.writer("load", "flights", operation="Melt")
    assert _deleted(ports) == [LAKE, OTHER], "it has no table"


def test_no_other_binding_is_deleted() -> None:
    """Of another release, of the operator itself, without its label, or changed by somebody."""
    ports = Namespace()
    theirs = _bindings(replace(CONFIG, driver_role="release-driver"))
    consent = consent_binding("ns", ConsentBindingConfig("hudi-driver-consent", "consent", "system"))
    consent["metadata"]["uid"] = "c"
    ports.bindings[LAKE] = theirs[LAKE]
    ports.bindings[OTHER]["subjects"].append({"kind": "User", "name": "ann"})
    ports.bindings["hudi-driver-consent"] = consent
    ports.bindings["hudi-driver-more"] = {
        **_bindings()[LAKE],
        "metadata": {**_bindings()[LAKE]["metadata"], "name": "m"},
    }
    unlabelled = _bindings()[LAKE]
    unlabelled["metadata"]["labels"] = {}
    ports.bindings["unlabelled"] = unlabelled
    assert _deleted(ports) == []


@pytest.mark.parametrize("refused", ["RoleBinding", "delete"])
def test_without_the_right_a_table_goes_all_the_same(refused: str) -> None:
    """Rights of an earlier chart."""
    ports = Namespace()
    ports.refuses = (refused,)
    assert _deleted(ports, UNBIND, DROP) == []
    assert ports.changes == [("finalizer", "flights")]


def test_an_api_server_that_does_not_answer_is_asked_again() -> None:
    class Away(Namespace):
        async def pods(self, namespace: str, *, labels: str) -> list[PodFacts]:
            raise Retryable("no answer")

    ports = Away()
    with pytest.raises(Retryable, match="no answer"):
        _deleted(ports, UNBIND, DROP)
    assert ports.changes == []


def test_a_former_leader_deletes_nothing() -> None:
    """It was frozen between its questions and the deletion."""
    ports, leads = Namespace(), [True]

    def check() -> None:
        if not leads[0]:
            raise LeaseLost("lost")

    ports.meanwhile = lambda: leads.clear() or leads.append(False)  # type: ignore[func-returns-value]
    with pytest.raises(LeaseLost):
        asyncio.run(_executor(ports, check=check).perform(("ns", "flights"), SEEN, act.Plan("", (UNBIND,))))
    assert ports.changes == []


def test_a_table_that_is_made_at_that_moment_has_its_binding() -> None:
    """It was not there when the HudiTables were listed, and it knows that the binding is there."""
    ports, told = Namespace(), AppliedObjects()
    made = act.Ensure(_bindings()[LAKE])
    made.manifest["metadata"].pop("uid")

    async def both() -> None:
        executor = _executor(ports, told)
        ensure = act.Plan("", (made,))
        await executor.perform(("ns", "orders"), SEEN, ensure)
        await executor.perform(("ns", "orders"), SEEN, ensure)
        assert ports.changes == [("apply", LAKE)], "once it is known to be there"
        begun: list[asyncio.Task[Any]] = []

        asked: list[int] = []

        def meanwhile() -> None:
            asked.append(1)
            if len(asked) != 2:  # what is asked first decides nothing
                return
            ports.table("orders", "lake")
            begun.append(asyncio.create_task(executor.perform(("ns", "orders"), SEEN, ensure)))

        ports.meanwhile = meanwhile
        await executor.perform(("ns", "flights"), SEEN, act.Plan("", (UNBIND,)))
        await asyncio.gather(*begun)

    asyncio.run(both())
    assert ports.changes[1:] == [("delete", LAKE), ("delete", OTHER), ("apply", LAKE)]
    assert LAKE in ports.bindings


def test_a_name_without_a_table_is_looked_after_once() -> None:
    """Such a look comes every 15 s while a HudiWriter names a HudiTable that is not there."""
    ports, told = Namespace(), AppliedObjects()
    ports.table("orders", "lake")
    made = act.Ensure(_bindings()[LAKE])
    made.manifest["metadata"].pop("uid")
    asked: list[int] = []
    ports.meanwhile = lambda: asked.append(1)

    async def looks() -> None:
        executor = _executor(ports, told)
        await executor.perform(("ns", "orders"), SEEN, act.Plan("", (made,)))
        del ports.bindings[OTHER]
        for _ in range(5):
            await executor.perform(("ns", "missing"), SEEN, act.Plan("", (UNBIND,)))
        await executor.perform(("ns", "orders"), SEEN, act.Plan("", (made,)))

    asyncio.run(looks())
    assert ports.changes == [("apply", LAKE)], "what is known to be there is not forgotten"
    assert len(asked) == 1


def test_nobody_waits_for_the_question_who_uses_an_account() -> None:
    ports, told = Namespace(), AppliedObjects()
    ports.table("orders", "lake")
    del ports.bindings[OTHER]
    made = act.Ensure(_bindings()[LAKE])
    made.manifest["metadata"].pop("uid")
    held: list[asyncio.Event] = []

    async def both() -> None:
        held.append(asyncio.Event())
        pods = ports.pods

        async def slow(namespace: str, *, labels: str) -> list[PodFacts]:
            await held[0].wait()
            return await pods(namespace, labels=labels)

        ports.pods = slow  # type: ignore[method-assign]
        executor = _executor(ports, told)
        asks = asyncio.create_task(executor.perform(("ns", "missing"), SEEN, act.Plan("", (UNBIND,))))
        await asyncio.sleep(0.01)
        await asyncio.wait_for(executor.perform(("ns", "orders"), SEEN, act.Plan("", (made,))), 5)
        held[0].set()
        await asks

    asyncio.run(both())
    assert ports.changes == [("apply", LAKE)]
