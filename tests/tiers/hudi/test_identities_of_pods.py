"""Pods whose cloud gives them an identity, as in examples/identities: the table has no Secret.

The client of a driver and of an agent is the one of the image, with the settings of the example.
Whom it asks is a stand-in, and webhook and kubelet are played.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.api.spec import StorageSpec
from tests.support import ROOT, quick_yaml
from tests.support.harness.local import OTHER_CLIENT, World, rows
from tests.support.harness.metadata_server import Bucket
from tests.support.harness.processes import until
from tests.support.harness.sts_server import REGION, ROLE, StsServer

pytestmark = pytest.mark.extra

EXAMPLES = ROOT / "examples" / "identities"
AGENT = "agent-identity"
SECONDS = 65.0
"""For how long credentials of the stand-in live. The SDK renews them when a minute is left."""
FIRST, SECOND = rows(range(5), "a", "before", 1), rows(range(5, 10), "a", "after", 1)


def example(name: str, kind: str) -> dict[str, Any]:
    """The object of that kind in a file of the example."""
    (found,) = [one for one in quick_yaml.load_all((EXAMPLES / name).read_text()) if one["kind"] == kind]
    return dict(found)


@pytest.fixture
def sts(world: World, tmp_path: Path) -> Iterator[StsServer]:
    world.start_s3()
    made = StsServer(
        tmp_path / "sts", world.s3_folder, policy=(EXAMPLES / "role-policy.json").read_text(), seconds=SECONDS
    )
    yield made
    made.stop()


def test_a_role_of_aws(world: World, sts: StsServer) -> None:
    """A driver and an agent work with credentials of the role, and outlive them: a driver commits
    although the credentials with which it began its write have expired and its first token is
    refused. With a token that STS refuses, both say so, and go on with a good one.
    """
    storage = example("irsa.yaml", "HudiTable")["spec"]["storage"]
    annotations = example("irsa.yaml", "ServiceAccount")["metadata"]["annotations"]
    assert annotations["eks.amazonaws.com/role-arn"] == ROLE
    assert storage["options"]["fs.s3a.endpoint.region"] == REGION
    # Where the S3 server of the test is: nothing about who asks.
    where = {
        "fs.s3a.endpoint": sts.url,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
    }
    path = example("irsa.yaml", "HudiTable")["spec"]["path"]
    table = world.table("flights", path=path, storage={**storage, "options": {**storage["options"], **where}})
    of_agent, of_writer = sts.pod("agent"), sts.pod("writer")
    agent = world.agent(AGENT, storage=table, environment=of_agent.environment)
    world.create(table, agent=AGENT, process=agent)
    gate = world.folder / "gate-irsa"
    batches = [{"rows": FIRST}, {"rows": SECOND, "gate": str(gate)}]
    writer = table.writer("writer", python={"batches": batches}, environment=of_writer.environment)
    until("the second write is under way", Path(f"{gate}.reached").exists, alive=writer)
    before = list(of_writer.keys)
    assert before
    sts.project(of_writer)
    sts.project(of_agent)
    until("the writer's first credentials have expired", lambda: sts.expired(before), alive=writer)
    gate.touch()
    assert writer.wait() == 0, writer.log()[-6000:]
    assert writer.termination()["commits"] == 2
    assert len(of_writer.keys) > len(before)
    assert of_writer.keys[-1][1] == of_writer.tokens[-1]
    assert of_agent.keys[-1][1] == of_agent.tokens[-1]

    sts.project(of_agent, "of-another-issuer")
    error = until("the agent says so", lambda: table.report().get("error"), alive=agent, timeout=180)
    assert error["code"] == "StorageUnreachable", error
    refused = sts.pod("refused")
    sts.project(refused, "of-another-issuer")
    second = table.writer("refused", python={"batches": [{"rows": SECOND}]}, environment=refused.environment)
    assert second.wait(timeout=120) != 0
    assert second.termination()["class"] == "StorageUnreachable", second.termination()
    sts.project(of_agent)
    until("the agent goes on", lambda: not table.report().get("error"), alive=agent, timeout=120)
    inc = table.fence(second)
    until("the refused one is settled", lambda: table.outcomes(inc) is not None, alive=agent)
    table.settled(inc)
    told = "".join(process.log() for process in (agent, writer, second)) + f"{error}{second.termination()}"
    assert not [token for token in (*of_agent.tokens, *of_writer.tokens) if token and token in told]
    table.audited(FIRST + SECOND)


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    made = Bucket(tmp_path / "gcs")
    made.start()
    yield made
    made.stop()


def test_an_account_of_google(world: World, bucket: Bucket) -> None:
    """As with a role of AWS; tokens come from the metadata server."""
    spec = example("gke.yaml", "HudiTable")["spec"]
    assert "options" not in spec["storage"]
    # Where the server of the test is: nothing about who asks.
    where = {"fs.gs.storage.root.url": bucket.url}
    table = world.table("gke", path=spec["path"], storage={**spec["storage"], "options": where})
    of_agent, of_writer = bucket.pod(seconds=SECONDS), bucket.pod(seconds=SECONDS)
    agent = world.agent("agent-gke", storage=table, environment=of_agent.environment)
    world.create(table, agent="agent-gke", process=agent)
    gate = world.folder / "gate-gke"
    batches = [{"rows": FIRST}, {"rows": SECOND, "gate": str(gate)}]
    writer = table.writer("writer", python={"batches": batches}, environment=of_writer.environment)
    until("the second write is under way", Path(f"{gate}.reached").exists, alive=writer)
    before = list(of_writer.given)
    assert before
    until("the writer's first tokens have expired", lambda: not any(map(bucket.accepts, before)), alive=writer)
    gate.touch()
    assert writer.wait() == 0, writer.log()[-6000:]
    assert writer.termination()["commits"] == 2
    assert len(of_writer.given) > len(before)

    of_agent.bound = False
    error = until("the agent says so", lambda: table.report().get("error"), alive=agent, timeout=180)
    assert error["code"] == "StorageUnreachable", error
    refused = bucket.pod(seconds=SECONDS)
    refused.bound = False
    second = table.writer("refused", python={"batches": [{"rows": SECOND}]}, environment=refused.environment)
    assert second.wait(timeout=180) != 0
    assert second.termination()["class"] == "StorageUnreachable", second.termination()
    assert refused.refused
    of_agent.bound = True
    until("the agent goes on", lambda: not table.report().get("error"), alive=agent, timeout=120)
    inc = table.fence(second)
    until("the refused one is settled", lambda: table.outcomes(inc) is not None, alive=agent)
    table.settled(inc)
    told = "".join(process.log() for process in (agent, writer, second)) + f"{error}{second.termination()}"
    assert not [token for token in (*of_agent.given, *of_writer.given) if token in told]
    table.spec = replace(table.spec, storage=StorageSpec(options=bucket.options))
    table.audited(FIRST + SECOND, without=OTHER_CLIENT)
