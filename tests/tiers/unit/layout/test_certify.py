"""What decides about a version of Hudi or Spark is all that the code rests on, and can be run."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pyspark
import pytest

from tests.campaigns.certify import __main__ as command
from tests.campaigns.certify import candidate, decisions, page, run
from tests.campaigns.certify.candidate import CannotBeHadError, Versions
from tests.support import ROOT, evidence
from tests.support.evidence import faults

LISTED = decisions.decisions()
SPARK = sorted((Path(pyspark.__file__).parent / "jars").glob("spark-*.jar"))


def test_each_class_that_the_code_names_is_decided_once() -> None:
    names = list(LISTED.classes)
    assert sorted(names) == sorted(set(names)), "named twice"
    used = decisions.used()
    assert {name: sorted(used[name]) for name in used.keys() - set(names)} == {}, "say in decides.yaml what decides"
    assert sorted(set(names) - used.keys()) == [], "nothing names them any more"
    assert len(names) > 250


def test_each_method_that_is_called_by_name_is_decided() -> None:
    listed = [name for one in LISTED.decisions for name in one.methods]
    found = decisions.reflected()
    assert {name: sorted(found[name]) for name in found.keys() - set(listed)} == {}
    assert set(listed) == found.keys()


def test_each_test_of_the_list_is_there() -> None:
    for one in LISTED.decisions:
        assert len(one.files) == len(set(one.files)) >= 1, one.name
    assert sum(len(files) for files in LISTED.files().values()) > 90
    assert {"java", "unit", "hudi", "e2e"} == set(LISTED.files())
    with pytest.raises(ValueError, match="names no test, not one file"):
        decisions.file_of("tests/tiers/hudi/test_gone.py")


def test_a_new_use_is_found_wherever_it_stands(tmp_path: Path) -> None:
    for folder in decisions.CODE:
        (tmp_path / folder).mkdir(parents=True)
    java, python = (tmp_path / folder for folder in decisions.CODE[:2])
    (java / "A.java").write_text(
        "import static org.apache.hudi.a.B.c;\nclass A { Object o = org.apache.spark.sql.D$.MODULE$; "
        'Object m = o.getClass().getMethod(\n "hidden").invoke(o); }'
    )
    (python / "b.py").write_text('jvm.org.apache.hudi.E.of()\nNAME = "org.apache.spark.util.F"\n')
    assert set(decisions.used(tmp_path)) == {
        "org.apache.hudi.a.B",
        "org.apache.spark.sql.D",
        "org.apache.hudi.E",
        "org.apache.spark.util.F",
    }
    assert set(decisions.reflected(tmp_path)) == {"hidden"}


def test_spark_has_the_classes_and_marks_the_public_ones() -> None:
    """Hudi's are looked for by `make certify`: this tier has no jar of it."""
    here = [name for name in LISTED.classes if name.startswith("org.apache.spark.")]
    of_others = re.compile(
        r"org\.apache\.spark\.(sql\.hudi\.|sql\.kafka010\.|HoodieSpark|sql\.catalyst\.catalog\.Hoodie)"
    )
    assert decisions.missing([name for name in here if not of_others.match(name)], SPARK) == []
    assert decisions.unmarked(LISTED.public, SPARK) == []
    assert decisions.unmarked(["org.apache.spark.sql.execution.SparkPlan"], SPARK) != []


def test_what_a_jar_lacks_is_named(tmp_path: Path) -> None:
    jar = tmp_path / "hudi.jar"
    with zipfile.ZipFile(jar, "w") as made:
        made.writestr("org/apache/hudi/There.class", b"")
        made.writestr("org/apache/hudi/Scala$.class", b"")
    names = ["org.apache.hudi.There", "org.apache.hudi.Scala", "org.apache.hudi.Gone"]
    assert decisions.missing(names, [jar]) == ["org.apache.hudi.Gone"]


def copy(folder: Path) -> Path:
    for name in {path for _, path, _ in candidate.PLACES}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def test_versions_are_changed_wherever_a_build_reads_them(tmp_path: Path) -> None:
    root = copy(tmp_path)
    before = candidate.pinned()
    candidate.change(root, Versions("1.2.77", "3.5.77"))
    assert candidate.pinned(root) == Versions("1.2.77", "3.5.77")
    for name in (
        "spark-images/jars/pom.xml",
        "spark-images/etcd-lock/pom.xml",
        "tests/support/harness/class_archive.py",
    ):
        text = (root / name).read_text()
        assert before.spark not in text, name
        assert not re.search(rf"hudi\S*{re.escape(before.hudi)}", text), name
    candidate.change(root, before)
    assert all((root / name).read_text() == (ROOT / name).read_text() for _, name, _ in candidate.PLACES)


def test_places_that_differ_are_named(tmp_path: Path) -> None:
    root = copy(tmp_path)
    pins = root / "requirements-dev.txt"
    pins.write_text(re.sub(r"^pyspark==.*$", "pyspark==3.5.1", pins.read_text(), flags=re.MULTILINE))
    with pytest.raises(ValueError, match=r"spark.*3\.5\.1"):
        candidate.pinned(root)


def test_no_other_module_names_the_bundle() -> None:
    """It would be another version's in a candidate."""
    name = re.compile(r"hudi-spark[0-9.]+-bundle_[0-9.]+-\d")
    found = {
        str(path.relative_to(ROOT))
        for folder in ("tests", "demo", "hack/images", "hack/build")
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(__file__) and name.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"tests/support/harness/class_archive.py"}


@pytest.mark.parametrize(
    ("hudi", "spark", "said"),
    [
        ("1.2", "", r"HUDI='1\.2': must be a release, MAJOR\.MINOR\.PATCH"),
        ("1.2.0; rm -rf /", "", "HUDI="),
        ("", "latest", "SPARK='latest'"),
        ("", "4.0.1", r"SPARK=4\.0\.1: must be a release 3\.5\.x"),
        ("1.2.1", "3.4.4", r"SPARK=3\.4\.4: must be a release 3\.5\.x"),
    ],
)
def test_what_is_no_version_of_this_line_is_refused(hudi: str, spark: str, said: str) -> None:
    with pytest.raises(CannotBeHadError, match=said):
        candidate.wanted(hudi, spark)


def test_without_versions_it_is_those_of_the_checkout() -> None:
    assert candidate.wanted("", "") == candidate.pinned()
    assert candidate.wanted("1.2.9", "") == Versions("1.2.9", candidate.pinned().spark)


def test_a_version_that_cannot_be_had_is_told_from_a_registry_that_does_not_answer() -> None:
    """Texts as Maven 3.8 and pip 23 print them."""
    versions = Versions("1.2.99", "3.5.9")
    maven = (
        "[ERROR] Failed to execute goal on project spark-image-jars: Could not resolve dependencies for project "
        "org.hudi-operator:spark-image-jars:pom:1: Could not find artifact "
        "org.apache.hudi:hudi-spark3.5-bundle_2.12:jar:1.2.99 in central (https://example.com/maven) -> [Help 1]"
    )
    assert candidate.refusal(versions, "hack/jars/fetch-jars", maven) == (
        "HUDI=1.2.99 SPARK=3.5.9: Maven has no org.apache.hudi:hudi-spark3.5-bundle_2.12:jar:1.2.99"
    )
    pip = "ERROR: No matching distribution found for pyspark==3.5.99\n"
    assert candidate.refusal(Versions("1.2.0", "3.5.99"), "hack/setup/venv", pip).endswith("pip has no pyspark==3.5.99")
    away = candidate.refusal(versions, "hack/jars/fetch-jars", "[ERROR] Connect to example.com:443 failed: timed out")
    assert "is not known" in away
    assert "timed out" in away


def test_only_jars_of_hudi_and_spark_may_differ() -> None:
    before = "a  hudi-spark3.5-bundle_2.12-1.2.0.jar\nb  spark-avro_2.12-3.5.9.jar\nc  hadoop-aws-3.3.4.jar\n"
    after = "x  hudi-spark3.5-bundle_2.12-1.2.1.jar\ny  spark-avro_2.12-3.5.10.jar\nc  hadoop-aws-3.3.4.jar\n"
    assert candidate.others(before, after) == []
    assert candidate.others(before, after.replace("c  ", "d  ")) == ["hadoop-aws-3.3.4.jar"]
    assert candidate.others(before, after + "e  one-more.jar\n") == ["one-more.jar"]


def test_a_result_without_a_report_is_a_failure(tmp_path: Path) -> None:
    file = "tests/tiers/hudi/test_unique.py"
    assert run.said(file, "hudi", [])["outcome"] == run.FAILED
    report = tmp_path / "a.xml"
    case = '<testcase classname="tests.tiers.hudi.test_unique" name="{}" time="1">{}</testcase>'
    report.write_text(f"<testsuites>{case.format('test_a', '')}</testsuites>")
    assert run.said(file, "hudi", [report]) == {"outcome": run.PASSED, "tests": 1, "seconds": 1.0}
    report.write_text(f"<testsuites>{case.format('test_a', '')}{case.format('test_b', '<skipped/>')}</testsuites>")
    assert run.said(file, "hudi", [report])["failed"] == ["test_b"], "a skipped test counts as failed"


def whole(commit: str, outcome: str = run.PASSED) -> dict[str, object]:
    stamp = {"commit": commit, "at": "2030-01-01T00:00Z"}
    files = [file for found in LISTED.files().values() for file in found]
    return {
        "tests": {file: {"outcome": outcome, "tests": 1, "seconds": 1.0, **stamp} for file in files},
        "classes": {"missing": [], "unmarked": [], "looked": 9, **stamp},
    }


def test_a_version_has_passed_when_all_of_it_has_on_one_commit() -> None:
    assert page.verdict(whole("abc"), LISTED) == "**passed**"
    assert page.verdict(whole("abc+"), LISTED) == "incomplete"
    assert page.verdict(whole("abc") | {"classes": whole("def")["classes"]}, LISTED) == "incomplete"
    assert page.verdict({"tests": whole("abc")["tests"]}, LISTED) == "incomplete"
    assert page.verdict({}, LISTED) == "incomplete"
    assert page.verdict(whole("abc", run.FAILED), LISTED) == "**failed**"
    gone = whole("abc")
    gone["classes"] = {**gone["classes"], "missing": ["org.apache.hudi.Gone"]}  # type: ignore[dict-item]
    assert page.verdict(gone, LISTED) == "**failed**"
    less = whole("abc")
    less["tests"] = dict(list(less["tests"].items())[1:])  # type: ignore[attr-defined]
    assert page.verdict(less, LISTED) == "incomplete"


def test_a_page_of_runs_says_what_it_stands_on() -> None:
    made = page.page([(Versions("1.2.0", "3.5.9"), whole(evidence.commit().rstrip("+")))])
    assert faults(made) == []
    assert "| 1.2.0 | 3.5.9 | **passed** |" in made


def test_a_file_that_has_passed_on_this_commit_is_not_run_again() -> None:
    said = {"commit": "abc", "outcome": run.PASSED}
    assert run.passed(said, "abc")
    assert not run.passed(said, "def")
    assert not run.passed(said | {"commit": "abc+"}, "abc+")
    assert not run.passed(said | {"outcome": run.FAILED}, "abc")
    assert not run.passed(None, "abc")


def test_the_command_says_what_it_would_run_and_refuses_what_it_cannot(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list", "--only", "merging"]) == 0
    assert capsys.readouterr().out == "hudi tests/tiers/hudi/test_merging.py\n"
    assert command.main(["--spark", "4.0.1", "--only", "merging"]) == 2
    assert "SPARK=4.0.1" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["--only", "nothing-of-the-kind"])
    assert "no decision and no test" in capsys.readouterr().err


def test_results_are_of_the_versions_that_they_are_named_for() -> None:
    for versions, result in page.results():
        assert (result["hudi"], result["spark"]) == (versions.hudi, versions.spark)
        assert json.loads(run.path(versions).read_text()) == result
