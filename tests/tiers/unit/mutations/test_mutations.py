"""The list of mutations fits the code as it is, and stands for every rule; the runner tells caught from survived and from broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.mutations import judges
from tests.campaigns.mutations.campaign import own_key, verdict
from tests.campaigns.mutations.lists import CONTROLS, MUTATIONS, NO_PLACE
from tests.campaigns.mutations.mutation import (
    AVAILABILITY,
    FINDINGS,
    INVARIANTS,
    JAVA_TESTS,
    REQUIRED,
    Drifted,
    Edit,
    missing_tests,
    mutated,
    mutation,
    of,
    sources,
)

EVERY = (*MUTATIONS, *(control for control, _ in CONTROLS))
IDS = [one.id for one in EVERY]


def test_every_mutation_still_changes_the_code_in_one_place() -> None:
    """A mutation that drifted is brought up to date with the code: see the file of tests/campaigns/mutations that has its name."""
    drifted = []
    for one in EVERY:
        try:
            sources(one)
        except Drifted as error:
            drifted.append(str(error))
    assert not drifted, "\n".join(drifted)


def test_every_test_that_is_named_exists() -> None:
    assert not {one.id: missing for one in EVERY if (missing := missing_tests(one.tests)) or not one.tests}


def test_every_rule_has_a_mutation_that_must_be_caught() -> None:
    known = {*INVARIANTS, *FINDINGS}
    assert not {one.id: one.breaks for one in MUTATIONS if not one.breaks or not set(one.breaks) <= {*known, AVAILABILITY}}
    missing = {rule for rule in known if not of(rule, MUTATIONS)}
    assert not missing & set(REQUIRED)
    assert missing == set(NO_PLACE), "a finding without a mutation has a reason"


def test_names_are_unique_and_redundant_ones_have_their_pair() -> None:
    assert len(set(IDS)) == len(IDS)
    known = {one.id: one for one in MUTATIONS}
    for one in MUTATIONS:
        assert bool(one.redundant) == bool(one.pair), one.id
        if one.redundant:
            pair = known[one.pair]
            assert not pair.redundant
            assert set(one.edits) < set(pair.edits), f"{pair.id} takes out what {one.id} takes out, and the other check"
            assert one.tests == pair.tests


def test_mutations_change_the_product_only() -> None:
    for one in EVERY:
        for file in one.files:
            assert file.startswith(("operator/hudi_contract/", "operator/hudi_operator/", "spark-images/hudi_runtime/", "spark-images/etcd-lock/src/main/")), (
                one.id
            )


def test_a_text_that_is_not_there_or_twice_is_an_error_that_names_the_mutation() -> None:
    for text in ("nothing", "old old"):
        with pytest.raises(Drifted, match=r"mutation m: its text \(old \.\.\.\) stands [02] times in f"):
            mutated(text, Edit("f", "old", "new"), "m")
    with pytest.raises(Drifted, match="changes nothing"):
        mutated("old", Edit("f", "old", "old"), "m")
    assert mutated("an old text", Edit("f", "old", "new"), "m") == "an new text"


A, B = "tests/tiers/unit/model/test_x.py::test_a", "tests/tiers/unit/model/test_x.py::test_b"
PYTEST = '<testsuites><testsuite><testcase classname="tests.tiers.unit.model.test_x" name="test_a[1]"/>{}</testsuite></testsuites>'
BAD = '<testcase classname="tests.tiers.unit.model.test_x" name="{}"><{} message="{}"/></testcase>'


@pytest.mark.parametrize(
    ("cases", "outcome"),
    [
        (BAD.format("test_a[2]", "failure", "AssertionError: no") + BAD.format("test_b", "failure", "Failed: DID NOT RAISE"), "caught"),
        (BAD.format("test_a[2]", "failure", "AssertionError: no") + BAD.format("test_b", "failure", "NameError: x"), "invalid"),
        (BAD.format("test_a[2]", "failure", "AssertionError: no") + BAD.format("test_b", "error", "fixture"), "invalid"),
        (BAD.format("test_b", "failure", "AssertionError: no"), "survived"),
        ('<testcase classname="tests.tiers.unit.model.test_x" name="test_b"/>', "survived"),
        ('<testcase classname="tests.tiers.unit.model.test_x" name="test_b"><skipped message="why"/></testcase>', "survived"),
        (
            BAD.format("tests.tiers.unit.model.test_x", "error", "SyntaxError: invalid").replace(
                'classname="tests.tiers.unit.model.test_x" name', 'classname="" name'
            ),
            "survived",
        ),
    ],
)
def test_reports_of_pytest(tmp_path: Path, cases: str, outcome: str) -> None:
    report = tmp_path / "r.xml"
    report.write_text(PYTEST.format(cases))
    seen = judges.python_seen([A, B], report)
    assert verdict(mutation("m", "I1", "x", Edit("f", "a", "b"), A, B), seen, 1.0).outcome == outcome


J = f"{JAVA_TESTS}/ATest.java"


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("x#does\tFAILED\torg.opentest4j.AssertionFailedError: no", "caught"),
        ("x#does\tFAILED\torg.apache.hudi.exception.HoodieException: no", "caught"),
        ("x#does\tFAILED\tjava.lang.NoSuchMethodError: no", "invalid"),
        ("\tFAILED\tjava.lang.IllegalStateException: no etcd", "invalid"),
        ("x#does\tABORTED\tassumption", "invalid"),
        ("", "invalid"),
        ("x#does\tSUCCESSFUL\t", "survived"),
        ("x#does\tSUCCESSFUL\t\nNAMED\tx#does\tFAILED\torg.opentest4j.AssertionFailedError: the second of its parameters", "caught"),
    ],
)
def test_what_the_java_tests_say(said: str, outcome: str) -> None:
    seen = judges.java_seen({"x#does": f"{J}::does"}, f"PROTOCOL {{}}\nNAMED\t{said}\n" if said else "PROTOCOL {}\n")
    if not seen.passed and not seen.failed and not seen.invalid:
        seen.invalid = "was not run"  # as judges.run says it
    assert verdict(mutation("m", "I1", "x", Edit("f", "a", "b"), f"{J}::does"), seen, 1.0).outcome == outcome


def test_tiers() -> None:
    assert [judges.tier(test) for test in (A, f"{J}::does", "tests/tiers/hudi/test_x.py::t")] == ["unit", "java", "hudi"]


def test_an_outcome_depends_on_what_its_tests_share_with_others(tmp_path: Path) -> None:
    """Also on what that imports in its turn, and on the fixtures of the folder; not on what none of them uses."""
    texts = {
        "tests/tiers/unit/a/test_x.py": "from tests.support.world.near import thing\n",
        "tests/tiers/unit/a/conftest.py": "",
        "tests/support/world/near.py": "from tests.support.world import far\n",
        "tests/support/world/far.py": "",
        "tests/support/world/other.py": "",
        "operator/x.py": "a = 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    one = mutation("x", "I1", "says", Edit("operator/x.py", "a", "b"), "tests/tiers/unit/a/test_x.py::test_y")
    before = own_key(one, list(texts), tmp_path)

    def changed(name: str) -> bool:
        (tmp_path / name).write_text(f"{texts[name]}# more\n")
        found = own_key(one, list(texts), tmp_path)
        (tmp_path / name).write_text(texts[name])
        return found != before

    assert {name for name in texts if not changed(name)} == {"tests/support/world/other.py"}
