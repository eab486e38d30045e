"""The server between a browser and a played API server: what goes on, what comes back, what is
logged.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from hudi_console import __main__, cluster, server
from hudi_console.cluster import connected
from tests.tiers.unit.console.played import (
    ANN,
    BOB,
    GROUP,
    Api,
    Browser,
    JsonDict,
    bearer,
    condition,
    console,
    table,
    writer,
)

TABLES = "/api/v1/tables"


def run(api: Api, act: Callable[[Browser], Awaitable[None]], **more: Any) -> None:
    async def whole() -> None:
        async with asyncio.timeout(20), console(api, **more) as client:
            await act(client)

    asyncio.run(whole())


async def got(client: Browser, path: str, token: str = ANN, status: int = 200, **headers: str) -> JsonDict:
    async with client.get(path, headers={**bearer(token), **headers}) as answer:
        found: JsonDict = await answer.json()
        assert answer.status == status, found
        return found


# ---------------------------------------------------------------- what is refused
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
@pytest.mark.parametrize("path", [TABLES, f"{TABLES}/team-a/flights", "/", "/files/main.js", f"{GROUP}/huditables"])
def test_a_verb_that_is_no_read(method: str, path: str) -> None:
    api = Api(table())

    async def act(client: Browser) -> None:
        async with client.request(method, path, headers=bearer(ANN), data=b"{}") as answer:
            assert answer.status == 405

    run(api, act)
    assert api.asked == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/namespaces/kube-system/secrets", 404),
        ("/api/v1/secrets", 404),
        (f"{GROUP}/huditables", 404),
        ("/api/v1/tables/", 404),
        ("/api/v1/tables/team-a", 404),
        ("/api/v1/tables/team-a/flights/status", 404),
        ("/api/v1/tables/team-a/flights/../../../secrets", 404),
        ("/api/v1/tables/team-a%2F..%2Fkube-system/flights", 400),
        ("/api/v1/tables/team-a/..%2F..%2Fsecrets", 400),
        ("/api/v1/tables/team-a/flights%3Fwatch=true", 400),
        ("/api/v1/tables/team-a/flights%00", 400),
        ("/api/v1/tables/team-a/FLIGHTS", 400),
        ("/api/v1/writers/../flights", 400),
        ("/api/v1/tables?namespace=..%2Fkube-system", 400),
        ("/api/v1/tables?namespace=a&namespace=b", 400),
        ("/api/v1/tables?watch=yes", 400),
        ("/api/v1/tables?labelSelector=x", 400),
        ("/api/v1/tables/team-a/flights?namespace=b", 400),
        ("/files/..%2F__main__.py", 404),
        ("/files/../server.py", 404),
        ("/files/__init__.py", 404),
        ("/http://kubernetes.default/api/v1/secrets", 404),
        ("//kubernetes.default/api", 404),
    ],
)
def test_a_hostile_path(path: str, status: int) -> None:
    api = Api(table())

    async def act(client: Browser) -> None:
        reader, sender = await asyncio.open_connection(client.host, client.port)
        sender.write(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ANN}\r\nConnection: close\r\n\r\n".encode()
        )
        said = (await reader.read()).decode()
        sender.close()
        assert int(said.split()[1]) == status, said

    run(api, act)
    assert api.asked == []


def test_no_header_of_a_browser_goes_on_but_the_token() -> None:
    api = Api(table())
    sent = {
        "Impersonate-User": "admin",
        "Impersonate-Group": "system:masters",
        "Cookie": "session=1",
        "X-Remote-User": "admin",
        "X-Forwarded-For": "1.2.3.4",
        "Accept": "text/html",
        "User-Agent": "Mozilla",
        "X-Http-Method-Override": "DELETE",
        "Proxy-Authorization": "Basic eDp5",
        "Connection": "X-Foo",
        "X-Foo": "1",
        "Accept-Language": "de",
    }

    async def act(client: Browser) -> None:
        await got(client, TABLES, **sent)
        await got(client, f"{TABLES}/team-a/flights", **sent)

    run(api, act)
    assert len(api.asked) >= 5
    for method, _, headers in api.asked:
        assert method == "GET"
        assert set(headers) == {"host", "authorization", "accept", "accept-encoding", "user-agent"}
        assert headers["authorization"] == [f"Bearer {ANN}"]
        assert (headers["accept"], headers["user-agent"]) == (["application/json"], ["hudi-console"])


@pytest.mark.parametrize("given", [[], ["Basic YTpi"], ["Bearer a b"], [f"Bearer {ANN}", f"Bearer {BOB}"]])
def test_without_one_token_nothing_is_asked(given: list[str]) -> None:
    api = Api(table())

    async def act(client: Browser) -> None:
        headers = [("Authorization", one) for one in given]
        async with client.get(TABLES, headers=headers) as answer:
            assert answer.status == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"

    run(api, act)
    assert api.asked == []


def test_a_page_of_another_site_gets_nothing() -> None:
    api = Api(table())

    async def act(client: Browser) -> None:
        for site in ("cross-site", "same-site"):
            await got(client, TABLES, status=403, **{"Sec-Fetch-Site": site})
        async with client.get(TABLES, headers={**bearer(ANN), "Origin": "https://evil.example"}) as answer:
            assert not [name for name in answer.headers if name.lower().startswith("access-control")]

    run(api, act)
    assert len(api.asked) == 2, "of the last request alone"


# ---------------------------------------------------------------- whose rights
def test_a_user_sees_what_the_api_server_lets_them_see() -> None:
    api = Api(table(), table("team-b", "orders"), writer("team-b", "live", "orders"))

    async def act(client: Browser) -> None:
        seen = await got(client, TABLES)
        assert [(row["namespace"], row["name"]) for row in seen["rows"]] == [
            ("team-a", "flights"),
            ("team-b", "orders"),
        ]
        refused = await got(client, TABLES, BOB, 403)
        assert refused["error"]["message"].endswith("at the cluster scope")
        seen = await got(client, f"{TABLES}?namespace=team-b", BOB)
        assert [row["name"] for row in seen["rows"]] == ["orders"]
        assert (await got(client, f"{TABLES}?namespace=team-a,team-b", BOB, 403))["error"]["status"] == 403
        await got(client, f"{TABLES}/team-a/flights", BOB, 403)
        await got(client, "/api/v1/writers/team-a/load", BOB, 403)
        assert (await got(client, "/api/v1/writers/team-b/live", BOB))["writer"]["name"] == "live"
        await got(client, TABLES, "nobody", 401)
        await got(client, f"{TABLES}/team-a/none", ANN, 404)

    run(api, act)


def test_of_the_operators_namespaces_those_that_a_user_may_see_are_shown() -> None:
    api = Api(table(), table("team-b", "orders"), table("team-c", "other"))

    async def act(client: Browser) -> None:
        seen = await got(client, TABLES, BOB)
        assert (seen["namespaces"], [row["name"] for row in seen["rows"]]) == (["team-b"], ["orders"])
        assert (await got(client, TABLES))["namespaces"] == ["team-a", "team-b"]

    run(api, act, namespaces=("team-a", "team-b"))
    assert not [path for path in api.paths() if "/namespaces/" not in path]


def test_pods_and_events_that_may_not_be_listed_are_left_out() -> None:
    api = Api(table(), writer())

    async def act(client: Browser) -> None:
        assert (await got(client, f"{TABLES}/team-a/flights"))["eventsHidden"] is False
        answered = api._answer

        async def without(request: web.Request) -> web.StreamResponse:
            if request.path.endswith(("/pods", "/events")):
                return web.json_response({"message": "no"}, status=403)
            return await answered(request)

        api._answer = without  # type: ignore[method-assign]

    run(api, act)

    async def again(client: Browser) -> None:
        assert (await got(client, f"{TABLES}/team-a/flights"))["eventsHidden"] is True

    run(api, again)


def test_lists_come_in_parts() -> None:
    api = Api(*(table("team-a", f"t{n:04}") for n in range(1000)))
    api.page = 300

    async def act(client: Browser) -> None:
        assert len((await got(client, TABLES))["rows"]) == 1000

    run(api, act)
    assert len([path for path in api.paths() if "huditables" in path]) == 4


# ---------------------------------------------------------------- the API server fails
@pytest.mark.parametrize("status", [302, 500, 503])
def test_an_api_server_that_fails_is_no_fault_of_the_user(status: int) -> None:
    api = Api(table())
    api.fails = web.Response(status=status, text=f"{ANN} is somewhere", headers={"Location": "/elsewhere"})

    async def act(client: Browser) -> None:
        found = await got(client, TABLES, status=502)
        assert found["error"]["message"] == f"the API server answers with {status}"

    run(api, act)
    assert len(api.asked) == 1, "a redirect would take the token elsewhere"


def test_what_the_api_server_says_of_a_refusal_has_no_token() -> None:
    api = Api(table())
    api.fails = web.json_response({"message": f"token {ANN} may not"}, status=403)

    async def act(client: Browser) -> None:
        assert (await got(client, TABLES, status=403))["error"]["message"] == "token … may not"

    run(api, act)


def test_another_scheme_than_https_is_refused() -> None:
    async def act() -> None:
        with pytest.raises(ValueError, match="it must be https://HOST:PORT"):
            async with connected("http://kubernetes"):
                pass

    asyncio.run(act())


# ---------------------------------------------------------------- logs
def test_no_token_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a header, a path, a query, a request that cannot be read; when all is well, and when
    something fails.
    """
    caplog.set_level(logging.DEBUG)
    __main__.configure_logging()
    api = Api(table())

    async def raw(client: Browser, text: bytes) -> None:
        reader, sender = await asyncio.open_connection(client.host, client.port)
        sender.write(text)
        await reader.read()
        sender.close()

    async def act(client: Browser) -> None:
        await got(client, TABLES)
        await got(client, f"{TABLES}?token={BOB}", status=400)
        await got(client, f"{TABLES}/team-a/{BOB}", status=404)
        await got(client, f"/{BOB}", status=404)
        await got(client, TABLES, "unknown.token", 401)
        close = b"Connection: close\r\n\r\n"
        await raw(client, b"GET / HTTP/1.1\r\nAuthorization\x00: Bearer " + ANN.encode() + b"\r\n" + close)
        await raw(client, b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization Bearer " + ANN.encode() + b"\r\n" + close)
        await raw(client, ANN.encode() + b" / HTTP/1.1\r\nHost: x\r\n" + close)
        api.fails = web.Response(status=500, text=ANN)
        await got(client, TABLES, status=502)
        monkeypatch.setattr(server.views, "rows", lambda *_: (_ for _ in ()).throw(RuntimeError(ANN)))
        api.fails = None
        found = await got(client, TABLES, status=500)
        assert ANN not in json.dumps(found)

    run(api, act)
    lines = [logging.Formatter().format(record) for record in caplog.records if not record.name.startswith("asyncio")]
    assert [line for line in lines if f"GET {TABLES} 200" in line]
    assert [line for line in lines if line.startswith(f"{TABLES}: RuntimeError")], "where it was raised is told"
    for secret in (ANN, BOB, "unknown.token"):
        assert not [line for line in lines if secret in line]


# ---------------------------------------------------------------- the page
def test_every_answer_has_the_headers_that_confine_the_page() -> None:
    async def act(client: Browser) -> None:
        for path in ("/", "/files/main.js", "/none", TABLES):
            async with client.get(path) as answer:
                told = answer.headers
                policy = dict(part.split(" ", 1) for part in told["Content-Security-Policy"].split("; "))
                assert policy["default-src"] == "'none'"
                assert {policy[f"{of}-src"] for of in ("script", "style", "img", "connect")} == {"'self'"}
                assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
                assert told["X-Content-Type-Options"] == "nosniff"
                assert told["Referrer-Policy"] == "no-referrer"
                assert "Set-Cookie" not in told
                assert "Server" not in told
                assert told["Cache-Control"] == ("no-cache" if path in ("/", "/files/main.js") else "no-store")

    run(Api(), act)


def test_the_page_is_whole_and_asks_nobody_else() -> None:
    files = {path.name: path.read_text() for path in server.FILES.iterdir()}
    assert {"index.html", "main.js", "page.css", "icon.svg"} <= set(files)
    text = (
        "".join(files.values()).replace("http://www.w3.org/2000/svg", "").replace("http://hudi-console.localhost", "")
    )
    assert re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text) == []
    for name, content in files.items():
        for wanted in re.findall(r"(?:from '\./|src=\"files/|href=\"files/)([\w.]+)", content):
            assert wanted in files, (name, wanted)
    assert not re.search(r"<script(?! type=\"module\" src=)|<style|\sstyle=|\son\w+=", files["index.html"])
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "document.cookie",
    ):
        assert word not in text, "statuses have words of drivers: text is set as text"


def test_a_token_is_stored_nowhere_and_the_page_has_an_origin_of_its_own() -> None:
    """Another port-forward to the same port is the same origin, to the same tab."""
    text = "".join(path.read_text() for path in server.FILES.iterdir())
    for word in ("sessionStorage", "indexedDB", "caches.", "history.state", "window.name"):
        assert word not in text
    assert set(re.findall(r"localStorage\.\w+\((\w+)", text)) <= {"SPACES"}, "names of namespaces alone"
    page = (server.FILES.parents[2] / "docs" / "operate" / "console.md").read_text()
    assert "open `http://hudi-console.localhost:8080`" in page
    assert "http://localhost" not in page + text


def test_files_are_asked_for_once() -> None:
    async def act(client: Browser) -> None:
        async with client.get("/files/main.js") as answer:
            assert answer.status == 200
            assert answer.headers["Content-Type"].startswith("text/javascript")
            tag = answer.headers["ETag"]
        async with client.get("/files/main.js", headers={"If-None-Match": tag}) as answer:
            assert answer.status == 304
        async with client.get("/livez") as answer:
            assert (answer.status, await answer.text()) == (200, "ok\n")

    run(Api(), act)


# ---------------------------------------------------------------- streams
async def documents(answer: aiohttp.ClientResponse) -> JsonDict:
    line = await answer.content.readline()
    assert line, "the stream has ended"
    found: JsonDict = json.loads(line)
    return found


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CALM", 0.01)
    monkeypatch.setattr("hudi_console.mirror.AGAIN", 0.01)


@pytest.mark.usefixtures("quick")
def test_a_stream_tells_what_changes() -> None:
    api = Api(table(), table("team-a", "orders"))

    async def act(client: Browser) -> None:
        async with client.get(f"{TABLES}?watch=true", headers=bearer(ANN)) as answer:
            first = await documents(answer)
            assert (first["all"], len(first["rows"])) == (True, 2)
            await asyncio.sleep(0.1)
            await api.tell("ADDED", writer("team-a", "live", "orders", conflicts=3))
            second = await documents(answer)
            assert (second["all"], second["gone"]) == (False, [])
            assert [(row["name"], row["conflicts"]) for row in second["rows"]] == [("orders", 3)]
            await api.tell("DELETED", table())
            third = await documents(answer)
            assert (third["rows"], third["gone"]) == ([], [["team-a", "flights"]])

    run(api, act)


@pytest.mark.usefixtures("quick")
def test_a_missing_table_is_told_until_it_is_there() -> None:
    api = Api(writer())

    async def act(client: Browser) -> None:
        async with client.get(f"{TABLES}?watch=true", headers=bearer(ANN)) as answer:
            (seen,) = (await documents(answer))["rows"]
            assert (seen["name"], seen["state"]) == ("flights", "Missing")
            await asyncio.sleep(0.1)
            await api.tell("ADDED", table())
            assert [one["state"] for one in (await documents(answer))["rows"]] == ["Ready"]
            await api.tell("DELETED", table())
            assert [one["state"] for one in (await documents(answer))["rows"]] == ["Missing"]
            await api.tell("DELETED", writer())
            assert (await documents(answer))["gone"] == [["team-a", "flights"]]

    run(api, act)


@pytest.mark.usefixtures("quick")
def test_a_table_is_followed_with_what_the_status_forgets() -> None:
    held = {"attempt": "team-a.load-1", "since": "2026-03-01T11:00:00Z"}
    api = Api(table(lock=held), writer())

    async def act(client: Browser) -> None:
        async with client.get(f"{TABLES}/team-a/flights?watch=true", headers=bearer(ANN)) as answer:
            (bar,) = (await documents(answer))["lanes"][0]["bars"]
            assert (bar["kind"], bar["open"]) == ("held", True)
            await asyncio.sleep(0.1)
            await api.tell("MODIFIED", table())
            (bar,) = (await documents(answer))["lanes"][0]["bars"]
            assert (bar["kind"], bar["open"]) == ("held", False)
            await api.tell("DELETED", table())
            assert (await documents(answer))["error"]["status"] == 404
            assert await answer.content.readline() == b""

    run(api, act)


@pytest.mark.usefixtures("quick")
def test_what_changes_beside_a_table_is_not_told_at_once() -> None:
    api = Api(table(), writer(), table("team-a", "orders"), writer("team-a", "live", "orders"))

    async def act(client: Browser) -> None:
        for path in (f"{TABLES}/team-a/flights", "/api/v1/writers/team-a/load"):
            async with client.get(f"{path}?watch=true", headers=bearer(ANN)) as answer:
                await documents(answer)
                await asyncio.sleep(0.1)
                next_one = asyncio.create_task(documents(answer))
                await api.tell("MODIFIED", table("team-a", "orders", state="other"))
                await api.tell("MODIFIED", writer("team-a", "live", "orders", conflicts=9))
                await asyncio.sleep(0.3)
                assert not next_one.done()
                await api.tell("MODIFIED", writer("team-a", "load", conflicts=len(path)))
                await next_one
                await api.tell("DELETED", writer("team-a", "load"))
                await documents(answer)
            await api.tell("ADDED", writer())

    run(api, act)


@pytest.mark.usefixtures("quick")
def test_a_watch_that_is_too_old_is_begun_again() -> None:
    api = Api(table())
    api.gone = 2

    async def act(client: Browser) -> None:
        async with client.get(f"{TABLES}?watch=true", headers=bearer(ANN)) as answer:
            await documents(answer)
            await asyncio.sleep(0.2)
            await api.tell("MODIFIED", table(conditions=[condition("Ready", "False", "Stalled")]))
            assert (await documents(answer))["rows"][0]["state"] == "NotReady"

    run(api, act)
    assert len([path for path in api.paths() if "limit" in path]) == 4, "each list twice"


@pytest.mark.usefixtures("quick")
def test_a_watch_that_is_silent_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server says something each minute; one that has lost its power says nothing."""
    assert cluster._WATCH.sock_read is not None
    assert 60 < cluster._WATCH.sock_read < cluster.WATCH_SECONDS / 2
    monkeypatch.setattr(cluster, "_WATCH", aiohttp.ClientTimeout(total=60, sock_read=0.5))
    api = Api(table())

    async def act(client: Browser) -> None:
        async with client.get(f"{TABLES}/team-a/flights?watch=true", headers=bearer(ANN)) as answer:
            await documents(answer)
            while len([path for path in api.paths() if "watch=true" in path]) < 4:
                await asyncio.sleep(0.05)

    run(api, act)


@pytest.mark.usefixtures("quick")
def test_a_right_that_is_taken_away_ends_the_stream() -> None:
    api = Api(table())

    async def act(client: Browser) -> None:
        async with client.get(f"{TABLES}?watch=true", headers=bearer(ANN)) as answer:
            await documents(answer)
            await asyncio.sleep(0.1)
            del api.rights[ANN]
            api.end_watches()
            assert (await documents(answer))["error"]["status"] == 401

    run(api, act)


@pytest.mark.usefixtures("quick")
def test_there_are_so_many_streams_and_no_more() -> None:
    api = Api(table())

    async def act(client: Browser) -> None:
        async with client.get(f"{TABLES}?watch=true", headers=bearer(ANN)) as answer:
            await documents(answer)
            await got(client, f"{TABLES}?watch=true", status=503)
            await got(client, TABLES)

    run(api, act, most_streams=1)


@pytest.mark.usefixtures("quick")
def test_one_token_does_not_take_every_stream() -> None:
    api = Api(table("team-b"))

    async def act(client: Browser) -> None:
        path = f"{TABLES}?namespace=team-b&watch=true"
        async with client.get(path, headers=bearer(ANN)) as one, client.get(path, headers=bearer(ANN)) as other:
            await documents(one)
            await documents(other)
            assert "with one token" in (await got(client, path, status=503))["error"]["message"]
            async with client.get(path, headers=bearer(BOB)) as answer:
                assert (await documents(answer))["all"]
        await asyncio.sleep(0.2)
        async with client.get(path, headers=bearer(ANN)) as answer:
            assert answer.status == 200, "a place that was given back"

    run(api, act, most_streams=8)


def test_single_answers_are_counted_and_lists_are_read_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [f"user{n}" for n in range(4)]
    api = Api(table(), rights=dict.fromkeys(tokens, ("*",)))
    go, at_once, most = asyncio.Event(), 0, 0
    answered = api._answer

    async def held(request: web.Request) -> web.StreamResponse:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await go.wait()
        try:
            return await answered(request)
        finally:
            at_once -= 1

    async def status(client: Browser, token: str) -> int:
        async with client.get(TABLES, headers=bearer(token)) as answer:
            return int(answer.status)

    async def act(client: Browser) -> None:
        asking = [asyncio.create_task(status(client, one)) for one in tokens for _ in range(3)]
        while sum(one.done() for one in asking) < 4:
            await asyncio.sleep(0.01)
        assert {one.result() for one in asking if one.done()} == {503}
        while at_once < cluster.MOST_LISTS:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.5)  # others would have come by now
        go.set()
        assert sorted(await asyncio.gather(*asking)) == [200] * 8 + [503] * 4

    monkeypatch.setattr(api, "_answer", held)
    run(api, act)
    assert most == cluster.MOST_LISTS


@pytest.mark.parametrize(("number", "length", "hidden"), [(60, 200_000, True), (30, 20_000, False)])
def test_long_events_are_left_out_or_cut(number: int, length: int, hidden: bool) -> None:
    about = {"kind": "HudiTable", "name": "flights"}
    one = {"kind": "events", "involvedObject": about, "reason": "Ready", "message": "x" * length}
    one |= {"metadata": {"namespace": "team-a", "name": "flights"}, "lastTimestamp": "2026-03-01T11:59:00Z"}
    api = Api(table(), *[one] * number)

    async def act(client: Browser) -> None:
        found = await got(client, f"{TABLES}/team-a/flights")
        assert found["eventsHidden"] is hidden
        assert (found["told"] == []) is hidden
        assert len(json.dumps(found)) < 1 << 20

    run(api, act)


def test_a_watch_is_asked_for_again_before_long() -> None:
    """The API server judges a watch once, at its beginning."""
    assert cluster.WATCH_SECONDS <= 300
