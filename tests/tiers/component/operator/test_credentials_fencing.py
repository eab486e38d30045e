"""A writer stands still on a lost node: its credentials are revoked, and its table goes on (F230).

Everything is real but the kubelet: operator, API server, etcd, writers, agent, an S3 server with
users, the example broker.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_contract import naming
from hudi_operator.adapters.credentials_broker import CredentialsBroker
from hudi_operator.model.config import CredentialsBrokerConfig
from hudi_operator.model.store_access import Credentials, Verdict
from tests.support.harness.local import rows
from tests.support.harness.revocable_store import RevocableStore
from tests.support.harness.servers import Cluster, Etcd, stopped, wait_for
from tests.support.harness.together import LONG, Together

pytestmark = pytest.mark.timeout(900)
CACHE_SECONDS, LIMIT_SECONDS = 5, 4.0
REQUEST_SECONDS = 12


@pytest.fixture
def whole(cluster: Cluster, etcd: Etcd, tmp_path: Path) -> Iterator[tuple[Together, RevocableStore]]:
    """A namespace whose operator has a broker."""
    made = Together(cluster, etcd, tmp_path, f"revoked-{os.urandom(2).hex()}")
    store = RevocableStore(
        tmp_path / "store", made.lake.s3_folder, cache_seconds=CACHE_SECONDS, limit_seconds=LIMIT_SECONDS
    )
    made.world.settings = {
        "credentialsBroker": {
            "url": store.broker,
            "tokenFile": str(store.token_file),
            "storeEndpoint": store.url,
            "identityCacheSeconds": CACHE_SECONDS,
            "requestSeconds": REQUEST_SECONDS,
        }
    }
    try:
        made.start()
        yield made, store
    finally:
        print(made.told())
        print(store.told("broker")[-3000:])
        made.close()
        store.stop()


def mounted(folder: Path) -> Credentials:
    """The credentials in the folder of a pod's process."""
    values = {path.name: path.read_text() for path in (folder / "etc/hudi/s3").iterdir()}
    return Credentials(values["accessKeyId"], values["secretAccessKey"])


def test_a_writer_on_a_lost_node_is_settled_while_it_stands_still(whole: tuple[Together, RevocableStore]) -> None:
    together, store = whole
    lost = f"lost-{together.namespace}"
    together.cluster.node(lost, boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    together.table("kept", endpoint=store.url, fencing={"mode": "Credentials", "drainSeconds": 1})
    together.ready("kept")
    gate = together.directory / "gate-kept"
    first, second = rows(range(10), "a", "one", 1), rows(range(5, 20), "a", "two", 2)
    together.kubelet.places["load-"] = lost
    together.writer("load", "kept", {"rows": first}, {"rows": second, "gate": str(gate)})
    driver = together.pod("driver", writer="load", number=1)
    wait_for("the second commit is under way", Path(f"{gate}.reached").exists, seconds=LONG)
    (victim,) = together.files("kept").pending()
    process = together.process(driver)
    inc, uid = process.inc, driver["metadata"]["uid"]
    credentials = mounted(process.folder)
    store_as_operator = CredentialsBroker(CredentialsBrokerConfig(url=store.broker, store_endpoint=store.url))

    def asked() -> Verdict:
        return asyncio.run(store_as_operator.ask_store(credentials, together.path("kept"))).verdict

    assert asked() is Verdict.ACCEPTED
    names = [volume["secret"]["secretName"] for volume in driver["spec"]["volumes"] if "secret" in volume]
    assert names == [naming.storage_key_name(driver["metadata"]["name"])], "the driver has other credentials, too"

    # Nobody hears of the node; the writer stands still, and its broker is away.
    store.signal("broker", signal.SIGSTOP)
    process.signal(signal.SIGSTOP)
    together.kubelet.places.clear()
    together.kubelet.lose(lost)
    since = time.monotonic()
    key = f"settle/{inc}"

    def record() -> dict[str, Any]:
        return together.keys("kept", key).get(key) or {}

    wait_for("it is being terminated", lambda: record().get("phase") == "Terminating", seconds=LONG)

    def told() -> bool:
        found = together.world.condition("huditables", "kept", "AwaitingProofOfDeath") or {}
        return "are not revoked yet (no answer of the credentials broker" in found.get("message", "")

    wait_for("the condition says what is missing", told, seconds=LONG)
    assert not record().get("proofs")
    assert asked() is Verdict.ACCEPTED
    store.signal("broker", signal.SIGCONT)
    answering = time.monotonic()

    proof = wait_for("a proof", lambda: (record().get("proofs") or {}).get(uid), seconds=LONG)
    proven = time.monotonic()
    assert proof["kind"] == "CredentialsRevoked", proof
    assert asked() is Verdict.REFUSED
    wait_for("it is unlocked", lambda: record().get("phase") not in ("Terminating", "Draining"), seconds=LONG)
    drained = time.monotonic()
    assert drained - proven >= REQUEST_SECONDS - 1.0, "the drain is too short for a request that has begun"
    wait_for("it is settled", lambda: record().get("phase") == "Settled", seconds=LONG)
    settled = time.monotonic()
    assert stopped(Path(f"/proc/{process.pid}/task/{process.pid}")), "the writer stood still all the time"
    assert process.poll() is None
    assert record()["instants"][victim]["outcome"] == "RolledBack", record()
    assert victim not in together.files("kept").pending()
    print(
        f"lost to proven {proven - since:.1f} s (broker away for {answering - since:.1f} s of it, "
        f"identity cache {CACHE_SECONDS} s), drained {drained - proven:.1f} s, settled {settled - since:.1f} s"
    )

    gate.touch()
    together.finished("load")
    process.signal(signal.SIGCONT)
    wait_for("the writer that was lost ends", lambda: process.poll() is not None, seconds=LONG)
    assert process.poll() != 0
    assert asked() is Verdict.REFUSED
    assert victim not in {i.requested for i in together.files("kept").timeline().completed}
    together.audited("kept", [row for row in first if row[0] < 5] + second)
    secret = credentials.secret_access_key
    for said in (*(operator.log for operator in together.world.operators), *together.kubelet.logs):
        assert secret not in said.read_text(errors="replace"), said
    assert secret not in str(together.etcd.read("/hudi/"))
    assert secret not in str([together.world.get("huditables", "kept"), together.world.get("hudiwriters", "load")])
    together.conform("kept")
