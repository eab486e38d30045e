"""`kubectl hudi purge`: what is deleted, in which namespaces, and when it asks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudi_contract.naming import MANAGED
from hudi_kubectl import purging
from hudi_kubectl.changing import How
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import TABLE, WRITER
from hudi_kubectl.screen import Screen

JsonDict = dict[str, Any]
BINDING, ACCOUNT = purging.KINDS[:2]


class Cluster(Kubectl):
    """Objects by kind, namespace and name; those of the operator have its label."""

    def __init__(self, *there: tuple[str, str, str], namespace: str = "") -> None:
        super().__init__()
        self.there, self.at, self.deleted = list(there), namespace, list[tuple[str, str, str]]()
        self.others: list[tuple[str, str, str]] = [("serviceaccounts", "quiet", "default"), ("pods", "quiet", "theirs")]

    def within(self, namespace: str) -> Cluster:
        made = Cluster(namespace=namespace)
        made.there, made.others, made.deleted = self.there, self.others, self.deleted
        return made

    def objects(self, kind: str, *, everywhere: bool = False, selector: str = "") -> list[JsonDict]:
        assert not selector or selector == "=".join(*MANAGED.items())
        found = [*self.there, *([] if selector else self.others)]
        return [
            {"metadata": {"namespace": space, "name": name}}
            for of, space, name in found
            if of == kind and (everywhere or space == self.at)
        ]

    def delete(self, kind: str, name: str) -> None:
        self.there.remove((kind, self.at, name))
        self.deleted.append((kind, self.at, name))


def left() -> Cluster:
    return Cluster(
        (ACCOUNT, "quiet", "hudi-driver"),
        (BINDING, "quiet", "hudi-driver"),
        (ACCOUNT, "busy", "hudi-driver"),
        (TABLE, "busy", "flights"),
        (ACCOUNT, "writing", "hudi-driver"),
        (WRITER, "writing", "load"),
        (ACCOUNT, "ending", "hudi-driver"),
        ("pods", "ending", "load-1"),
        namespace="quiet",
    )


YES = How(yes=True)


@pytest.mark.parametrize("everywhere", [False, True])
def test_only_namespaces_without_tables_writers_and_pods(everywhere: bool) -> None:
    cluster = left()
    assert purging.purge(cluster, Screen(), YES, everywhere=everywhere) == 0
    assert cluster.deleted == [(BINDING, "quiet", "hudi-driver"), (ACCOUNT, "quiet", "hudi-driver")], "rights first"
    assert purging.purge(cluster, Screen(), YES, everywhere=everywhere) == 0


def test_it_asks_first(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = left()
    with pytest.raises(Failed, match="no other release of the operator needs them"):
        purging.purge(cluster, Screen(), How(), everywhere=True)
    assert purging.purge(cluster, Screen(as_json=True), How("client"), everywhere=True) == 0
    assert not cluster.deleted
    told = capsys.readouterr().out
    assert json.loads(told[told.index("{") :])["left"][0] == {
        "kind": BINDING,
        "namespace": "quiet",
        "name": "hudi-driver",
    }


def test_a_table_that_comes_meanwhile_keeps_the_rest() -> None:
    cluster = left()
    delete = Cluster.delete

    class Racing(Cluster):
        def within(self, namespace: str) -> Racing:
            made = Racing(namespace=namespace)
            made.there, made.others, made.deleted = self.there, self.others, self.deleted
            return made

        def delete(self, kind: str, name: str) -> None:
            delete(self, kind, name)
            self.there.append((TABLE, "quiet", "new"))

    racing = Racing(*cluster.there, namespace="quiet")
    with pytest.raises(Failed, match="namespace quiet has a table, a writer or a pod of the operator again"):
        purging.purge(racing, Screen(), YES, everywhere=True)
    assert racing.deleted == [(BINDING, "quiet", "hudi-driver")]
