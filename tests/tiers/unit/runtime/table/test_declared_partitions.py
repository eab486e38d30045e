"""What of a batch is not in the declared partitions: named before an instant is begun."""

from __future__ import annotations

import re

import pytest

from hudi_contract.outcomes import FailureClass
from hudi_operator.api import partitions as declared
from hudi_runtime.job.job import Job
from hudi_runtime.process.errors import JavaCause, classify_causes
from hudi_runtime.table.partitions import expression, refusal
from tests.support.world.job_json import JOB


@pytest.mark.parametrize(
    ("patterns", "path", "matches"),
    [
        (["2026-01-*"], "2026-01-31", True),
        (["2026-01-*"], "2026-02-01", False),
        (["2026-01-*"], "x2026-01-31", False),
        (["a", "b?"], "b1", True),
        (["a", "b?"], "b", False),
        (["a.c"], "abc", False),
        (["a+(b)|c$ \\d"], "a+(b)|c$ \\d", True),
        (["de/*"], "de/2026/01", True),
        (["*"], "", True),
        (["a"], "a\n", False),
        (["*"], "a\nb", True),
    ],
)
def test_what_a_pattern_matches(patterns: list[str], path: str, matches: bool) -> None:
    # Python says what Java does of this part of the language, but for two spellings.
    python = expression(patterns).replace("\\z", "\\Z").replace("\\x{", "\\x").replace("}", "")
    assert bool(re.search(python, path)) is matches
    assert (
        (declared.Patterns([path]).first_met(patterns[0])[0] is not None) is matches
        or len(patterns) > 1
        or "\\" in path
    ), "admission reads patterns the same way"


def test_the_refusal_names_partition_and_rule() -> None:
    text = refusal("2026-02-01", [f"2026-01-{n}" for n in range(10, 17)])
    assert text.startswith(
        "partition 2026-02-01: the batch has rows in it, but spec.partitions of the HudiWriter declares only "
        "2026-01-10, "
    )
    assert text.endswith("2026-01-14 and 2 more")


def test_a_row_that_turns_up_later_is_the_same_failure() -> None:
    chain = [
        JavaCause("org.apache.spark.SparkException", "Job aborted"),
        JavaCause("java.lang.RuntimeException", "[HUDIOP-PARTITION] partition b"),
    ]
    assert classify_causes(chain) is FailureClass.PARTITION_NOT_DECLARED


def test_a_job_without_declared_partitions_may_write_any() -> None:
    assert Job.from_json(JOB).partitions == ()
    assert Job.from_json({**JOB, "partitions": ["a*"]}).partitions == ("a*",)
