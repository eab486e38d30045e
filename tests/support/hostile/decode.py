"""Parts of a pod that the API server would not decode: values of another type than the field's.

The types are those of the Kubernetes client, which are made from Kubernetes' OpenAPI document.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from kubernetes.client import models

_PLAIN: dict[str, tuple[type[Any], ...]] = {"str": (str,), "bool": (bool,), "int": (int,), "float": (int, float)}
_QUANTITIES = {"requests", "limits", "capacity"}
"""Amounts, which the API server also takes as numbers."""


def undecodable(found: Any, kind: str, at: str = "pod") -> str:
    """The first field of ``found`` whose value is not of its type; empty when there is none.

    ``kind``: a type as the Kubernetes client writes it, as ``V1Pod`` or ``Dict[str, str]``.
    Unknown fields and null are nothing: the API server drops them.
    """
    if found is None or kind in ("object", "datetime"):
        return ""
    if kind in _PLAIN:
        wrong = not isinstance(found, _PLAIN[kind]) or (kind == "int" and isinstance(found, bool))
        return f"{at}: {found!r:.80} is no {kind}" if wrong else ""
    if of := re.fullmatch(r"[Ll]ist\[(.+)\]", kind):
        if not isinstance(found, list):
            return f"{at}: {found!r:.80} is no list"
        return next((told for n, each in enumerate(found) if (told := undecodable(each, of[1], f"{at}[{n}]"))), "")
    if not isinstance(found, dict):
        return f"{at}: {found!r:.80} is no object"
    if of := re.fullmatch(r"[Dd]ict[\[(]str, (.+)[\])]", kind):
        if at.rpartition(".")[2] in _QUANTITIES:
            found = {name: str(value) if type(value) in (int, float) else value for name, value in found.items()}
        types = dict.fromkeys(found, of[1])
    else:
        types = _types(kind)
    return next(
        (
            told
            for name, each in found.items()
            if name in types and (told := undecodable(each, types[name], f"{at}.{name}"))
        ),
        "",
    )


@functools.cache
def _types(kind: str) -> dict[str, str]:
    model = getattr(models, kind)
    return {model.attribute_map[field]: model.openapi_types[field] for field in model.attribute_map}
