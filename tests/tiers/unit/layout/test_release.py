"""What a release publishes: of one version, complete, the same when it is made again.

`component/crds/test_release.py` makes the parts that need Helm.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hack.release import files, krew, ready, version, wheel
from packaging.version import InvalidVersion

from tests.support import ROOT

WORKFLOWS = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yaml")}
REGISTRY = "registry.example.com/hudi-operator"
URL = "https://example.com/v0"
NUMBER = version.read()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a dry run, without those that need Helm or seconds."""
    out = tmp_path_factory.mktemp("made") / "files"
    given = ["--registry", REGISTRY, "--url", URL, "--without-images", "--only", "krew,wheel"]
    assert files.main([str(out), *given]) == 0
    return out


def test_a_dry_run_makes_every_file_with_its_sum(made: Path) -> None:
    names = {path.name for path in made.iterdir()}
    assert names == {
        files.SUMS,
        "hudi.yaml",
        f"kubectl-hudi-{NUMBER}.tar.gz",
        wheel.name(NUMBER),
    }
    done = subprocess.run(["sha256sum", "--check", "--strict", files.SUMS], cwd=made, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(names) - 1
    archive = (made / f"kubectl-hudi-{NUMBER}.tar.gz").read_bytes()
    platform = yaml.safe_load((made / "hudi.yaml").read_text())["spec"]["platforms"][0]
    assert platform["sha256"] == hashlib.sha256(archive).hexdigest()
    assert platform["uri"] == f"{URL}/kubectl-hudi-{NUMBER}.tar.gz"


def test_every_file_has_the_one_version(made: Path) -> None:
    said = dict(files.versions(made))
    assert set(said.values()) == {NUMBER}
    assert len(said) >= 3
    assert files.faults(made, NUMBER) == []
    wrong = files.faults(made, "9.9.9")
    assert all(any(fault.startswith(name) for fault in wrong) for name in ("hudi.yaml", "kubectl_hudi"))


def test_another_file_than_the_one_that_was_summed_is_found(made: Path, tmp_path: Path) -> None:
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "hudi.yaml").write_text((tmp_path / "hudi.yaml").read_text() + "# \n")
    assert files.faults(tmp_path, NUMBER) == [f"{files.SUMS} is not of these files"]
    assert files.main([str(tmp_path), "--check"]) == 1


def test_files_of_two_releases_are_not_mixed(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert files.main([str(made), "--registry", REGISTRY, "--url", URL, "--only", "krew"]) == 1
    assert "is not empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--registry", "operator", "--url", URL], "--registry 'operator': must be HOST/PATH"),
        (["--registry", "Ghcr.io/X", "--url", URL], "must be HOST/PATH in lower case"),
        (["--registry", REGISTRY, "--url", "http://example.com"], "must begin with https://"),
        (["--registry", REGISTRY, "--url", URL, "--only", "krew,rpm"], "--only rpm: must be of chart"),
    ],
)
def test_what_is_no_place_is_refused(
    given: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        files.main([str(tmp_path / "new"), *given])
    assert said in capsys.readouterr().err


def test_a_release_without_a_bill_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bills = tmp_path / "bills"
    bills.mkdir()
    for name in files.IMAGES[1:]:
        for architecture in ("amd64", "arm64"):
            (bills / f"{name}.{architecture}.cdx.json").write_text("{}")
    given = ["--registry", REGISTRY, "--url", URL, "--only", "bills", "--bills", str(bills)]
    assert files.main([str(tmp_path / "new"), *given]) == 1
    assert f"no bill of materials of {files.IMAGES[0]} in" in capsys.readouterr().err
    (bills / f"{files.IMAGES[0]}.cdx.json").write_text("{}")
    assert files.main([str(tmp_path / "other"), *given]) == 0
    assert (tmp_path / "other" / f"spark-arm64-{NUMBER}.cdx.json").exists()
    assert files.faults(tmp_path / "other", NUMBER) == []
    assert any("spark-arm64" in fault for fault in files.faults(tmp_path / "other", "9.9.9"))


def test_the_wheel_is_the_plugin_and_runs(made: Path, tmp_path: Path) -> None:
    """Installed by pip, without the project's packages in its path."""
    again = wheel.build(tmp_path / "again", NUMBER)
    assert again.read_bytes() == (made / again.name).read_bytes(), "the same sources give the same bytes"
    place = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", place, again]
    subprocess.run(command, check=True)
    bare = {**os.environ, "PYTHONPATH": str(place)}
    done = subprocess.run(
        [place / "bin/kubectl-hudi", "--help"], env=bare, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    subprocess.run([str(krew.BUILD), str(tmp_path / "one")], check=True, stdout=subprocess.DEVNULL)
    one = subprocess.run([tmp_path / "one/kubectl-hudi", "--help"], env=bare, capture_output=True, text=True)
    assert done.stdout == one.stdout


def test_a_wheel_has_its_version_as_pip_spells_it() -> None:
    assert wheel.name("1.2.3-rc.1") == "kubectl_hudi-1.2.3rc1-py3-none-any.whl"
    assert wheel.name("1.2.3-beta.2") == "kubectl_hudi-1.2.3b2-py3-none-any.whl"
    with pytest.raises(InvalidVersion):
        wheel.name("1.2.3-nightly.5")


def test_a_tag_is_the_version_with_its_section(tmp_path: Path) -> None:
    for path in {path for path, _ in version.PLACES}:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text((ROOT / path).read_text())
    changes = tmp_path / "CHANGELOG.md"
    changes.write_text(
        f"# Changelog\n\n## [Unreleased]\n\n## [{NUMBER}] - 2030-01-02\n\n### Added\n\n* One.\n\n## [0.0.1]\n"
    )
    assert ready.faults(f"v{NUMBER}", tmp_path) == []
    assert ready.notes(tmp_path) == "### Added\n\n* One.\n"
    assert ready.faults(NUMBER, tmp_path) == [f"tag '{NUMBER}': must be v{NUMBER}, the version of the project"]
    changes.write_text(f"## [Unreleased]\n\n## [{NUMBER}]\n")
    assert "has no section" in ready.faults(f"v{NUMBER}", tmp_path)[0]


def published(step: str, *words: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "hack/release/publish", step, *map(str, words)],
        env={**os.environ, "DRY_RUN": "1", **(env or {})},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def digests(tmp_path: Path) -> Path:
    for name in files.IMAGES:
        for architecture in ("amd64", "arm64"):
            (tmp_path / f"{name}.{architecture}").write_text(f"sha256:{hashlib.sha256(name.encode()).hexdigest()}")
    return tmp_path


def test_each_image_is_pushed_listed_and_signed_by_its_digest(digests: Path) -> None:
    pushed = published("images", REGISTRY, digests).stdout
    indexed = published("index", REGISTRY, digests)
    assert indexed.returncode == 0, indexed.stderr
    for name in files.IMAGES:
        digest = (digests / f"{name}.amd64").read_text()
        assert re.search(
            rf"^skopeo copy \S+ \S+ oci:\S+/hudi-operator/{name}:dev docker://{REGISTRY}/{name}:{NUMBER}-(amd|arm)64$",
            pushed,
            re.M,
        )
        lines = [line for line in indexed.stdout.splitlines() if f"/{name}@" in line or f"/{name}:" in line]
        assert [line.split()[:3] for line in lines] == [
            ["bh", "manifest", "create"],
            *[["bh", "manifest", "add"]] * 2,
            ["bh", "manifest", "push"],
            ["cosign", "sign", "--yes"],
            *[["cosign", "attest", "--yes"]] * 2,
        ]
        assert all(line.endswith(digest) for line in lines if "attest" in line or " add " in line)
        assert not [line for line in lines if "sign" in line and "@" not in line], "signed by a tag"


def test_an_index_needs_every_architecture_and_whole_digests(digests: Path) -> None:
    (digests / "gateway.arm64").unlink()
    done = published("index", REGISTRY, digests)
    assert done.returncode == 1
    assert "gateway.arm64 is missing" in done.stderr
    (digests / "gateway.arm64").write_text("sha256:abc; rm -rf /")
    assert "is no digest of gateway" in published("index", REGISTRY, digests).stderr


def test_signatures_are_of_files_that_are_there(made: Path, tmp_path: Path) -> None:
    assert published("sums", made).stdout.split()[:2] == ["cosign", "sign-blob"]
    assert "is missing" in published("sums", tmp_path).stderr
    assert "is missing" in published("chart", REGISTRY, tmp_path).stderr
    assert published("everything", made).returncode == 1


def test_what_is_published_is_what_the_chart_asks_for() -> None:
    script = (ROOT / "hack/release/publish").read_text()
    (listed,) = re.findall(r"^PUBLISHED=\((.+)\)$", script, re.MULTILINE)
    assert tuple(listed.split()) == files.IMAGES
    (built,) = re.findall(r"hack/images/build-images (.+)$", WORKFLOWS["release.yaml"], re.MULTILINE)
    assert sorted(built.split()) == sorted(files.IMAGES)
    names = (ROOT / "charts/hudi-operator/templates/_names.tpl").read_text()
    values = (ROOT / "charts/hudi-operator/values.yaml").read_text()
    for name in files.IMAGES:
        assert re.search(rf"\b{name}\b", names + values), name
    said = set(re.findall(r"- \{architecture: (\w+), runner:", WORKFLOWS["release.yaml"]))
    assert set(re.findall(r"^ARCHITECTURES=\((.+)\)$", script, re.MULTILINE)[0].split()) == said


def jobs(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load(WORKFLOWS[name])["jobs"])


def test_only_the_last_job_may_sign_and_it_waits_for_a_person() -> None:
    release = jobs("release.yaml")
    assert release["images"]["permissions"] == {"contents": "read", "packages": "write"}
    assert release["publish"]["permissions"] == {
        "contents": "write",
        "packages": "write",
        "id-token": "write",
        "attestations": "write",
    }
    assert release["publish"]["environment"] == "release"
    assert release["publish"]["needs"] == "images"
    assert [job.get("permissions") for job in jobs("ci.yaml").values()] == [None]


def test_what_writes_outside_runs_for_a_tag_only() -> None:
    """A run that is started by hand logs in nowhere; publish prints what it would run."""
    assert "DRY_RUN: ${{ github.ref_type == 'tag' && '' || '1' }}" in WORKFLOWS["release.yaml"]
    for job in jobs("release.yaml").values():
        for step in job["steps"]:
            text = f"{step.get('run', '')} {step.get('uses', '')}"
            if re.search(r"\blogin\b|gh release|attest-build", text):
                assert step["if"] == "github.ref_type == 'tag'", step
            assert "secrets." not in json.dumps(step), "no key is kept: the token of the run, and no other"


def test_no_step_keeps_the_token_of_the_checkout_or_names_an_action_by_tag() -> None:
    for name in WORKFLOWS:
        for job in jobs(name).values():
            for step in job["steps"]:
                if step.get("uses", "").startswith("actions/checkout@"):
                    assert step["with"]["persist-credentials"] is False, name
        actions = re.findall(r"uses: (\S+)@(\S+)$", WORKFLOWS[name], re.MULTILINE)
        assert len({commit for _, commit in actions}) == len({action for action, _ in actions}), "two commits of one"
        assert all(re.fullmatch(r"[0-9a-f]{40}", commit) for _, commit in actions)
