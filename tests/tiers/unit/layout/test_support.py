"""The page of supported versions says what is pinned, and what is refused."""

from __future__ import annotations

import re

import yaml

from hudi_operator.adapters.etcd_fitness import FIRST_RELEASES
from tests.campaigns.certify import candidate
from tests.support import ROOT

PAGE = (ROOT / "docs/use/support.md").read_text(encoding="utf-8")


def row(part: str) -> list[str]:
    (line,) = re.findall(rf"^\| {part}[^|]* \| (.+) \|$", PAGE, re.MULTILINE)
    return re.split(r"\s*\|\s*", line)


def module(name: str, path: str) -> str:
    (version,) = re.findall(rf"^\s*{re.escape(name)} v(\S+)", (ROOT / path).read_text(), re.MULTILINE)
    return str(version)


def test_pinned_versions_are_those_of_the_build() -> None:
    versions = candidate.pinned()
    assert row("Hudi")[0] == versions.hudi
    assert row("Spark")[0].startswith(f"{versions.spark}, ")
    assert row("etcd")[0] == module("go.etcd.io/etcd/server/v3", "hack/build/etcd/go.mod")
    assert row("Helm")[0] == module("helm.sh/helm/v4", "hack/build/helm/go.mod")
    assert row("Kubernetes")[-1] == module("k8s.io/kubernetes", "hack/build/kube/go.mod")


def test_what_is_run_is_what_is_pinned() -> None:
    """No other release of these was ever run; one that is gets a result of `make certify`."""
    for part in ("Hudi", "Spark", "etcd", "Helm"):
        assert row(part)[0].partition(",")[0] == row(part)[-1].partition(",")[0], part


def test_what_is_accepted_is_what_the_code_accepts() -> None:
    for (major, minor), patch in FIRST_RELEASES.items():
        assert f"{major}.{minor}.{patch}" in row("etcd")[1]
    chart = yaml.safe_load((ROOT / "charts/hudi-operator/Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={row('Kubernetes')[1].split()[0]}.0-0"
    crd = (ROOT / "crds/hudioperator.io_huditables.yaml").read_text()
    (rule,) = re.findall(r"self\.matches\('\^(1\[\.\]\d)\[\.\]\[0-9\]\+\$'\)", crd)
    assert row("Hudi")[1].startswith(rule.replace("[.]", ".") + ".x")
