"""A bundle for the Operator Lifecycle Manager, made from the one file that the chart makes.

    python -m hack.bundle.make                     write bundle/ from deploy/install/install.yaml
    python -m hack.bundle.make --check             check that it is what that file makes
    python -m hack.bundle.make --beside FILE       write what a bundle cannot have

A bundle (registry+v1) may have few kinds of objects: neither StatefulSets nor admission policies.
The missing parts are put beside it: etcd, the gateway, the policies that protect the evidence, and
the configuration, which a person edits. It is applied before the bundle is installed.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
INSTALL = ROOT / "deploy" / "install" / "install.yaml"
CHART = ROOT / "charts" / "hudi-operator" / "Chart.yaml"
BUNDLE = ROOT / "bundle"
PACKAGE, CHANNEL = "hudi-operator", "alpha"
ACCOUNT = "hudi-operator"
"""Account of the operator; OLM creates it from the CSV."""
IN_THE_BUNDLE = frozenset({("ClusterRole", ""), ("Service", "operator"), ("PodDisruptionBudget", "operator")})
"""Kind and component of objects that go beside the CSV into the bundle; empty: of any component."""
LABELS = ("helm.sh/chart", "app.kubernetes.io/managed-by")
"""Labels with which Helm marks its objects."""
Object = dict[str, Any]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DESCRIPTION = """\
Kubernetes operator for [Apache Hudi](https://hudi.apache.org) tables that several writers write at
once. The lock of a table does not end when its owner is silent: a writer that fails is fenced,
proven dead, and exactly its unfinished instants are rolled back.

**A bundle cannot have everything that the operator needs.** Before you install it, apply the file
beside it (`python -m hack.bundle.make --beside FILE`, or `hudi-operator-beside-olm-VERSION.yaml` of
the release) to the namespace `hudi-operator`: the configuration, etcd, the gateway, and the
admission policies without which nobody keeps others from changing what the operator relies on.
Install into the namespace `hudi-operator`, for all namespaces.
"""
ANNOTATIONS = {
    "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
    "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
    "operators.operatorframework.io.bundle.package.v1": PACKAGE,
    "operators.operatorframework.io.bundle.channels.v1": CHANNEL,
    "operators.operatorframework.io.bundle.channel.default.v1": CHANNEL,
}
HEAD = "# Made by `python -m hack.bundle.make`; do not edit.\n"


def objects(manifests: str) -> list[Object]:
    """Objects of one file."""
    return [one for one in yaml.load_all(manifests, Loader=LOADER) if one]


def component(one: Object) -> str:
    return str((one["metadata"].get("labels") or {}).get("app.kubernetes.io/component", ""))


def _bound(found: list[Object], kind: str) -> list[Object]:
    """The rules of roles that are bound to the operator's account."""
    roles = {
        one["roleRef"]["name"]
        for one in found
        if one["kind"] == f"{kind}Binding" and [subject["name"] for subject in one["subjects"]] == [ACCOUNT]
    }
    return [one for one in found if one["kind"] == kind and one["metadata"]["name"] in roles]


def by_olm(found: list[Object]) -> list[Object]:
    """Objects that OLM makes, because the CSV represents them."""
    made = [one for kind in ("Role", "ClusterRole") for one in _bound(found, kind)]
    names = {(one["kind"], one["metadata"]["name"]) for one in made}
    bindings = [
        one
        for one in found
        if one["kind"].endswith("Binding")
        and "roleRef" in one
        and (one["roleRef"]["kind"], one["roleRef"]["name"]) in names
    ]
    operator = [
        one for one in found if one["kind"] in ("Deployment", "ServiceAccount") and component(one) == "operator"
    ]
    return [*made, *bindings, *operator]


def in_bundle(found: list[Object]) -> list[Object]:
    """Objects of the bundle beside CSV and CRDs."""
    by_csv = by_olm(found)
    return [
        one for one in found if one not in by_csv and {(one["kind"], ""), (one["kind"], component(one))} & IN_THE_BUNDLE
    ]


def beside(found: list[Object]) -> list[Object]:
    """Everything else, the CRDs left out: a bundle has them."""
    others = [*by_olm(found), *in_bundle(found)]
    return [one for one in found if one not in others and one["kind"] != "CustomResourceDefinition"]


def bare(one: Object) -> Object:
    """An object as a bundle has it: OLM says the namespace, and Helm has no part in it."""
    metadata = {name: value for name, value in one["metadata"].items() if name != "namespace"}
    return {**one, "metadata": {**metadata, "labels": _labels(metadata)}}


def _labels(metadata: Object) -> Object:
    return {name: value for name, value in metadata.get("labels", {}).items() if name not in LABELS}


def images(found: Object | list[Any]) -> Iterator[str]:
    """Each image that an object names."""
    for value in found if isinstance(found, list) else found.values():
        if isinstance(value, dict | list):
            yield from images(value)
    if isinstance(found, dict) and isinstance(found.get("image"), str):
        yield found["image"]


def csv(found: list[Object]) -> Object:
    """The ClusterServiceVersion."""
    chart = yaml.safe_load(CHART.read_text(encoding="utf-8"))
    told = {name.partition("/")[2]: value for name, value in chart["annotations"].items()}
    number = str(chart["version"])
    (operator,) = [one for one in by_olm(found) if one["kind"] == "Deployment"]
    config = next(one for one in found if one["kind"] == "ConfigMap" and one["metadata"]["name"] == PACKAGE)
    spark = yaml.load(config["data"]["config.yaml"], Loader=LOADER)["sparkImage"]
    named = sorted({*(image for one in found for image in images(one)), spark})
    crds = {one["name"]: one for one in yaml.safe_load(told["crds"])}
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": f"{PACKAGE}.v{number}",
            "annotations": {
                "alm-examples": json.dumps(list(yaml.safe_load(told["crdsExamples"])), indent=2),
                "capabilities": told["operatorCapabilities"],
                "categories": "Big Data, Database",
                "containerImage": next(images(operator)),
                "description": chart["description"],
                "operatorframework.io/suggested-namespace": operator["metadata"]["namespace"],
                "operators.openshift.io/valid-subscription": "[]",
            },
            "labels": {"operatorframework.io/arch.amd64": "supported", "operatorframework.io/os.linux": "supported"},
        },
        "spec": {
            "displayName": "hudi-operator",
            "description": DESCRIPTION,
            "version": number,
            "maturity": "alpha",
            "minKubeVersion": str(chart["kubeVersion"]).removeprefix(">=").removesuffix("-0"),
            "provider": {"name": "the authors of hudi-operator"},
            "keywords": chart["keywords"],
            "icon": [
                {
                    "base64data": base64.b64encode((ROOT / "charts/icon.svg").read_bytes()).decode(),
                    "mediatype": "image/svg+xml",
                }
            ],
            "installModes": [
                {"type": mode, "supported": mode == "AllNamespaces"}
                for mode in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
            ],
            "customresourcedefinitions": {"owned": [crds[name] for name in sorted(crds)]},
            "relatedImages": [{"name": image.rpartition("/")[2].partition(":")[0], "image": image} for image in named],
            "install": {"strategy": "deployment", "spec": _install(found, operator)},
        },
    }


def _install(found: list[Object], operator: Object) -> Object:
    spec = json.loads(json.dumps(operator["spec"]))
    template = spec["template"]["metadata"]
    template["labels"] = _labels(template)
    template["annotations"].pop("checksum/config")  # the configuration is beside the bundle, and is edited
    if not template["annotations"]:
        del template["annotations"]
    return {
        "deployments": [{"name": operator["metadata"]["name"], "label": _labels(operator["metadata"]), "spec": spec}],
        "permissions": [{"serviceAccountName": ACCOUNT, "rules": _rules(found, "Role")}],
        "clusterPermissions": [{"serviceAccountName": ACCOUNT, "rules": _rules(found, "ClusterRole")}],
    }


def _rules(found: list[Object], kind: str) -> list[Object]:
    return [rule for one in _bound(found, kind) for rule in one["rules"]]


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, and nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def dumped(one: Object) -> str:
    return yaml.dump(one, Dumper=_Dumper, sort_keys=False, width=120)


def files(manifests: str) -> dict[str, str]:
    """Generated files of bundle/, by path in it."""
    found = objects(manifests)
    made = {f"manifests/{PACKAGE}.clusterserviceversion.yaml": HEAD + dumped(csv(found))}
    made |= {
        f"manifests/{path.name}": path.read_text(encoding="utf-8") for path in sorted((ROOT / "crds").glob("*.yaml"))
    }
    for one in in_bundle(found):
        made[f"manifests/{one['metadata']['name']}_{one['kind'].lower()}.yaml"] = HEAD + dumped(bare(one))
    made["metadata/annotations.yaml"] = HEAD + dumped({"annotations": ANNOTATIONS})
    labels = "".join(f"LABEL {name}={value}\n" for name, value in ANNOTATIONS.items())
    copied = "COPY manifests /manifests/\nCOPY metadata /metadata/\n"
    made["bundle.Dockerfile"] = f"{HEAD}FROM scratch\n{labels}{copied}"
    return made


def file_beside(manifests: str) -> str:
    """Manifests that are applied before the bundle is installed."""
    return "---\n".join([HEAD, *map(dumped, beside(objects(manifests)))])


def wrong() -> list[str]:
    """Files of bundle/ that are not what the manifests make, are missing, or are too many."""
    made = files(INSTALL.read_text(encoding="utf-8"))
    there = {str(path.relative_to(BUNDLE)): path for path in BUNDLE.rglob("*") if path.is_file()}
    there.pop("README.md", None)
    return sorted(
        name
        for name in made.keys() | there.keys()
        if name not in there or there[name].read_text(encoding="utf-8") != made.get(name)
    )


def main() -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--beside", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.check:
        if found := wrong():
            print(f"bundle: {', '.join(found)}: not what deploy/ makes, run make manifests", file=sys.stderr)
        return int(bool(wrong()))
    manifests = INSTALL.read_text(encoding="utf-8")
    if given.beside:
        given.beside.write_text(file_beside(manifests), encoding="utf-8")
        return 0
    for path in (BUNDLE / "manifests").glob("*"):
        path.unlink()
    for name, text in files(manifests).items():
        (BUNDLE / name).parent.mkdir(parents=True, exist_ok=True)
        (BUNDLE / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
