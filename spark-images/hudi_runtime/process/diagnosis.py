"""Why a process of the runtime has failed, whether its JVM is still there or not."""

from __future__ import annotations

from py4j.protocol import Py4JError

from hudi_contract.outcomes import FIRST_CLASSES, HALTS, FailureClass
from hudi_runtime.process import spark as sp
from hudi_runtime.process.errors import Failure, classify, environment_secrets


def diagnose(error: BaseException) -> Failure:
    """Class of the failure; a JVM that is gone explains everything that happened afterwards."""
    secrets = environment_secrets()
    gone = isinstance(error, (Py4JError, ConnectionError, EOFError)) and not getattr(error, "java_exception", None)
    code = sp.jvm_exit_code(wait_seconds=10.0 if gone else 0.0)
    if code is not None:
        halted = FIRST_CLASSES.get(code)
        kind = halted if halted in HALTS else FailureClass.INFRASTRUCTURE
        return Failure(kind, f"the driver's JVM ended with exit code {code}")
    return classify(error, secrets=secrets)
