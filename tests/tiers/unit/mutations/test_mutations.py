"""The list of mutations fits the code as it is, and stands for every rule.

The runner tells caught from survived and from broken.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.campaigns.mutations import campaign, judges, page
from tests.campaigns.mutations.campaign import own_key, verdict
from tests.campaigns.mutations.lists import CONTROLS, MUTATIONS, NO_PLACE
from tests.campaigns.mutations.mutation import (
    FINDINGS,
    INVARIANTS,
    JAVA_TESTS,
    REQUIRED,
    UNNUMBERED,
    Drifted,
    Edit,
    missing_tests,
    mutated,
    mutation,
    of,
    sources,
)
from tests.campaigns.mutations.place import Place
from tests.campaigns.mutations.substance import substance

EVERY = (*MUTATIONS, *(control for control, _ in CONTROLS))
IDS = [one.id for one in EVERY]


def test_every_mutation_still_changes_the_code_in_one_place() -> None:
    """A mutation that drifted is brought up to date with the code: see the file of
    tests/campaigns/mutations that has its name.
    """
    drifted = []
    for one in EVERY:
        try:
            sources(one)
        except Drifted as error:
            drifted.append(str(error))
    assert not drifted, "\n".join(drifted)


def test_every_mutation_of_python_is_still_python() -> None:
    """What cannot be compiled fails every test, so it proves nothing.

    One control is like that on purpose.
    """
    broken = set()
    for one in EVERY:
        for file, text in sources(one).items():
            try:
                ast.parse(text if file.endswith(".py") else "")
            except SyntaxError:
                broken.add(one.id)
    assert broken == {"control-syntax-error"}


def test_every_test_that_is_named_exists() -> None:
    assert not {one.id: missing for one in EVERY if (missing := missing_tests(one.tests)) or not one.tests}


def test_every_rule_has_a_mutation_that_must_be_caught() -> None:
    known = {*INVARIANTS, *FINDINGS}
    assert not {
        one.id: one.breaks for one in MUTATIONS if not one.breaks or not set(one.breaks) <= {*known, *UNNUMBERED}
    }
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
            assert file.startswith(
                (
                    "operator/hudi_console/",
                    "operator/hudi_contract/",
                    "operator/hudi_kubectl/",
                    "operator/hudi_operator/",
                    "gateway/",
                    "spark-images/hudi_runtime/",
                    "spark-images/entrypoint.py",
                    "spark-images/Dockerfile",
                    "spark-images/etcd-lock/src/main/",
                    "charts/hudi-operator/templates/",
                    "Dockerfile",
                )
            ), one.id


def test_a_text_that_is_not_there_or_twice_is_an_error_that_names_the_mutation() -> None:
    for text in ("nothing", "old old"):
        with pytest.raises(Drifted, match=r"mutation m: its text \(old \.\.\.\) stands [02] times in f"):
            mutated(text, Edit("f", "old", "new"), "m")
    with pytest.raises(Drifted, match="changes nothing"):
        mutated("old", Edit("f", "old", "old"), "m")
    assert mutated("an old text", Edit("f", "old", "new"), "m") == "an new text"


A, B = "tests/tiers/unit/model/test_x.py::test_a", "tests/tiers/unit/model/test_x.py::test_b"
PYTEST = (
    '<testsuites><testsuite><testcase classname="tests.tiers.unit.model.test_x" '
    'name="test_a[1]"/>{}</testsuite></testsuites>'
)
BAD = '<testcase classname="tests.tiers.unit.model.test_x" name="{}"><{} message="{}"/></testcase>'


@pytest.mark.parametrize(
    ("cases", "outcome"),
    [
        (
            BAD.format("test_a[2]", "failure", "AssertionError: no")
            + BAD.format("test_b", "failure", "Failed: DID NOT RAISE"),
            "caught",
        ),
        (
            BAD.format("test_a[2]", "failure", "AssertionError: no") + BAD.format("test_b", "failure", "NameError: x"),
            "invalid",
        ),
        (
            BAD.format("test_a[2]", "failure", "AssertionError: no") + BAD.format("test_b", "error", "fixture"),
            "invalid",
        ),
        (BAD.format("test_b", "failure", "AssertionError: no"), "survived"),
        (
            BAD.format("test_a[2]", "failure", "AssertionError: no")
            + BAD.format("test_b", "failure", "Failed: Timeout (&gt;10.0s) from pytest-timeout."),
            "no end",
        ),
        (
            BAD.format("test_a[2]", "failure", "AssertionError: no")
            + BAD.format("test_b", "failure", "Failed: Timeout &gt;10.0s")
            + BAD.format("test_b[2]", "failure", "AssertionError: no"),
            "caught",
        ),
        ('<testcase classname="tests.tiers.unit.model.test_x" name="test_b"/>', "survived"),
        (
            '<testcase classname="tests.tiers.unit.model.test_x" name="test_b"><skipped message="why"/></testcase>',
            "survived",
        ),
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
        ("x#does\tFAILED\tjava.util.concurrent.TimeoutException: does() timed out after 10 seconds", "no end"),
        ("x#does\tFAILED\torg.apache.hudi.TimeoutException: no lock", "caught"),
        ("x#does\tSUCCESSFUL\t", "survived"),
        (
            (
                "x#does\tSUCCESSFUL\t\n"
                "NAMED\tx#does\tFAILED\torg.opentest4j.AssertionFailedError: the second of its parameters"
            ),
            "caught",
        ),
    ],
)
def test_what_the_java_tests_say(said: str, outcome: str) -> None:
    seen = judges.java_seen({"x#does": f"{J}::does"}, f"PROTOCOL {{}}\nNAMED\t{said}\n" if said else "PROTOCOL {}\n")
    if not seen.passed and not seen.failed and not seen.invalid:
        seen.invalid = "was not run"  # as judges.run says it
    assert verdict(mutation("m", "I1", "x", Edit("f", "a", "b"), f"{J}::does"), seen, 1.0).outcome == outcome


def test_tests_that_the_runner_ends_have_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not invalid: the code runs."""
    monkeypatch.setattr(judges, "_command", lambda *_: 124)
    seen = judges.run([A, B], tmp_path, tmp_path)
    found = verdict(mutation("m", "I1", "x", Edit("f", "a", "b"), A, B), seen, 1.0)
    assert (found.outcome, found.told[A]) == ("no end", "no end after 130 s")


@pytest.mark.parametrize(
    ("kept", "outcome"),
    [
        ({"outcome": "invalid", "told": "no end after 120 s"}, "no end"),
        ({"outcome": "caught", "told": "test_a[a-b: c]: Failed: Timeout (>10.0s) from pytest-timeout."}, "no end"),
        ({"outcome": "invalid", "told": "does not compile: a"}, "invalid"),
        ({"outcome": "caught", "told": "test_a: assert 'Timeout >' in 'no end after 3 s'"}, "caught"),
        ({"outcome": "survived", "told": "passes", "tests": [A]}, "survived"),
        ({"outcome": "survived", "told": "passes", "tests": [B]}, None),
    ],
)
def test_what_is_stored(kept: dict[str, object], outcome: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outcome that was stored when there was no such word, and one by other tests than those of
    today.
    """
    monkeypatch.setattr(campaign, "_outcomes", lambda _: {"m": kept})
    found = campaign.stored(mutation("m", "I1", "x", Edit("f", "a", "b"), A))
    assert (found or {}).get("outcome") == outcome


def test_tiers() -> None:
    assert [judges.tier(test) for test in (A, f"{J}::does", "tests/tiers/hudi/test_x.py::t")] == [
        "unit",
        "java",
        "hudi",
    ]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    texts = {
        "tests/tiers/unit/a/test_x.py": (
            "from tests.support.world.near import thing\n"
            "LIMIT = 1\n"
            "def test_y():\n"
            '    "says"\n'
            "    assert 1\n"
            "def test_z(): pass\n"
        ),
        "tests/tiers/unit/a/conftest.py": "",
        "tests/support/world/near.py": "from tests.support.world import far\n",
        "tests/support/world/far.py": "",
        "tests/support/world/other.py": "",
        "operator/x.py": "a = 1  # one\n",
    }
    return Checkout(tmp_path, texts)


class Checkout:
    """Some files, and whether a change of one of them makes an outcome one of earlier code."""

    def __init__(self, folder: Path, texts: dict[str, str]) -> None:
        self.folder, self.texts = folder, texts
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def key(self) -> str:
        one = mutation(
            "x", "I1", "says", Edit("operator/x.py", "a = 1", "a = 2"), "tests/tiers/unit/a/test_x.py::test_y"
        )
        return own_key(one, list(self.texts), self.folder)

    def differs(self, name: str, old: str, new: str) -> bool:
        before = self.key()
        (self.folder / name).write_text(self.texts[name].replace(old, new) if old else self.texts[name] + new)
        found = self.key()
        (self.folder / name).write_text(self.texts[name])
        return found != before


def test_an_outcome_depends_on_what_its_tests_share_with_others(checkout: Checkout) -> None:
    """Also on what that imports in its turn, and on the fixtures of the folder.

    Not on what none of them uses.
    """
    assert {name for name in checkout.texts if not checkout.differs(name, "", "more = 1\n")} == {
        "tests/support/world/other.py"
    }


def test_an_outcome_depends_on_the_substance_alone(checkout: Checkout) -> None:
    """Comments, docstrings, blanks, and tests that it does not name do not make it one of earlier
    code; what its test does, and what that uses, do.
    """
    test = "tests/tiers/unit/a/test_x.py"
    assert not checkout.differs("operator/x.py", "# one", "# two")
    assert not checkout.differs("operator/x.py", "a = 1  ", "a = 1 ")
    assert not checkout.differs(test, "says", "says more")
    assert not checkout.differs(test, "test_z(): pass", "test_z(): assert 0")
    assert checkout.differs(test, "assert 1", "assert 2")
    assert checkout.differs(test, "LIMIT = 1", "LIMIT = 2")
    assert checkout.differs(test, "def test_z", "def helper")
    assert checkout.differs(test, "assert 1", "assert 1 or test_z()"), "a test that another one calls counts as well"


def test_the_substance_of_java_is_without_comments() -> None:
    one = 'class A { /* x */ String s = "a // b";  // c\n char c = \'"\'; }'
    assert substance("A.java", one) == substance(
        "A.java", one.replace("// c", "// d").replace("/* x */", "/* y\n */").replace(";  ", ";\n\n")
    )
    assert substance("A.java", one) != substance("A.java", one.replace("a // b", "a // c"))
    wrapped = 'class A {\n  String s =\n          "a // b"; // c\n  char c\n      = \'"\';\n}\n'
    assert substance("A.java", one) == substance("A.java", wrapped), "a formatter changes no outcome"
    assert substance("A.java", "int ab = a + b;") != substance("A.java", "int a b = a + b;")
    assert substance("A.java", one) != substance("A.java", one.replace("'\"'", "'x'"))
    text = 'class A { String s = """\n  "quoted" // text\n  """; }'
    assert substance("A.java", text) != substance("A.java", text.replace("// text", "// other"))


def test_what_is_no_python_is_its_text() -> None:
    assert substance("a.py", "a = (") == "a = ("


def test_every_tier_has_its_lane_and_its_time() -> None:
    assert (
        sorted(tier for lane in judges.LANES for tier in lane)
        == sorted(judges.TIERS)
        == sorted(judges.SECONDS)
        == sorted(judges.EACH)
    )
    assert {judges.tier(test) for one in EVERY for test in one.tests} <= set(judges.TIERS)


def test_tests_without_a_mutation_are_run_by_what_they_set_up() -> None:
    """A file of the hudi tier has its own servers and takes minutes: all of them at once would not
    end within one limit.
    """
    c, d, e = (f"tests/tiers/hudi/{name}" for name in ("test_c.py::t", "test_d.py::t", "test_d.py::u"))
    assert judges.batches([e, c, d, B, A, f"{J}::does"]) == [[A, B], [f"{J}::does"], [c], [d, e]]


def test_a_test_that_fails_anyhow_judges_none_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the two mutations one is judged by a test that fails without it.

    Only the tiers of the lane are judged.
    """
    good, bad = mutation("good", "I1", "x", Edit("f", "a", "b"), A), mutation("bad", "I1", "x", Edit("f", "a", "b"), B)
    dear = mutation("dear", "I1", "x", Edit("f", "a", "b"), A, f"{J}::does")
    mutated_now: list[str] = []

    def run(tests: list[str], place: Path, scratch: Path, changed: tuple[str, ...] = ()) -> judges.Seen:
        failed = {test: "AssertionError: no" for test in tests if changed or test == B}
        return judges.Seen(passed=set(tests) - set(failed), failed=failed)

    monkeypatch.setattr(campaign, "OUT", tmp_path)
    monkeypatch.setattr(campaign, "RESULTS", tmp_path / "mutations.json")
    monkeypatch.setattr(campaign, "own_key", lambda *_: "key")
    monkeypatch.setattr(campaign.judges, "run", run)
    monkeypatch.setattr(Place, "refresh", lambda _: None)
    monkeypatch.setattr(Place, "apply", lambda _, one: mutated_now.append(one.id))
    monkeypatch.setattr(Place, "restore", lambda _: None)
    one = campaign.Campaign([(good, "caught"), (bad, "caught"), (dear, "caught")], tiers=("unit", "model"))
    assert not one.run()
    assert mutated_now == ["good"]
    assert "bad: not judged" in capsys.readouterr().out
    assert (one.result(good) or {})["outcome"] == "caught"
    assert one.result(bad) is None
    assert campaign.dearest(dear) == "java"
    assert one.result(dear) is None


def test_the_jar_of_one_mutation_judges_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of the hudi tier load the jar, which is built from the sources of the copy."""
    test = "tests/tiers/hudi/test_x.py::t"
    java, python, again = (
        mutation(name, "I1", "x", Edit(file, "a", "b"), test)
        for name, file in (("java", "A.java"), ("python", "a.py"), ("again", "b.py"))
    )
    now: list[str] = []
    built: list[str] = []

    def run(tests: list[str], *_: object) -> judges.Seen:
        return judges.Seen(failed=dict.fromkeys(tests, "AssertionError: no"))

    monkeypatch.setattr(campaign, "RESULTS", tmp_path / "mutations.json")
    monkeypatch.setattr(campaign, "OUT", tmp_path)
    monkeypatch.setattr(campaign, "own_key", lambda *_: "key")
    monkeypatch.setattr(campaign.judges, "run", run)
    monkeypatch.setattr(campaign.judges, "build", lambda *_, **__: built.append(now[-1]) or "")
    monkeypatch.setattr(Place, "apply", lambda _, one: now.append(one.id))
    monkeypatch.setattr(Place, "restore", lambda _: None)
    one = campaign.Campaign([])
    for each in (python, java, python, again, java):
        one._judge(each)
    assert built == ["java", "python", "java"]


def test_a_rule_says_which_of_its_mutations_were_not_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, never = [mutation for mutation in of("I1", MUTATIONS) if not mutation.redundant][:3]
    outcomes = {one.id: campaign.SURVIVED, other.id: campaign.INVALID, never.id: None}
    monkeypatch.setattr(
        page, "stored", lambda asked: (word := outcomes.get(asked.id, campaign.CAUGHT)) and {"outcome": word}
    )
    (row,) = [line for line in page._rules() if line.startswith("| I1 |")]
    all_ = len(of("I1", MUTATIONS))
    assert row.startswith(f"| I1 | {all_ - 3} of {all_} | ")
    assert f"`{one.id}` (**survived**)" in row
    assert f"`{other.id}` (**invalid**)" in row
    assert f"`{never.id}` (**not run**)" in row
