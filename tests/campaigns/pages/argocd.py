"""deploy/argocd: objects as the operator leaves them, for tests of health and actions; and the
ConfigMap with the scripts.

    python -m tests.campaigns.pages.argocd      write testdata and argocd-cm.yaml

Each object of `testdata` comes from the operator's planner, which works in a simulated world: its
status is one that the operator writes. Scripts and the expected healths are written by hand.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from hudi_contract import naming
from tests.support import ROOT
from tests.support.world.simulated_store import Garbage
from tests.support.world.simulated_world import World, at_step, finished, ready_world

JsonDict = dict[str, Any]
FOLDER = ROOT / "deploy/argocd"
GROUP = FOLDER / naming.GROUP
CONFIG_MAP = FOLDER / "argocd-cm.yaml"
WRITER = "backfill"


def _looked(world: World, looks: int = 3) -> World:
    for _ in range(looks):
        world.reconcile()
        world.tick()
    return world


# ---- tables


def _new_table() -> World:
    world = World()
    world.make_table()
    return world


def _preparing() -> World:
    world = _new_table()
    world.run(lambda w: w.condition(w.table, "Ready")["status"] == "False")
    return world


def _changed() -> World:
    world = ready_world()
    world.change(concurrency={"maxWriters": 2})
    return world


def _suspended_table() -> World:
    world = ready_world()
    world.change(suspend=True)
    return _looked(world)


def _stalled_table() -> World:
    world = ready_world()
    world.table_error = {"code": "OtherLockAuthority", "message": "the marker names authority x"}
    world.run(lambda w: w.is_true(w.table, "Stalled"))
    return world


def _unreadable() -> World:
    world = ready_world()
    world.put("instant/20260101000000999", Garbage("not JSON"))
    world.run(lambda w: w.condition(w.table, "RecordsReadable")["status"] == "False")
    return world


def _foreign() -> World:
    world = ready_world()
    world.foreign = {"20260101000000999": "commit"}
    world.run(lambda w: w.is_true(w.table, "ForeignWriters"))
    return world


def _awaiting_proof() -> World:
    """The pod of a writer with the lock is force-deleted; nobody knows whether it still runs."""
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer(WRITER)
    world.run(at_step(WRITER, 3))
    victim = world.writer_process(WRITER)
    assert victim is not None
    victim.paused = True
    world.reconcile()
    world.force_delete(world.pods[victim.pod])
    world.run(lambda w: w.is_true(w.table, "AwaitingProofOfDeath"))
    return world


def _deleting_table() -> World:
    """A writer still runs."""
    world = _running()
    assert world.table is not None
    world.delete(world.table)
    world.reconcile()
    return world


TABLES: dict[str, Callable[[], World]] = {
    "new": _new_table,
    "preparing": _preparing,
    "ready": ready_world,
    "changed": _changed,
    "suspended": _suspended_table,
    "stalled": _stalled_table,
    "unreadable": _unreadable,
    "foreign_writers": _foreign,
    "awaiting_proof": _awaiting_proof,
    "deleting": _deleting_table,
}


# ---- writers


def _with_writer(**spec: Any) -> World:
    world = ready_world()
    world.make_writer(WRITER, **spec)
    return world


def _starting() -> World:
    world = _with_writer()
    world.run(lambda w: (w.writers[WRITER].get("status") or {}).get("state") == "Starting")
    return world


def _running() -> World:
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer(WRITER)
    world.run(at_step(WRITER, 1))
    return _looked(world)


def _succeeded() -> World:
    world = _with_writer()
    world.run(finished(WRITER))
    return world


def _restarted() -> World:
    """The last change is not seen yet."""
    world = _succeeded()
    world.edit(world.writers[WRITER], restartNonce="2")
    return world


def _failed() -> World:
    world = ready_world()
    world.exit_codes = [10]
    world.make_writer(WRITER)
    world.run(finished(WRITER))
    return world


def _retrying() -> World:
    world = ready_world()
    world.exit_codes = [11]
    world.make_writer(WRITER, retryPolicy={"limit": 3, "backoffSeconds": 60})
    world.run(lambda w: (w.writers[WRITER].get("status") or {}).get("state") == "Retrying")
    return _looked(world)


def _waiting() -> World:
    """The table takes one writer at a time, and another one runs."""
    world = ready_world(concurrency={"maxWriters": 1})
    world.writer_hang_at = 1
    world.make_writer("another")
    world.run(at_step("another", 1))
    world.make_writer(WRITER)
    return _looked(world)


def _stalled_writer() -> World:
    return _looked(_with_writer(hudiOptions={"hoodie.write.lock.provider": "org.example.Other"}))


def _scheduled() -> World:
    return _looked(_with_writer(schedule={"cron": "0 3 * * *"}))


def _suspended_writer() -> World:
    return _looked(_with_writer(suspend=True))


def _deleting_writer() -> World:
    world = _running()
    world.delete(world.writers[WRITER])
    world.reconcile()
    return world


WRITERS: dict[str, Callable[[], World]] = {
    "new": _with_writer,
    "starting": _starting,
    "running": _running,
    "succeeded": _succeeded,
    "restarted": _restarted,
    "failed": _failed,
    "retrying": _retrying,
    "waiting": _waiting,
    "stalled": _stalled_writer,
    "scheduled": _scheduled,
    "suspended": _suspended_writer,
    "deleting": _deleting_writer,
}

ACTIONS: dict[tuple[str, str, str], Callable[[JsonDict], JsonDict]] = {
    ("HudiTable", "ready", "suspend"): lambda spec: {**spec, "suspend": True},
    ("HudiTable", "suspended", "resume"): lambda spec: {**spec, "suspend": False},
    ("HudiWriter", "running", "suspend"): lambda spec: {**spec, "suspend": True},
    ("HudiWriter", "suspended", "resume"): lambda spec: {**spec, "suspend": False},
    ("HudiWriter", "succeeded", "restart"): lambda spec: {**spec, "restartNonce": "argocd-1"},
    ("HudiWriter", "failed", "restart"): lambda spec: {**spec, "restartNonce": "argocd-1"},
}
"""Spec of an object after an action, by kind, object and action."""


def objects() -> Iterator[tuple[str, str, JsonDict]]:
    """Kind, name and object of each moment."""
    for name, make in TABLES.items():
        table = make().table
        assert table is not None, name
        yield "HudiTable", name, copy.deepcopy(table)
    for name, make in WRITERS.items():
        yield "HudiWriter", name, copy.deepcopy(make().writers[WRITER])


def files() -> dict[Path, str]:
    """Every file that is made, with its content."""
    found: dict[Path, str] = {}
    for kind, name, obj in objects():
        found[GROUP / kind / "testdata" / f"{name}.yaml"] = _text(obj)
        for (of, before, action), change in ACTIONS.items():
            if (of, before) == (kind, name):
                testdata = GROUP / kind / "actions/testdata"
                found[testdata / f"{name}.yaml"] = _text(obj)
                found[testdata / f"{name}_{action}.yaml"] = _text({**obj, "spec": change(obj["spec"])})
    return {**found, CONFIG_MAP: config_map()}


def _text(obj: JsonDict) -> str:
    # Without anchors for repeated parts, and with plain texts.
    return str(yaml.safe_dump(json.loads(json.dumps(obj)), sort_keys=False, width=110))


def _indented(path: Path, blanks: int) -> str:
    return "".join(f"{' ' * blanks}{line}".rstrip() + "\n" for line in path.read_text(encoding="utf-8").splitlines())


def config_map() -> str:
    """The scripts as Argo CD reads them from its ConfigMap."""
    lines = [
        "# Made from the scripts beside it by `python -m tests.campaigns.pages.argocd`.",
        "# kubectl patch configmap argocd-cm -n argocd --patch-file deploy/argocd/argocd-cm.yaml",
        "apiVersion: v1",
        "kind: ConfigMap",
        "metadata:",
        "  name: argocd-cm",
        "  labels: {app.kubernetes.io/part-of: argocd}",
        "data:",
    ]
    text = "\n".join(lines) + "\n"
    for kind in ("HudiTable", "HudiWriter"):
        key = f"{naming.GROUP}_{kind}"
        actions = GROUP / kind / "actions"
        text += f"  resource.customizations.health.{key}: |\n" + _indented(GROUP / kind / "health.lua", 4)
        text += f"  resource.customizations.actions.{key}: |\n    discovery.lua: |\n"
        text += _indented(actions / "discovery.lua", 6) + "    definitions:\n"
        for script in sorted(actions.glob("*/action.lua")):
            text += f"    - name: {script.parent.name}\n      action.lua: |\n" + _indented(script, 8)
    return text


if __name__ == "__main__":
    for path, content in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        print(path, file=sys.stderr)
