"""Pages of reference are what CRDs, chart and code say now."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hack.sbom import licences

from tests.campaigns.pages import api, chart_values, conditions, findings
from tests.support import ROOT, crds

LIST = ROOT / "tests/tiers/unit/contract/public-names.txt"
PAGES: dict[str, tuple[Path, Callable[[], str]]] = {
    **{f"api {plural}": (api.page_of(plural), lambda plural=plural: api.page(plural)) for plural in api.KINDS},
    "conditions": (conditions.PAGE, conditions.page),
    "findings": (findings.PAGE, findings.page),
    "chart_values": (chart_values.PAGE, chart_values.page),
    "chart_values of the packaged chart": (chart_values.README, chart_values.readme),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_current(name: str) -> None:
    path, made = PAGES[name]
    assert path.read_text(encoding="utf-8") == made(), f"run python -m tests.campaigns.pages.{name.split()[0]}"


def listed(title: str) -> list[str]:
    """Lines of one section of the list of public names."""
    text = LIST.read_text()
    return re.split(r"^# .*\n", text[text.index(f"# {title}\n") :], flags=re.MULTILINE)[1].split("\n")


@pytest.mark.parametrize("plural", api.KINDS)
def test_every_field_and_rule_is_on_the_page_of_its_kind(plural: str) -> None:
    """Each field once below its object; each rule with its message."""
    text = api.page(plural)
    sections = {part.partition("\n")[0]: part for part in re.split(r"^###? ", text, flags=re.MULTILINE)[1:]}
    count = 0
    for part in ("spec", "status"):
        for path, _ in crds.fields(crds.schema(plural, part), part):
            place, _, name = path.rpartition(".")
            if name.endswith(("[]", "{}")):
                continue  # described with their list or map
            count += 1
            assert re.search(rf"^\* \*\*`{re.escape(name)}`\*\*\s+\(", sections[place], re.MULTILINE), path
    assert count > 300

    def rules(schema: object) -> list[str]:
        if isinstance(schema, list):
            return [one for part in schema for one in rules(part)]
        if not isinstance(schema, dict):
            return []
        own = [" ".join(one["rule"].split()) for one in schema.get(api.RULES, []) if isinstance(one, dict)]
        return own + [one for part in schema.values() for one in rules(part)]

    (version,) = crds.crd(plural)["spec"]["versions"]
    wanted = rules(version["schema"]["openAPIV3Schema"])
    assert len(wanted) > 50
    assert [rule for rule in wanted if f"({api.code(rule)})" not in text] == []


def test_a_message_shows_what_is_filled_in() -> None:
    assert api.message({"message": "a * b"}) == r"a \* b"
    assert api.message({"messageExpression": "\"n '%s' is 5%%\".format([self])"}) == "n '…' is 5%"
    assert api.message({"messageExpression": "self.a + 'x'"}) == "`self.a + 'x'`"


def test_a_keyword_that_the_page_does_not_show_is_found() -> None:
    with pytest.raises(ValueError, match=r"spec\.a: the page does not know \['not'\]"):
        list(api.objects({"properties": {"a": {"type": "string", "not": {}}}}, "spec"))


def test_every_value_of_the_chart_is_on_its_page() -> None:
    text = chart_values.page()
    values = [line for line in listed("Values of the chart") if line]
    assert len(values) > 100
    shown = set(re.findall(r"^\* \*\*`([^`]+)`", text, re.MULTILINE))
    assert [value for value in values if value not in shown and value.rpartition(".")[0] not in shown] == []


def test_types_of_conditions_are_those_that_the_crds_name() -> None:
    for plural, kind in api.KINDS.items():
        described = crds.schema(plural, "status")["properties"]["conditions"]["description"]
        assert [type_ for type_ in conditions.TYPES[kind] if not re.search(rf"\b{type_}\b", described)] == [], kind


def test_a_condition_or_event_that_nobody_describes_is_found(tmp_path: Path) -> None:
    module = tmp_path / "plan.py"
    module.write_text(
        'KIND = "Fresh"\n\n\ndef one(view):\n    why = "Old" if view.old else "New"\n'
        '    emit("Warning", "Spoiled", view.text)\n    return condition(KIND, False, why if view else "Odd")\n'
    )
    parsed = conditions.Module(module)
    reader = conditions.Reader({"plan.py": parsed})
    ((_, call, function),) = [each for each in conditions.calls(parsed) if each[0] == "condition"]
    assert reader.words(call.args[0], parsed, function) == {"Fresh"}
    assert reader.words(call.args[2], parsed, function) == {"Old", "New", "Odd"}
    ((_, emitted, _),) = [each for each in conditions.calls(parsed) if each[0] == "emit"]
    assert conditions._event(reader, parsed, emitted.args) == {("Warning", "Spoiled")}
    with pytest.raises(ValueError, match=r"not described here: \['Fresh'\]; not in the code: \['Ready'\]"):
        conditions.checked("conditions of HudiTable", {"Fresh"}, {"Ready"})


def test_reasons_that_a_person_must_act_on_are_in_operations() -> None:
    """Of Stalled and of Ready of a table: what to do stands beside the meaning."""
    text = (ROOT / "docs/operate/operations.md").read_text(encoding="utf-8")
    table = text[text.index("| condition | meaning | action |") : text.index("## A lost node")]
    found = conditions.conditions()
    wanted = found[conditions.TABLE]["Stalled"] | found[conditions.WRITER]["Stalled"]
    wanted |= found[conditions.TABLE]["Ready"] - {"Ready"}
    assert sorted(word for word in wanted - {"NotStalled", "Failed"} if f"`{word}`" not in table) == []


PRODUCT = ("operator", "spark-images", "gateway", "charts/hudi-operator/templates", "hack")
SOURCES = {".py", ".java", ".go", ".yaml", ".sh", ".tpl", ""}


def variables() -> set[str]:
    """Names of this project's variables in the product and its tools. An f-string or another text
    that ends with `_` begins a name; its ends are the upper-case words that are put behind it.
    """
    found = set[str]()
    for folder in PRODUCT:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix not in SOURCES or not path.is_file() or {"test", "target", "__pycache__"} & set(path.parts):
                continue
            try:
                found |= set(re.findall(r"\bHUDI_OPERATOR_[A-Z0-9_]*[A-Z0-9]\b(?!_)", path.read_text(encoding="utf-8")))
            except UnicodeDecodeError:
                continue
    return found


def test_every_variable_is_on_the_page_of_the_environment_and_no_other() -> None:
    text = (ROOT / "docs/operate/environment.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"`(HUDI_OPERATOR_[A-Z0-9_]+)`", text))
    assert len(shown) > 30
    assert sorted(variables() ^ shown) == []


@pytest.mark.extra
def test_licences_are_of_the_parts_that_are_pinned() -> None:
    """The page is made after a build of the images: a lock that has changed since makes it old."""
    rows = re.findall(r"^\| (\S+) \| (\S+) \|", (ROOT / "docs/operate/licences.md").read_text(), re.MULTILINE)
    shown = {(name.lower(), version) for name, version in rows}
    for lock in ("operator/requirements.txt", "spark-images/requirements.txt"):
        pinned = set(re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE))
        assert len(pinned) > 5
        listed_names = {(re.sub(r"[-_.]+", "-", name), version) for name, version in shown}
        missing = {one for one in pinned if (re.sub(r"[-_.]+", "-", one[0]), one[1]) not in listed_names}
        assert missing == set(), f"{lock}: build the images, then run hack/sbom/licences"
    jars = {f"{name.partition(':')[2] or name}-{version}".lower() for name, version in shown}
    sums = (ROOT / "spark-images/jars/checksums.sha256").read_text().splitlines()
    assert [jar for jar in (line.split()[1] for line in sums) if _plain_name(jar) not in jars] == []


def _plain_name(jar: str) -> str:
    return re.sub(r"(-shaded)?\.jar$", "", jar).lower()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Apache License\n   Version 2.0, January 2004", "Apache-2.0"),
        ("Permission is hereby granted, free of charge, to any person obtaining a copy", "MIT"),
        ("Redistribution and use in source and binary forms\n... Neither the name of", "BSD-3-Clause"),
        ("Redistribution and use in source and binary forms, with or without", "BSD-2-Clause"),
        ("All rights reserved.", ""),
    ],
)
def test_a_licence_is_recognised_by_its_text(text: str, wanted: str) -> None:
    assert licences.of_text(text) == wanted


def test_what_a_part_says_of_its_licence() -> None:
    assert licences.python("Name: a\nLicense-Expression: MIT OR Apache-2.0\n") == "MIT OR Apache-2.0"
    assert licences.python("Name: a\nClassifier: License :: OSI Approved :: MIT License\n") == "MIT"
    assert licences.python("Name: a\n") == licences.NOT_FOUND
    assert licences.debian("Format: x\n\nFiles: *\nLicense: GPL-2+\n text\n\nLicense: Expat\n") == "Expat, GPL-2+"
    assert licences.debian("see /usr/share/common-licenses/LGPL-2.1.") == "LGPL-2.1"
    assert licences.debian("nothing") == licences.NOT_FOUND
