"""What may be asked of the API server, and how a token is read."""

from __future__ import annotations

import pytest

from hudi_console import asking
from hudi_console.asking import Kind, Question, Refused
from hudi_contract.naming import LABEL_ROLE, LABEL_WRITER, ROLE_DRIVER

HOSTILE = [
    "../kube-system",
    "a/b",
    "a%2fb",
    "a?b",
    "a#b",
    "a b",
    "a\nb",
    "a;b",
    "A",
    "-a",
    "a-",
    ".",
    "..",
    "a..b",
    "ä",
    "a\x00",
    "*",
    "{x}",
    "a" * 254,
]


def refused(status: int, ask: object, *given: object) -> str:
    with pytest.raises(Refused) as found:
        ask(*given)  # type: ignore[operator]
    assert found.value.status == status
    return found.value.said


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", Kind)
def test_no_path_is_made_of_a_hostile_name(kind: Kind, name: str) -> None:
    refused(400, Question, kind, name)
    refused(400, Question, kind, "team", name)


def test_the_paths_are_the_few_that_pages_need() -> None:
    named = {kind: Question(kind, "team").path for kind in Kind}
    assert named == {
        Kind.TABLES: "/apis/hudioperator.io/v1alpha1/namespaces/team/huditables",
        Kind.WRITERS: "/apis/hudioperator.io/v1alpha1/namespaces/team/hudiwriters",
        Kind.PODS: "/api/v1/namespaces/team/pods",
        Kind.EVENTS_OF_TABLES: "/api/v1/namespaces/team/events",
        Kind.EVENTS_OF_WRITERS: "/api/v1/namespaces/team/events",
    }
    assert asking.METHOD == "GET"
    for kind in (Kind.PODS, Kind.EVENTS_OF_TABLES, Kind.EVENTS_OF_WRITERS):
        assert "namespace" in refused(400, Question, kind)
    assert Question(Kind.TABLES).path == "/apis/hudioperator.io/v1alpha1/huditables"
    assert refused(400, Question, Kind.TABLES, "", "flights")


def test_a_query_is_ours_alone() -> None:
    drivers = "labelSelector=hudioperator.io%2Fwriter%2Chudioperator.io%2Frole%3Ddriver"
    assert Question(Kind.PODS, "team").query() == drivers
    assert f"{LABEL_WRITER},{LABEL_ROLE}={ROLE_DRIVER}" == Kind.PODS.value[2], "not the executors: nothing shows these"
    assert Question(Kind.TABLES, "team", "a.b").query() == "fieldSelector=metadata.name%3Da.b"
    about = "fieldSelector=involvedObject.kind%3DHudiWriter"
    assert Question(Kind.EVENTS_OF_WRITERS, "team").query() == about
    assert Question(Kind.EVENTS_OF_WRITERS, "team", "w").query() == f"{about}%2CinvolvedObject.name%3Dw"
    assert Question(Kind.TABLES).query(limit=5, more="a&watch=true") == "limit=5&continue=a%26watch%3Dtrue"
    watched = Question(Kind.TABLES).query(watch_from="7", seconds=9)
    assert watched == "watch=true&resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=9"
    refused(502, lambda: Question(Kind.TABLES).query(watch_from="7&x=y"))


def test_of_a_browsers_headers_the_token_alone_goes_on() -> None:
    assert set(asking.passed_on("t")) == {"Authorization", "Accept", "User-Agent"}


@pytest.mark.parametrize(
    "given",
    [
        ["Basic YTpi"],
        ["Bearer"],
        ["Bearer "],
        ["Bearer a b"],
        ["Bearer a\tb"],
        ["Bearer a,b"],
        ["Bearer ä"],
        ["bearer=a"],
        ["a"],
        ["Bearer a", "Bearer b"],
        [f"Bearer {'a' * (asking.MOST_OF_A_TOKEN + 1)}"],
        ["Bearer a\r\nX: y"],
    ],
)
def test_what_is_no_token_is_refused_without_repeating_it(given: list[str]) -> None:
    said = refused(401, asking.token, given)
    assert said == "Authorization: it must be one header with Bearer and a token"


def test_a_token_is_taken_as_it_is() -> None:
    assert asking.token(["Bearer aZ09-._~+/=="]) == "aZ09-._~+/=="
    assert asking.token(["bearer a"]) == "a"
    assert "required" in refused(401, asking.token, [])


def test_namespaces() -> None:
    assert asking.of_namespaces("") == ()
    assert asking.of_namespaces(" team-b, team-a,,team-b") == ("team-b", "team-a")
    assert "at most 50" in refused(400, asking.of_namespaces, ",".join(f"n{n}" for n in range(51)))
    assert "'../x'" in refused(400, asking.of_namespaces, "../x")


def test_a_query_of_a_browser_has_known_names_alone() -> None:
    known = ("watch", "namespace")
    assert asking.checked_query([("watch", "true")], known) == {"watch": "true"}
    assert "secret" not in refused(400, asking.checked_query, [("token", "secret")], known)
    assert "secret" not in refused(400, asking.checked_query, [("secret", "")], known)
    assert "twice" in refused(400, asking.checked_query, [("watch", "true"), ("watch", "true")], known)
    assert "true or false" in refused(400, asking.checked_query, [("watch", "1")], known)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "X"])
def test_the_console_only_reads(method: str) -> None:
    refused(405, asking.from_own_page, method, {})


def test_pages_of_other_sites_are_not_served() -> None:
    for site in ("cross-site", "same-site", "new"):
        refused(403, asking.from_own_page, "GET", {"Sec-Fetch-Site": site})
    for headers in ({}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
        asking.from_own_page("GET", headers)
