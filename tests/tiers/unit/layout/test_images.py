"""What an image must have is what its Dockerfile copies and what decides whether the image
is built again.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import ROOT

OURS = re.compile(
    r"(?<![\w./-])(?P<host>[\w.:-]+/)?hudi-operator/(?:operator|spark\b[\w-]*|etcd|gateway|s3|console|pause):[\w.]"
)
"""A name of one of our images, with a tag."""
PACKAGES = {
    "Dockerfile": ("operator/hudi_contract", "operator/hudi_operator"),
    "spark-images/Dockerfile": ("operator/hudi_contract", "spark-images/hudi_runtime"),
    "hack/images/console/Dockerfile": ("operator/hudi_contract", "operator/hudi_kubectl", "operator/hudi_console"),
}


@pytest.mark.parametrize("dockerfile", PACKAGES)
def test_every_package_that_is_imported_is_in_the_image(dockerfile: str) -> None:
    """The contract is in both images: operator and runtime read and write the same
    records with it.
    """
    copied = re.findall(r"^COPY (\S+) (\S+)$", (ROOT / dockerfile).read_text(), re.MULTILINE)
    packages = {source: target for source, target in copied if (ROOT / source / "__init__.py").exists()}
    assert tuple(packages) == PACKAGES[dockerfile]
    (path,) = re.findall(r"PYTHONPATH=(\S+)", (ROOT / dockerfile).read_text())
    assert set(packages.values()) == {f"{path}/{source.rpartition('/')[2]}" for source in packages}
    for source, _ in copied:
        if "target/" not in source:  # what Maven makes
            assert (ROOT / source).exists(), source


@pytest.mark.parametrize("dockerfile", PACKAGES)
def test_a_change_of_a_package_builds_the_image_again(dockerfile: str) -> None:
    script = (
        (ROOT / "hack/images/build-images").read_text().replace("$directory", "$REPO/spark-images").replace("\\\n", " ")
    )
    (inputs,) = [
        line for line in script.splitlines() if re.search(r"^\s*image \w+ ", line) and f'"$REPO/{dockerfile}"' in line
    ]
    assert {package for package in PACKAGES[dockerfile] if f'"$REPO/{package}"' in inputs} == set(PACKAGES[dockerfile])
    assert re.search(r'^\s*image \w+ "\$REPO" ', inputs), "built from the repository's root"


def test_no_image_is_named_without_its_registry() -> None:
    """A node asks a public registry for a name without a host, where anybody may own it."""
    named = dict[str, list[str]]()
    for folder in ("charts", "demo", "deploy", "docs", "examples", "hack", "operator", "spark-images", "tests"):
        for path in (ROOT / folder).rglob("*"):
            if (
                path.suffix in {".py", ".yaml", ".md", ".json", ".tpl", ""}
                and path.is_file()
                and "results" not in path.parts
            ):
                hosts = [found["host"] for found in OURS.finditer(path.read_text(errors="replace"))]
                if hosts and path != Path(__file__) and path.name != "test_chart.py":
                    named[str(path.relative_to(ROOT))] = hosts
    assert len(named) >= 8, "nothing was found"
    wrong = {path: hosts for path, hosts in named.items() if not set(hosts) <= {"localhost/", "registry.example.com/"}}
    assert not wrong
