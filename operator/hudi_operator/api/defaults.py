"""Defaults of a namespace for its HudiWriters, as its ConfigMap has them.

:mod:`hudi_contract.defaults` says which fields may be there; what their values may be is said by
the spec of a HudiWriter and by the rules for options. Nothing of a text that breaks one of these
rules is used.

The YAML is read without PyYAML where that is not installed: `kubectl hudi` hands a reader in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from hudi_contract import defaults as contract
from hudi_operator.api import options
from hudi_operator.api.fields import SpecError
from hudi_operator.api.spec import WriterSpec

if TYPE_CHECKING:
    import yaml

JsonDict = dict[str, Any]
WHERE = f"ConfigMap {contract.CONFIG_MAP}, {contract.KEY}"
"""Prefix of messages."""
MESSAGE_LIMIT = 500
_MOST_NESTED = 32
_TOO_DEEP = "objects and lists are nested too deeply"
_TAG = "tag:yaml.org,2002:"
_READ_AS = frozenset(f"{_TAG}{name}" for name in ("str", "int", "float", "bool", "null"))
"""Tags of types that JSON has, too. Any other type of YAML, such as a date or `.inf`, is read as
the text that is written there.
"""


@dataclass(frozen=True)
class Defaults:
    """Defaults of one namespace. ``fields``: a part of a HudiWriter's spec; empty: there are none.

    ``problem``: why they cannot be used: ConfigMap, field, value and rule. No attempt starts then.
    """

    fields: JsonDict = field(default_factory=dict)
    problem: str = ""


def read(config_map: Mapping[str, Any] | None, loads: Callable[[str], Any] | None = None) -> Defaults:
    """The defaults in a ConfigMap; None: the namespace has none.

    ``loads``: reads the YAML, and raises ValueError where it cannot; None: the operator's reader.
    """
    if config_map is None:
        return Defaults()
    data = config_map.get("data") or {}
    text = data.get(contract.KEY)
    if not isinstance(text, str):
        found = ", ".join(sorted(map(str, data)))[:MESSAGE_LIMIT] or "none"
        return Defaults(problem=f"ConfigMap {contract.CONFIG_MAP}: needs the key {contract.KEY}, has {found}")
    return _of_text(text) if loads is None else _judged(text, loads)


@lru_cache(maxsize=256)
def _of_text(text: str) -> Defaults:
    """A text is read once, not at each look at each table of its namespace."""
    return _judged(text, _loaded)


def _judged(text: str, loads: Callable[[str], Any]) -> Defaults:
    try:
        _check_size(text)
        found = loads(text)
        fields = {} if found is None else found
        _check(fields)
    except RecursionError:
        return Defaults(problem=f"{WHERE}: {_TOO_DEEP}")
    # A SpecError is a ValueError, and so is a number with too many digits.
    except ValueError as error:
        return Defaults(problem=f"{WHERE}: {' '.join(str(error).split())[:MESSAGE_LIMIT]}")
    return Defaults(fields)


def _check(fields: Any) -> None:
    """Raise SpecError for a field that may not be there, or a value that it may not have."""
    if found := contract.problem(fields):
        raise SpecError(found)
    spec = {"tableRef": {"name": "any"}, **{name: value for name, value in fields.items() if value is not None}}
    try:
        writer = WriterSpec.from_object({"metadata": {}, "spec": spec})
    except SpecError as error:
        raise SpecError(str(error).removeprefix("spec.")) from None
    if found := options.spark_problem(writer.spark_conf, field="sparkConf"):
        raise SpecError(found)


# ---- the text


def _check_size(text: str) -> None:
    """The author of the text cannot hold up the operator: it is short and flat."""
    if len(text) > contract.MOST_CHARACTERS:
        raise SpecError(f"has {len(text)} characters, must have at most {contract.MOST_CHARACTERS}")
    if max(accumulate((c in "[{") - (c in "]}") for c in text), default=0) > _MOST_NESTED:
        raise SpecError(_TOO_DEEP)


def _loaded(text: str) -> Any:
    """Parse a YAML text into JSON's types; None when it is empty.

    Anchors are refused, because with them a short text can stand for one of any length.
    """
    import yaml

    try:
        return _tree(text)
    except yaml.YAMLError as error:
        mark, said = getattr(error, "problem_mark", None), str(getattr(error, "problem", "") or error)
        where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        raise SpecError(where + said) from None


def _tree(text: str) -> Any:
    import yaml

    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if getattr(event, "anchor", None) or getattr(event, "tag", None):
            line = event.start_mark.line + 1 if event.start_mark is not None else 1
            raise SpecError(f"line {line}: anchors, aliases and tags of YAML are not read: write the value out")
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        return None if node is None else _value(loader, node, _MOST_NESTED)
    finally:
        loader.dispose()


def _value(loader: yaml.SafeLoader, node: yaml.Node, left: int) -> Any:
    """``left``: levels that may be below this one."""
    import yaml

    if left == 0:
        raise SpecError(_TOO_DEEP)
    if isinstance(node, yaml.MappingNode):
        made: JsonDict = {}
        for key, value in node.value:
            name, line = _value(loader, key, left - 1), key.start_mark.line + 1
            if not isinstance(name, str):
                raise SpecError(f"line {line}: {key.value!r:.80} is no name of a field: put it in quotes")
            if name in made:
                raise SpecError(f"line {line}: {name} stands there twice")
            made[name] = _value(loader, value, left - 1)
        return made
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, item, left - 1) for item in node.value]
    found = loader.construct_object(node) if node.tag in _READ_AS else node.value
    return node.value if isinstance(found, float) and not math.isfinite(found) else found
