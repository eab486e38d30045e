"""Defaults of a namespace for its HudiWriters: the fields that they may have, and their precedence.

They are in a ConfigMap of the namespace, as a part of a HudiWriter's spec. Its author does not need
the verb `use`, so nothing in it names a Secret, an account, an image, a ConfigMap or a volume, or
sets a variable of a container. Fields for which the CRD has a default are excluded, too: the API
server writes that default into each HudiWriter, so it is not known whether its author has chosen
it.

A writer's own fields come first, field by field: maps by key, everything else as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from hudi_contract.options import normal
from hudi_contract.secret_names import REDACTED, is_secret

JsonDict = dict[str, Any]

CONFIG_MAP: Final = "hudi-operator-defaults"
"""Name of the ConfigMap, in the namespace of the writers."""
KEY: Final = "defaults.yaml"
"""Its only key that is read: YAML, or JSON."""
VERB: Final = "default"
"""Verb on hudiwriters that the chart's policy requires of the author of that ConfigMap."""
MOST_CHARACTERS: Final = 32_768

WHOLE: Final = "whole"
BY_KEY: Final = "by key"
_POD: Final[JsonDict] = {
    "nodeSelector": BY_KEY,
    "tolerations": WHOLE,
    "podTemplate": {
        "metadata": {"labels": BY_KEY, "annotations": BY_KEY},
        "spec": {
            "affinity": WHOLE,
            "priorityClassName": WHOLE,
            "securityContext": BY_KEY,
            "topologySpreadConstraints": WHOLE,
        },
    },
}
FIELDS: Final[JsonDict] = {
    "driver": _POD,
    "executors": _POD,
    "podHistory": {"ttlSecondsAfterFinished": WHOLE},
    "sparkConf": BY_KEY,
    "startDeadlineSeconds": WHOLE,
}
"""Fields of a HudiWriter's spec that may be there."""
_ALSO_IN_THE_TEMPLATE: Final = ("nodeSelector", "tolerations")
"""Fields of a pod that a writer may set in its podTemplate, too."""
_SHOWN = 80


class Under(NamedTuple):
    """A spec with the defaults under it. ``fields``: those that come from them."""

    spec: JsonDict
    fields: tuple[str, ...]


def problem(given: object, allowed: Mapping[str, Any] = FIELDS, at: str = "") -> str:
    """The first field that may not be there (field, value, rule); empty: there is none.

    The spec of a HudiWriter defines the allowed values of a field.
    """
    if not isinstance(given, Mapping):
        where = f"{at}: " if at else ""
        return f"{where}expected an object, found {_shown(given)}"
    for name, value in given.items():
        where = f"{at}.{name}" if at else str(name)
        if name not in allowed:
            shown = _shown(value, str(name))
            of = f"of {at}, " if at else ""
            can = ", ".join(sorted(allowed))
            return f"{where} = {shown}: cannot be a default of a namespace; {of}{can} can"
        kind = allowed[name]
        if value is None or kind == WHOLE:
            continue
        found = problem(value, kind, where) if kind != BY_KEY else _map_problem(value, where)
        if found:
            return found
    return ""


def _map_problem(value: object, where: str) -> str:
    return "" if isinstance(value, Mapping) else f"{where}: expected an object, found {_shown(value)}"


def _shown(value: object, name: str = "") -> str:
    """Only what is one value: variables of a container may hold a secret."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    return REDACTED if is_secret(name) else repr(value)[:_SHOWN]


def under(spec: Mapping[str, Any], given: Mapping[str, Any]) -> Under:
    """A HudiWriter's spec with defaults under it, in which there is no `problem`."""
    given = {
        name: _without_those_of_the_template(value, spec.get(name)) if FIELDS[name] is _POD else value
        for name, value in given.items()
        if value is not None
    }
    fields: list[str] = []
    return Under(_under(spec, given, FIELDS, "spec", fields), tuple(fields))


def _without_those_of_the_template(given: Mapping[str, Any], own: object) -> JsonDict:
    """Defaults for a pod, except for fields that a writer sets in the podTemplate.

    The field beside the template comes before that in it: a default would come before the author.
    """
    template: object = own
    for part in ("podTemplate", "spec"):
        template = template.get(part) if isinstance(template, Mapping) else None
    if not isinstance(template, Mapping):
        return dict(given)
    left = dict(given)
    for name in _ALSO_IN_THE_TEMPLATE:
        theirs = template.get(name)
        if theirs is None or left.get(name) is None:
            continue
        if _POD[name] == BY_KEY and isinstance(theirs, Mapping):
            left[name] = {key: value for key, value in left[name].items() if key not in theirs}
        else:
            del left[name]
    return left


def _under(
    own: Mapping[str, Any], given: Mapping[str, Any], allowed: Mapping[str, Any], at: str, fields: list[str]
) -> JsonDict:
    made = dict(own)
    for name, value in given.items():
        kind, mine, where = allowed[name], own.get(name), f"{at}.{name}"
        if value is None or (mine is not None and (kind == WHOLE or not isinstance(mine, Mapping))):
            continue  # the writer's own mistake: not an object where one belongs; it is reported as such
        if kind == WHOLE:
            made[name] = value
            fields.append(where)
            continue
        theirs = mine or {}
        found = _by_key(theirs, value, where, fields) if kind == BY_KEY else _under(theirs, value, kind, where, fields)
        if found != theirs:
            made[name] = found
    return made


def _by_key(own: Mapping[str, Any], given: Mapping[str, Any], at: str, fields: list[str]) -> JsonDict:
    """Settings of Spark are compared as Spark and Hudi read them."""
    read = normal if at == "spec.sparkConf" else str
    known = {read(str(key)) for key in own}
    more = {key: value for key, value in given.items() if read(str(key)) not in known and value is not None}
    fields += [f"{at}[{key!r}]" for key in more]
    return {**own, **more}
