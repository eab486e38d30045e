"""Manifests of a release without Helm, made from the chart.

    python -m hack.manifests.make                   write what is in deploy/
    python -m hack.manifests.make --check           check that it is what the chart renders
    python -m hack.manifests.make FILE OPTIONS      write one file with values of your own: OPTIONS
                                                    are those of `helm template`, for example
                                                    --set images.registry=REGISTRY; also
                                                    --namespace NAMESPACE

It needs Helm: hack/build/build-binaries helm, or one in PATH.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "hudi-operator"
DEPLOY = ROOT / "deploy"
CACHE = Path(os.environ.get("HUDI_OPERATOR_CACHE", Path.home() / ".cache" / "hudi-operator"))
RELEASE = "hudi-operator"
REGISTRY = "--set=images.registry=registry.example.com/hudi-operator"
EXAMPLE = '--set-json=config.pathPrefixes={"flights": ["s3a://lake/"]}'
"""Values of the overlay's config.yaml that differ from the base's."""
HEAD = """\
# hudi-operator without Helm: everything that the chart installs, with its default values. Made by `make manifests` from
# charts/hudi-operator; do not edit. deploy/README.md says how it is used.
apiVersion: v1
kind: Namespace
metadata:
  name: {namespace}
  labels:
    pod-security.kubernetes.io/enforce: restricted
---
"""


def helm() -> str:
    """The program."""
    path = f"{CACHE / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    found = shutil.which("helm", path=path)
    if found is None:
        sys.exit("helm is missing: run hack/build/build-binaries helm")
    return found


def rendered(*options: str, namespace: str = RELEASE) -> str:
    """Manifests that the chart installs. CalledProcessError when it refuses the values."""
    command = (helm(), "template", RELEASE, str(CHART), "--namespace", namespace, "--skip-tests", *options)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.removeprefix("---\n")


def install(*options: str, namespace: str = RELEASE) -> str:
    """One file with the namespace and everything in it."""
    return HEAD.format(namespace=namespace) + rendered(*options, namespace=namespace)


def configuration(manifests: str) -> str:
    """config.yaml in the ConfigMap of the operator."""
    (found,) = [
        one["data"]["config.yaml"]
        for text in re.split(r"^---$", manifests, flags=re.MULTILINE)
        if "\nkind: ConfigMap\n" in text
        for one in [yaml.safe_load(text)]
        if one["metadata"]["name"] == RELEASE
    ]
    return str(found)


def files() -> dict[str, str]:
    """Generated files of deploy/, by path in it."""
    file = install(REGISTRY)
    return {
        "install/install.yaml": file,
        "base/config.yaml": configuration(file),
        "overlays/example/config.yaml": configuration(rendered(REGISTRY, EXAMPLE)),
    }


def main() -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--namespace", "-n", default=RELEASE)
    parser.add_argument("file", nargs="?", type=Path)
    given, options = parser.parse_known_args()
    if given.file:
        given.file.write_text(install(*options, namespace=given.namespace), encoding="utf-8")
        return 0
    if options or given.namespace != RELEASE:
        parser.error("options of helm template are for a FILE of your own")
    made = files()
    if given.check:
        wrong = [name for name, text in made.items() if (DEPLOY / name).read_text(encoding="utf-8") != text]
        if wrong:
            print(f"deploy: {', '.join(wrong)}: not what the chart renders, run make manifests", file=sys.stderr)
        return int(bool(wrong))
    for name, text in made.items():
        (DEPLOY / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
