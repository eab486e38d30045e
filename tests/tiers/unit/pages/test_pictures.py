"""The pictures of docs/design: drawn from their sources, and every name in a source is one
of the repository.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hudi_contract import keys, naming
from tests.support import ROOT, quick_yaml
from tests.tiers.unit.pages.names import problem

DESIGN = ROOT / "docs/design"
PICTURES = ("architecture", "life-of-an-instant")
JAVA = "spark-images/etcd-lock/src/main/java/io/hudioperator"
ACTORS = {"operator": ("operator", "operator+agent"), "driver": ("jvm",), "agent": ("agent", "jvm", "operator+agent")}
"""Lane: words of protocol.json for who executes a transaction, or writes a key."""


@cache
def drawing() -> ModuleType:
    """hack/pictures/draw.py, which is a script and no package."""
    spec = importlib.util.spec_from_file_location("draw", ROOT / "hack/pictures/draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["draw"] = module
    spec.loader.exec_module(module)
    return module


def source(name: str) -> dict[str, Any]:
    """Content of one source."""
    content: dict[str, Any] = quick_yaml.load((DESIGN / f"{name}.yaml").read_text())
    return content


def parts(name: str) -> Iterator[dict[str, Any]]:
    """Boxes, lanes and steps of a picture."""
    data = source(name)
    yield from data.get("boxes", []) + data.get("lanes", [])
    for band in data.get("bands", []):
        yield from band["steps"]


def kinds() -> set[str]:
    """Kinds that the CRDs define."""
    return {quick_yaml.load(path.read_text())["spec"]["names"]["kind"] for path in (ROOT / "crds").glob("*.yaml")}


def changed(transaction: dict[str, Any], verb: str) -> set[str]:
    """Kinds of keys that a transaction of protocol.json puts or deletes."""
    effects = [one.split()[1].partition("/")[0] for one in transaction["then"] if one.startswith(verb)]
    return set(effects)


def wrong(step: dict[str, Any]) -> list[str]:
    """What a step says about keys that protocol.json does not."""
    known, transactions = keys.protocol()["keys"], keys.protocol()["transactions"]
    sender, writes, deletes = ACTORS.get(step["from"], ()), set(step.get("writes", [])), set(step.get("deletes", []))
    found = [f"no key {one}" for one in sorted((writes | deletes) - set(known))]
    if "transaction" in step:
        its = transactions.get(step["transaction"])
        if its is None:
            return [*found, f"no transaction {step['transaction']}"]
        found += [f"{step['transaction']} is not of {step['from']}"] if its["actor"] not in sender else []
        found += [f"{step['transaction']} does not put {one}" for one in sorted(writes - changed(its, "put"))]
        found += [f"{step['transaction']} does not delete {one}" for one in sorted(deletes - changed(its, "delete"))]
    else:
        found += [
            f"{step['from']} does not write {one}"
            for one in sorted(writes & set(known))
            if known[one]["writer"] not in sender
        ]
        found += [f"{one} is deleted in a transaction" for one in sorted(deletes)]
    shown = " ".join(step.get("names", []))
    return found + [f"{one} is not shown" for one in sorted(writes) if not re.search(rf"\b{one}\b", shown)]


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_is_drawn_from_its_source(name: str) -> None:
    drawn: str = drawing().draw(DESIGN / f"{name}.yaml")
    assert drawn == (DESIGN / f"{name}.svg").read_text(), "run hack/pictures/draw.py"


@pytest.mark.parametrize("name", PICTURES)
def test_folders_processes_kinds_classes_and_code_are_there(name: str) -> None:
    found = []
    for part in parts(name):
        found += [one for one in (part.get("code"), part.get("folder")) if one and problem(one)]
        found += [one for one in part.get("kinds", []) if one not in kinds()]
        found += [one for one in part.get("classes", []) if problem(f"{JAVA}/{one}.java::{one}")]
        module = str(part.get("process", "")).replace(".", "/")
        if module and not any((ROOT / base / module / "__main__.py").exists() for base in ("operator", "spark-images")):
            found.append(part["process"])
    assert found == []


def test_rooms_are_those_of_their_folder() -> None:
    """A box that shows `plan/` stands for a folder of that name, one that shows `control/observe`
    for a module in it.
    """
    for box in source("architecture")["boxes"]:
        shown = str(box["names"][0]).partition(":")[0] if "folder" in box and "names" in box else ""
        if shown:
            folder = ROOT / box["folder"]
            places = [base / shown for base in (ROOT, folder, folder.parent)]
            assert any(place.exists() or place.with_suffix(".py").exists() for place in places), shown


def test_every_key_is_shown_in_its_range() -> None:
    ranges = {box["range"]: box["names"] for box in source("architecture")["boxes"] if "range" in box}
    for name, names in ranges.items():
        prefix, shown = names[0], sorted(one for line in names[1:] for one in line.split(" · "))
        of_range = {"control": keys.control_prefix, "tables": keys.tables_prefix}[name]
        assert of_range("", "<table-id>") == f"/{prefix}"
        assert shown == sorted(
            str(entry["path"]) for entry in keys.protocol()["keys"].values() if entry["range"] == name
        )


def test_each_step_does_what_the_protocol_says() -> None:
    found = {
        str(step["says"]): bad
        for step in parts("life-of-an-instant")
        if "says" in step and "from" in step and (bad := wrong(step))
    }
    assert found == {}
    shown = {name for step in parts("life-of-an-instant") for name in step.get("names", [])}
    assert keys.assignment_key("", "<agent>", "<table-id>").removeprefix("/control/") in shown
    assert naming.EVIDENCE_FINALIZER in shown


def test_a_key_that_the_step_names_is_a_key() -> None:
    for step in parts("life-of-an-instant"):
        if step.get("to") == "etcd":
            named = {
                word.partition("/")[0]
                for word in " ".join(step["names"]).split()
                if "/" in word or word in keys.protocol()["keys"]
            }
            assert named <= set(keys.protocol()["keys"]) | {"agents"}, step


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"from": "driver", "writes": ["lokc"], "names": ["lokc"]}, "no key lokc"),
        ({"from": "driver", "writes": ["gate"], "names": ["gate"]}, "driver does not write gate"),
        ({"from": "driver", "transaction": "fence", "writes": ["fence"], "names": ["fence"]}, "fence is not of driver"),
        (
            {"from": "driver", "transaction": "publish", "writes": ["lock"], "names": ["lock"]},
            "publish does not put lock",
        ),
        ({"from": "driver", "transaction": "release", "deletes": ["clock"]}, "release does not delete clock"),
        ({"from": "driver", "transaction": "publsh", "writes": []}, "no transaction publsh"),
        ({"from": "driver", "transaction": "acquire", "writes": ["lock"]}, "lock is not shown"),
    ],
)
def test_a_step_that_is_not_true_is_found(step: dict[str, Any], said: str) -> None:
    assert said in wrong(step)


def test_texts_that_overlap_or_leave_the_picture_are_refused() -> None:
    draw = drawing()
    canvas = draw.Canvas(200.0)
    canvas.text(20, 20, "one", "text")
    with pytest.raises(draw.Wrong, match="lies over"):
        canvas.text(30, 22, "two", "text")
    with pytest.raises(draw.Wrong, match="leaves the picture"):
        canvas.text(150, 60, "a long line of text", "text")
    with pytest.raises(draw.Wrong, match="does not fit"):
        draw.lines_in(draw.Canvas(200.0), {"at": [0, 0, 60, 40], "title": "a title that is long"})


def test_the_script_checks_what_it_has_drawn(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "hack/pictures/draw.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
