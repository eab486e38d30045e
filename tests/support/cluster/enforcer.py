"""A network plugin that enforces NetworkPolicies on the embedded node: kube-router's firewall, from
hack/build/build-binaries, beside the bridge that gives pods their network.

Only for the time of a test: the other tests look into pods from this machine, which the policies
keep out.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo import cluster

from tests.support import CACHE
from tests.support.cluster.node import node
from tests.support.cluster.space import wait_for

KUBE_ROUTER = CACHE / "bin" / "kube-router"
CHAIN = "KUBE-NWPLCY-DEFAULT"
"""A chain that kube-router makes first of all."""


@contextmanager
def enforced(log: Path) -> Iterator[None]:
    """NetworkPolicies hold, until the end; what kube-router says goes to ``log``.

    Connections that are open at the beginning stay so: a policy is about new ones.
    """
    assert KUBE_ROUTER.exists(), "there is no kube-router: hack/build/build-binaries kube-router"
    log.parent.mkdir(parents=True, exist_ok=True)
    kubeconfig = node("kubeconfig").strip()
    command = [
        *(str(cluster.ROOT / "hack" / "cluster" / "cluster"), "exec-node", str(KUBE_ROUTER)),
        *("--run-firewall=true", "--run-router=false", "--run-service-proxy=false", "--enable-ipv6=false"),
        *(f"--kubeconfig={kubeconfig}", "--hostname-override=hudi-node", "--service-cluster-ip-range=10.96.0.0/24"),
        *("--health-port=0", "--iptables-sync-period=10s"),
    ]
    with log.open("wb") as output:
        # The command replaces itself by nsenter, whose child runs in the node.
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            wait_for("kube-router's rules", lambda: CHAIN in node("exec-node", "iptables-save"), seconds=60)
            assert process.poll() is None, log.read_text()[-2000:]
            yield
        finally:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for child in children:
                subprocess.run(["kill", "-TERM", child], check=False)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                for child in children:
                    subprocess.run(["kill", "-KILL", child], check=False)
                process.kill()
                process.wait(20)
            # Its own --cleanup-config fails where the kernel has no load balancing (ip_vs).
            # Nobody else has rules of iptables here: kube-proxy's are nftables'.
            node("exec-node", "sh", "-c", "iptables -F && iptables -X && ipset destroy")
            assert CHAIN not in node("exec-node", "iptables-save"), "rules of kube-router are left on the node"
