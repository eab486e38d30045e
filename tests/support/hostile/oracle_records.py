"""Properties of job.json, of a table's assignment to its agent, and of a bootstrap request."""

from __future__ import annotations

import posixpath
import re
from typing import Any
from urllib.parse import urlsplit

from hudi_operator.api.spec import TableSpec
from hudi_operator.plan.agent import agents
from hudi_operator.plan.requests import bootstrap
from tests.support.hostile.launch import SOURCE
from tests.support.hostile.readers import alternatives
from tests.support.hostile.vocabulary import MIRROR, PREFIX

JsonDict = dict[str, Any]

NOON_MS = 1_767_268_800_000
_CLASSES = re.compile(r"(?i)class|jaas|ssl|sasl|interceptor|reporter|provider|serializer|group|servers|location|file")
_LOCAL = re.compile(r"(127\.|0\.|0$|169\.254\.|localhost$|.*\.localhost$|metadata$|metadata\.google|::1$|::$|fe[89ab])")


def job(table: JsonDict, writer: JsonDict, found: JsonDict) -> None:
    """Raises AssertionError."""
    spec = writer["spec"]
    source, told = spec.get("source") or {}, found["source"]
    assert told is not None or not {"files", "hudi", "jdbc", "kafka", "python", "sql"} & {
        k for k, v in source.items() if v
    }
    if spec.get("transform"):
        assert found["transform"]["sql"] == spec["transform"]["sql"]
    assert found["validations"] == [_validation(each) for each in spec.get("validations") or []]
    if spec.get("application"):
        _program(spec["application"], found["application"])
    assert ("deps" in found) == bool(spec.get("deps")) or not any((spec.get("deps") or {}).values())
    if spec.get("deps"):
        _deps(spec["deps"], found["deps"])
    if source.get("sql"):
        assert told["sql"]["query"] == source["sql"]["query"]
        assert [view["name"] for view in told["sql"]["views"]] == [
            view["name"] for view in source["sql"].get("views") or []
        ]
    if source.get("python"):
        assert re.fullmatch(r"/etc/hudi/code/[^/]+[.]py", told["python"]["file"])
        assert told["python"]["arguments"] == (source["python"].get("arguments") or {})
        assert told["python"]["function"].isidentifier()
    if source.get("kafka"):
        _kafka(source["kafka"], told["kafka"])
    if source.get("jdbc"):
        _jdbc(source["jdbc"], told["jdbc"])
    views = told["sql"]["views"] if source.get("sql") else []
    for each in [*([told["files"]] if source.get("files") else []), *(v["files"] for v in views if v.get("files"))]:
        _files(each)
    for each in [*([told["hudi"]] if source.get("hudi") else []), *(v["hudi"] for v in views if v.get("hudi"))]:
        _folder(each["path"])
        assert re.fullmatch("[A-Za-z0-9_.$]*", each.get("merger") or ""), each
    if "tableRef" in (source.get("hudi") or {}):
        assert told["hudi"]["path"] == f"{PREFIX}/{SOURCE}"
    _of_table(table, found["table"])
    assert [p.rpartition("=")[2] for p in found["partitions"]] == [
        p.rpartition("=")[2] for p in spec.get("partitions") or []
    ]


def _validation(said: JsonDict) -> JsonDict:
    fields = ("name", "sql", "equals", "minRows", "maxRows", "notNull")
    return {"sql": "", "equals": None, "minRows": None, "maxRows": None, "notNull": []} | {
        name: said[name] for name in fields if said.get(name) is not None
    }


_STORED = rf"{re.escape(PREFIX)}/[A-Za-z0-9._=+~/-]+|s3://lake/team/[A-Za-z0-9._=+~/-]+"
_ARTIFACT = rf"(local:///[A-Za-z0-9._=+~/-]+|{_STORED})"


def _artifact(path: str, endings: str = "") -> None:
    """A file of the image, or below the namespace's prefix, in one word without a comma."""
    assert re.fullmatch(_ARTIFACT + endings, path), path
    assert not {".", "..", ""} & set(path.partition("://")[2].strip("/").split("/")), path


def _deps(said: JsonDict, told: JsonDict) -> None:
    for name, endings in (("jars", "[.]jar"), ("files", ""), ("pyFiles", "([.]py|[.]zip|-none-any[.]whl)")):
        assert told[name] == (said.get(name) or [])
        for path in told[name]:
            _artifact(path, endings)
    assert told["packages"] == (said.get("packages") or [])
    assert all(re.fullmatch("[A-Za-z0-9._-]+:[A-Za-z0-9._-]+:[A-Za-z0-9._+-]+", each) for each in told["packages"])
    assert told["excludePackages"] == (said.get("excludePackages") or [])
    assert all(re.fullmatch("[A-Za-z0-9._-]+:[A-Za-z0-9._-]+", each) for each in told["excludePackages"])
    assert told["mirror"] == (MIRROR if told["packages"] else ""), "of the administrator alone"


def _program(said: JsonDict, told: JsonDict) -> None:
    assert told["arguments"] == (said.get("arguments") or [])
    if said.get("mainClass"):
        assert re.fullmatch(r"[A-Za-z0-9_$.]+", told["mainClass"])
        assert told["jar"] == said["file"]
        _artifact(told["jar"], "[.]jar")
        assert not told["mainFile"]
        return
    if said.get("module"):
        assert all(part.isidentifier() for part in told["module"].split("."))
        assert not told["mainFile"]
        return
    path = told["mainFile"]
    assert re.fullmatch(r"/[^\x00-\x20]+[.]py", path), path
    assert ".." not in path.split("/"), path
    if said.get("configMapKeyRef"):
        assert re.fullmatch(r"/etc/hudi/code/[^/]+[.]py", path)


def _kafka(said: JsonDict, told: JsonDict) -> None:
    assert told["bootstrapServers"] == said["bootstrapServers"]
    for server in told["bootstrapServers"]:
        assert re.fullmatch(r"[\w.\[\]:-]+:\d+", server, re.ASCII), server
    assert told["topics"] == (said.get("topics") or [])
    assert told["value"]["schema"] == (said["value"].get("schema") or "")
    assert not [name for name in told["options"] if _CLASSES.search(name)], told["options"]
    assert told["options"] == (said.get("options") or {})
    assert re.fullmatch("Earliest|Latest|[0-9]+", told["startFrom"])
    assert told["security"]["folder"] in ("", "/etc/hudi/kafka")
    registry = said["value"].get("registry")
    assert ("registry" in told["value"]) == bool(registry)
    if registry:
        folder = "/etc/hudi/registry" if registry.get("secretRef") else ""
        assert told["value"]["registry"] == {"url": registry["url"], "folder": folder}
        assert re.fullmatch(r"https?://(\[[0-9a-fA-F:.]+\]|[\w.-]+)(:\d+)?[\w./~-]*", registry["url"], re.ASCII)
    bad = said.get("onBadRecord") or {"action": "Fail"}
    assert told.get("onBadRecord") == (None if bad["action"] == "Fail" else {"maxPerCommit": 1000, **bad})


def _jdbc(said: JsonDict, told: JsonDict) -> None:
    assert (told["engine"], told["host"], told["database"]) == (said["engine"], said["host"], said["database"])
    assert re.fullmatch(r"[\w.-]+|\[[0-9a-fA-F:]+\]", told["host"], re.ASCII), told["host"]
    assert re.fullmatch(r"\w[\w$-]*", told["database"], re.ASCII), told["database"]
    assert told["port"] in (said.get("port"), 5432, 3306)
    assert told["folder"] == "/etc/hudi/jdbc"
    assert (told["table"], told["query"]) == (said.get("table") or "", said.get("query") or "")
    new, parts = told["incremental"], told["partitioning"]
    for name in (told["table"].replace(".", "_"), *(each["column"] for each in (new, parts) if each)):
        assert re.fullmatch(r"[\w$]*", name, re.ASCII), name
    if new:
        assert re.fullmatch(r"Earliest|Latest|[0-9.:TZ-]+", new["startFrom"]), new
    if told["query"]:
        _one_select(told["query"], "'\"")
        _one_select(told["query"], "'\"`")


def _one_select(sql: str, marks: str) -> None:
    """One statement in parentheses, as a database reads it that quotes with these marks."""
    assert sql.split(None, 1)[0].upper() in ("SELECT", "WITH"), sql
    inside, depth, left = "", 0, ""
    for letter in sql:
        if inside:
            assert letter != "\\", sql
            inside = "" if letter == inside else inside
        elif letter in marks:
            inside = letter
        else:
            depth += (letter == "(") - (letter == ")")
            left += letter
            assert depth >= 0, sql
    assert not inside, sql
    assert depth == 0, sql
    assert not re.search(r"[;$#\\]|--|/\*", left), sql


def _files(found: JsonDict) -> None:
    for path in found["paths"]:
        for one in alternatives(path):
            scheme, slashes, rest = one.partition("://")
            assert slashes, path
            assert scheme.lower() in ("s3", "s3a"), path
            assert posixpath.normpath(rest).startswith("lake/team/"), path
            assert "@" not in rest.partition("/")[0], path
    assert not [name for name in found["options"] if "." in name or name.lower() in ("path", "paths", "avroschemaurl")]


def _folder(path: str) -> None:
    assert re.fullmatch("s3a://lake/team/[A-Za-z0-9._=+,~:/@-]+", path), path
    assert posixpath.normpath(path.partition("://")[2]) == path.partition("://")[2].rstrip("/"), path


def _catalog(said: JsonDict, found: JsonDict) -> None:
    assert found.get("uris", []) == said.get("hiveMetastore", {}).get("uris", [])
    for uri in found.get("uris", []):
        host, _, port = uri.removeprefix("thrift://").rpartition(":")
        assert re.fullmatch("[A-Za-z0-9][A-Za-z0-9.-]*", host), uri
        assert host.lower() not in ("localhost", "metadata", "0"), uri
        assert not host.startswith(("127.", "169.254.")), uri
        assert 0 < int(port) < 65536, uri
    glue = said.get("glue", {})
    assert found.get("region", "") == glue.get("region", "")
    assert found.get("account", "") == glue.get("account", "")
    if glue:
        assert re.fullmatch("[a-z]{2,3}(-[a-z]+)+-[0-9]{1,2}", glue["region"]), glue
        assert re.fullmatch("([0-9]{12})?", glue.get("account", "")), glue


def _of_table(table: JsonDict, found: JsonDict) -> None:
    spec = table["spec"]
    _folder(found["path"])
    assert found["recordKeyFields"] == spec["recordKeyFields"]
    assert found["partitionFields"] == (spec.get("partitionFields") or [])
    assert found["orderingFields"] == (spec.get("orderingFields") or [])
    assert found["name"] == (spec.get("tableName") or table["metadata"]["name"])
    assert re.fullmatch("[A-Za-z0-9_.$]*", (found["merge"] or {}).get("className") or ""), found["merge"]


def assignment(table: JsonDict, target: TableSpec) -> JsonDict:
    """The record of a table that launches, as JSON. Raises AssertionError."""
    spec = table["spec"]
    found = agents.assignment(target, NOON_MS)
    _of_table(table, found)
    assert found["table"] == "team/flights"
    if (said := spec.get("commitCallback")) is not None:
        assert found["callback"]["url"] == said["url"]
        _url(said["url"])
    if (said := spec.get("catalog")) is not None:
        _catalog(said, found["catalog"])
    for kind, order in found["services"].items():
        _service(kind, order["options"], (spec.get("services") or {}).get(kind) or {})
    if (said := spec.get("bootstrap")) is not None and target.bootstrap is not None:
        told = bootstrap.request("flights-uid", target.bootstrap).to_json()
        _folder(told["path"])
        assert f"{told['path']}/" not in f"{found['path']}/"
        assert f"{found['path']}/" not in f"{told['path']}/"
        assert (told["mode"], told["format"]) == ("FullRecord", "Parquet")
        assert found["adoption"] == "Bootstrap"
    return found


def _url(url: str) -> None:
    """Assert that a client connects to the host that the URL shows."""
    assert url.isascii(), url
    assert not re.search(r"[\x00-\x20\x7f\\#\"<>^`{|}]", url), url
    parts = urlsplit(url)
    assert parts.scheme in ("http", "https"), url
    assert parts.username is None, url
    host = parts.hostname or ""
    assert host, url
    assert host in url.lower(), url
    assert parts.port is None or 0 < parts.port < 65536, url
    assert not _LOCAL.match(host), url
    assert not re.search(r":(127|169\.254)\.", host), url
    assert parts.scheme == "https" or re.fullmatch(r"[^.]+\.[^.]+\.svc(\.cluster\.local)?", host), url


def _service(kind: str, options: dict[str, str], said: JsonDict) -> None:
    patterns = {value for key, value in options.items() if "pattern" in key}
    assert patterns <= {said.get("partitionPattern")}, patterns
    for key, value in options.items():
        if key.endswith("sort.columns"):
            assert value.split(",") == said["sortColumns"], value
        elif value not in patterns:
            assert re.fullmatch("[A-Za-z0-9_]+", value), (kind, key, value)
