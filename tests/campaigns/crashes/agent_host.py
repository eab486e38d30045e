"""``python -m tests.campaigns.crashes.agent_host``: the product's agent in a JVM that is warm
already, for one agent pod after the other.

Everything that decides or writes is hudi_runtime's; this module only adds the values that a pod
gets from its environment: its identity and the address of etcd. Orders come as JSON lines on
standard input, each is answered by one word on standard output.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any

from hudi_runtime.agent import agent as product
from hudi_runtime.agent.assignment import Assignment
from hudi_runtime.process import spark as sp
from hudi_runtime.process.etcd import Etcd
from hudi_runtime.process.stopping import Stop

LEAVE_SECONDS = 20.0


class Asked(Stop):
    """A stop that comes as an order, not as a signal."""

    def ask(self) -> None:
        """Stop now."""
        self._event.set()


class Pod:
    """One agent pod: the agent on its own thread."""

    def __init__(self, spark: Any, order: Mapping[str, Any]) -> None:
        settings = {**order["etcd"], "podName": order["pod"], "namespace": order["namespace"], "podUID": order["uid"]}
        settings |= {
            "node": order["node"],
            "bootId": order["bootId"],
            "attempt": f"{order['namespace']}.{order['pod']}",
        }

        class Here(Assignment):
            """An assignment whose session is this pod's."""

            def _settings(self) -> dict[str, str]:
                return {**super()._settings(), **settings}

        self._handing_over = threading.Event()
        handing_over = self._handing_over

        class Agent(product.Agent):
            """The agent, with this pod's way to etcd."""

            def __init__(self, stop: Stop) -> None:
                super().__init__(spark, order["agent"], stop=stop, handing_over=handing_over)
                jvm = spark.sparkContext._jvm
                java = jvm.java.util.HashMap()
                for key, value in order["etcd"].items():
                    java.put(key, value)
                self._etcd._facade.close()
                self._etcd = Etcd(jvm.io.hudioperator.Sessions.etcd(java))

        product.Assignment = Here  # type: ignore[misc]
        self._stop = Asked(lambda: None)
        agent = Agent(self._stop)
        self._facade = agent._etcd._facade
        self._thread = threading.Thread(target=agent.run, name=order["pod"], daemon=True)
        self._thread.start()

    def leave(self) -> bool:
        """End it in order; False when it does not, or when the agent handed over: then its process
        is to end, too.
        """
        self._stop.ask()
        self._thread.join(LEAVE_SECONDS)
        self._facade.close()
        return not (self._thread.is_alive() or self._handing_over.is_set())


def main() -> None:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(word: str) -> None:
        answers.write(word + "\n")
        answers.flush()

    pod: Pod | None = None
    spark = sp.start("agents")
    # Once, so that the first run does not pay for the classes.
    spark.range(1).count()
    say("ready")
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if order["do"] == "serve":
                pod = Pod(spark, order)
                say("serving")
            else:
                say("left" if pod is None or pod.leave() else "stuck")
                pod = None
        except Exception:
            traceback.print_exc()
            say("failed")


if __name__ == "__main__":
    main()
    os._exit(0)
