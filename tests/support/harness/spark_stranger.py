"""Run by test_wire.py: a JVM that is not part of a Spark application talks to its driver's ports.

`python -m tests.support.harness.spark_stranger RPC_PORT BLOCK_PORT [KEY]` prints for each port
whether it was served, or why not. Without KEY it does not authenticate.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import launch_gateway

from hudi_operator.manifests.spark_conf import WIRE

HOST = "127.0.0.1"


def settings(jvm: Any, key: str) -> Any:
    """Spark's settings of this process."""
    conf = jvm.org.apache.spark.SparkConf(False)
    for name, value in {**WIRE, "spark.authenticate.secret": key}.items() if key else ():
        conf.set(name, value)
    return conf


def security(jvm: Any, conf: Any) -> Any:
    """Security manager that has the key."""
    file = getattr(getattr(jvm.org.apache.spark.internal.config, "package$"), "MODULE$").AUTH_SECRET_FILE()
    return jvm.org.apache.spark.SecurityManager(conf, jvm.scala.Option.empty(), file)


def ask_driver(jvm: Any, port: int, key: str) -> None:
    """Find the end point to which executors send their heartbeats."""
    conf = settings(jvm, key)
    env = jvm.org.apache.spark.rpc.RpcEnv.create("stranger", HOST, 0, conf, security(jvm, conf), True)
    env.setupEndpointRefByURI(f"spark://HeartbeatReceiver@{HOST}:{port}")


def open_blocks(jvm: Any, port: int, key: str) -> None:
    """Open a stream of blocks, though of none."""
    network = jvm.org.apache.spark.network
    conf = settings(jvm, key)
    provider = network.util.MapConfigProvider({each._1(): each._2() for each in conf.getAll()})
    transport = network.util.TransportConf("shuffle", provider)
    steps = jvm.java.util.ArrayList()
    if key:
        steps.add(network.crypto.AuthClientBootstrap(transport, "stranger", security(jvm, conf)))
    handler = network.server.NoOpRpcHandler()
    client = network.TransportContext(transport, handler, True).createClientFactory(steps).createClient(HOST, port)
    none = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName("java.lang.String"), 0)
    client.sendRpcSync(network.shuffle.protocol.OpenBlocks("any", "0", none).toByteBuffer(), 10_000)


def reason(error: Any) -> str:
    """The first line of an exception and of each of its causes."""
    told = []
    while error is not None:
        told.append((str(error).splitlines() or [""])[0])
        error = error.getCause()
    return "; because of ".join(told)


def main() -> None:
    """Ask both ports."""
    ports, key = sys.argv[1:3], "".join(sys.argv[3:4])
    gateway: Any = launch_gateway()
    gateway.jvm.org.apache.spark.util.Utils.setLogLevel(gateway.jvm.org.apache.logging.log4j.Level.OFF)
    asks: tuple[tuple[str, Callable[[Any, int, str], None]], ...] = (("rpc", ask_driver), ("blocks", open_blocks))
    for (name, ask), port in zip(asks, ports, strict=True):
        try:
            ask(gateway.jvm, int(port), key)
        except Py4JJavaError as error:
            print(name, "refused", reason(error.java_exception), flush=True)
        else:
            print(name, "served", flush=True)
    gateway.shutdown()


if __name__ == "__main__":
    main()
