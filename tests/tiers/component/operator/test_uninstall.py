"""docs/operate/uninstall.md, as it stands."""

from __future__ import annotations

import os
import subprocess
import textwrap

from tests.support import CACHE, ROOT
from tests.support.harness.operator_world import EVIDENCE, World
from tests.support.harness.servers import wait_for


def commands() -> str:
    """The commands under "Removing finalizers without the operator"."""
    section = (
        (ROOT / "docs" / "operate" / "uninstall.md")
        .read_text()
        .split("## Removing finalizers without the operator")[1]
    )
    lines = [line for line in section.splitlines() if line.startswith("    ")]
    return textwrap.dedent("\n".join(lines))


def test_finalizers_go_without_the_operator(world: World) -> None:
    operator = world.start_operator(leader_election=False)
    table_id, _, _ = world.running_table()
    pod, _ = world.running_writer(table_id, executors={"instances": 1})
    operator.kill()
    assert EVIDENCE in pod["metadata"]["finalizers"]
    for kind in ("hudiwriters", "huditables", "pods"):
        world.cluster.kubectl("delete", kind, "--all", "-n", world.namespace, "--wait=false")
    assert world.get("huditables", "flights"), "held by its finalizer"
    assert world.pods("driver")[0]["metadata"]["deletionTimestamp"]
    env = {**os.environ, "KUBECONFIG": str(world.cluster.kubeconfig), "PATH": f"{CACHE / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", commands()], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    wait_for(
        "the end of the objects",
        lambda: world.get("huditables", "flights") is None and world.get("hudiwriters", "load") is None,
    )
    assert all(not left["metadata"].get("finalizers") for left in [*world.pods("driver"), *world.pods("agent")])
    wait_for("the end of its ConfigMap", lambda: world.get("configmaps", pod["metadata"]["name"]) is None)
