"""Diagnosis of a failed runtime process, with or without its JVM."""

from __future__ import annotations

from py4j.protocol import Py4JError

from hudi_contract.outcomes import FIRST_CLASSES, HALTS, JVM_ENDED, FailureClass
from hudi_runtime.process import spark as sp
from hudi_runtime.process.errors import Failure, classify, environment_secrets


def diagnose(error: BaseException, *, cancelled: bool = False) -> Failure:
    """Class of the failure.

    When the JVM has ended, its exit code determines the class: later errors are consequences.

    `cancelled`: the process was asked to stop, and cancelled its jobs. An error that user code
    raises then is a consequence, too, and nothing that its author could correct (F550).
    """
    secrets = environment_secrets()
    gone = isinstance(error, (Py4JError, ConnectionError, EOFError)) and not getattr(error, "java_exception", None)
    code = sp.jvm_exit_code(wait_seconds=10.0 if gone else 0.0)
    if code is not None:
        halted = FIRST_CLASSES.get(code)
        kind = halted if halted in HALTS else FailureClass.INFRASTRUCTURE
        return Failure(kind, f"{JVM_ENDED} {code}")
    failure = classify(error, secrets=secrets)
    if cancelled and failure.kind is FailureClass.USER_ERROR:
        return Failure(FailureClass.INFRASTRUCTURE, f"asked to stop, and its jobs were cancelled: {failure.message}")
    return failure
