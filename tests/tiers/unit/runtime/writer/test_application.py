"""Application mode: how a program is run, what becomes of its errors, and which commits are its
own. Without Spark: nothing of it is asked here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import hudi_contract
from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import Application
from hudi_runtime.process.errors import RuntimeFailure, UserCodeError
from hudi_runtime.process.result import Tally
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import CommitInfo
from hudi_runtime.writer import application


class Spark:
    """Notes which files executors would get."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.sparkContext = SimpleNamespace(addPyFile=self.files.append)


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["writer"])
    monkeypatch.setattr(sys, "path", list(sys.path))


def program(folder: Path, code: str, *arguments: str) -> Application:
    (folder / "main.py").write_text(code)
    return Application(main_file=str(folder / "main.py"), arguments=arguments)


def test_a_program_may_stop_spark(tmp_path: Path) -> None:
    """F285: the attempt goes on, and Spark can be stopped afterwards."""
    code = (
        "from pyspark import SparkContext\n"
        "from pyspark.sql import SparkSession\n"
        "SparkSession.stop(object())\n"
        "SparkContext.stop(object())\n"
    )
    before = SparkSession.stop, SparkContext.stop
    spark: Any = Spark()
    application.run(spark, program(tmp_path, code))
    assert (SparkSession.stop, SparkContext.stop) == before
    with pytest.raises(UserCodeError):
        application.run(spark, program(tmp_path, "raise ValueError('no')"))
    assert (SparkSession.stop, SparkContext.stop) == before


def test_it_runs_as_a_script_with_its_arguments_and_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("WORD = 'neighbour'\n")
    code = (
        "import sys, beside_it\n"
        "from pathlib import Path\n"
        "Path(sys.argv[1]).write_text(f'{__name__} {sys.argv[1:]} {beside_it.WORD}')\n"
    )
    spark: Any = Spark()
    application.run(spark, program(tmp_path, code, str(tmp_path / "out"), "two"))
    assert (tmp_path / "out").read_text() == f"__main__ {[str(tmp_path / 'out'), 'two']} neighbour"
    (sent,) = spark.files
    assert Path(sent).name == "beside_it.py"
    assert Path(sent).parent != tmp_path, "a copy: the ConfigMap may change while it runs"
    (tmp_path / "beside_it.py").write_text("changed")
    assert Path(sent).read_text() == "WORD = 'neighbour'\n"


def test_a_module_runs_as_with_m(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs_of_mine").mkdir()
    (tmp_path / "jobs_of_mine" / "load.py").write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "Path(sys.argv[1]).write_text(f'{__name__} {sys.argv[2:]}')\n"
        "sys.exit(int(sys.argv[2]))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    out = str(tmp_path / "out")
    application.run(Spark(), Application("", (out, "0"), module="jobs_of_mine.load"))  # type: ignore[arg-type]
    assert (tmp_path / "out").read_text() == "__main__ ['0']"
    with pytest.raises(UserCodeError, match=r"jobs_of_mine[.]load ended with exit code 4"):
        application.run(Spark(), Application("", (out, "4"), module="jobs_of_mine.load"))  # type: ignore[arg-type]
    with pytest.raises(UserCodeError, match="no_such_module: ImportError: No module named"):
        application.run(Spark(), Application("", (), module="no_such_module"))  # type: ignore[arg-type]


@pytest.mark.parametrize("code", ["import sys; sys.exit()", "import sys; sys.exit(0)", "raise SystemExit(None)"])
def test_an_exit_without_a_code_is_an_end(tmp_path: Path, code: str) -> None:
    application.run(Spark(), program(tmp_path, code))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "said"),
    [("import sys; sys.exit(3)", "main.py ended with exit code 3"), ("import sys; sys.exit('no')", "exit code no")],
)
def test_an_exit_with_a_code_is_the_programs_fault(tmp_path: Path, code: str, said: str) -> None:
    with pytest.raises(UserCodeError, match=said):
        application.run(Spark(), program(tmp_path, code))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ending", "status"), [("sys.exit(0)", 0), ("pass", 0), ("raise ValueError('in the child')", 1)]
)
def test_a_child_of_the_program_does_not_come_back(tmp_path: Path, ending: str, status: int) -> None:
    """A child of `os.fork` would report success and end the registration, while its parent
    goes on writing.
    """
    code = (
        "import os, sys\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        f"    {ending}\n"
        "else:\n"
        "    open(sys.argv[1], 'w').write(str(os.waitpid(child, 0)[1]))\n"
    )
    (tmp_path / "driver.py").write_text(
        "import os, sys\n"
        "from types import SimpleNamespace\n"
        "from hudi_runtime.writer import application\n"
        "from hudi_runtime.job.job import Application\n"
        "spark = SimpleNamespace(sparkContext=SimpleNamespace(addPyFile=print))\n"
        "me = os.getpid()\n"
        "try:\n"
        "    application.run(spark, Application(main_file=sys.argv[1], arguments=(sys.argv[2],)))\n"
        "finally:\n    print('ENDED', os.getpid() == me, flush=True)\n"
    )
    program(tmp_path, code)
    path = os.pathsep.join(
        str(Path(module.__file__ or "").parents[up]) for module, up in ((application, 2), (hudi_contract, 1))
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "driver.py"), str(tmp_path / "main.py"), str(tmp_path / "status")],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert [line for line in done.stdout.splitlines() if line.startswith("ENDED")] == ["ENDED True"]
    assert os.waitstatus_to_exitcode(int((tmp_path / "status").read_text())) == status


def test_what_it_raises_is_its_fault_and_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(UserCodeError, match=r"main\.py: ValueError: wrong"):
        application.run(Spark(), program(tmp_path, "raise ValueError('wrong')"))  # type: ignore[arg-type]
    with pytest.raises(UserCodeError, match=r"main\.py: SyntaxError"):
        application.run(Spark(), program(tmp_path, "def :"))  # type: ignore[arg-type]


def test_a_failure_of_the_runtime_stays_what_it_is(tmp_path: Path) -> None:
    code = (
        "from hudi_runtime.process.errors import FailureClass, RuntimeFailure\n"
        "raise RuntimeFailure(FailureClass.FENCED, 'gone')"
    )
    with pytest.raises(RuntimeFailure) as caught:
        application.run(Spark(), program(tmp_path, code))  # type: ignore[arg-type]
    assert caught.value.failure is FailureClass.FENCED


def _instant(requested: str, completion: str) -> tl.Instant:
    return tl.Instant(requested, "commit", tl.State.COMPLETED, completion)


class Lake:
    """A table with commits from before the program began, its own, of which one names nobody, and
    somebody else's.
    """

    def __init__(self) -> None:
        self.asked: tuple[tl.Instant, ...] = ()
        self._owner = {"10": "me", "20": "me", "30": "", "40": "me", "50": "other"}

    def timeline(self) -> Any:
        return SimpleNamespace(completed=[_instant(one, f"{one[0]}5") for one in sorted(self._owner)])

    def commits(self, instants: tuple[tl.Instant, ...]) -> list[tuple[tl.Instant, CommitInfo]]:
        self.asked = instants
        return [
            (one, CommitInfo({"hudioperator.inc": self._owner[one.requested]}, int(one.requested))) for one in instants
        ]


def test_its_own_commits_since_it_began_are_counted() -> None:
    lake, tally = Lake(), Tally()
    session: Any = SimpleNamespace(inc="me", quiet=lambda: True, completed=lambda: {"30"})
    application.count_commits(lake, session, tally, base="15")  # type: ignore[arg-type]
    assert [one.requested for one in lake.asked] == ["20", "30", "40", "50"], "what was there before is not read again"
    assert (tally.commits, tally.records, tally.last_instant, tally.last_completion) == (3, 90, "40", "45")


def test_an_unknown_publication_is_not_counted_as_none() -> None:
    lake, tally = Lake(), Tally()
    session: Any = SimpleNamespace(inc="me", quiet=lambda: False)
    with pytest.raises(RuntimeFailure) as caught:
        application.count_commits(lake, session, tally, base="0")  # type: ignore[arg-type]
    assert caught.value.failure is FailureClass.INFRASTRUCTURE
    assert (tally.commits, lake.asked) == (0, ())
