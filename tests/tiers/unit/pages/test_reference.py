"""Pages of reference are what CRDs, chart and code say now."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.campaigns.pages import api, chart_values, conditions
from tests.support import ROOT, crds

LIST = ROOT / "tests/tiers/unit/contract/public-names.txt"
PAGES: dict[str, tuple[Path, Callable[[], str]]] = {
    **{f"api {plural}": (api.page_of(plural), lambda plural=plural: api.page(plural)) for plural in api.KINDS},
    "conditions": (conditions.PAGE, conditions.page),
    "chart_values": (chart_values.PAGE, chart_values.page),
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
