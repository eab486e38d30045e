"""Questions to a registry of schemas, against a real HTTP server: what counts as known, as unknown,
and as no answer; addresses and credentials.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import KafkaRegistry
from hudi_runtime.process.errors import RuntimeFailure, UserCodeError, classify
from hudi_runtime.read import registry
from hudi_runtime.read.registry import Schema, schemas
from tests.tiers.unit.adapters.answering import Handler, answering

WORD = "s3cr3t-word"


@dataclass
class Server:
    """A server that gives these answers in order, the last one for ever."""

    url: str = ""
    answers: list[tuple[int, object]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)

    def asked(self, *ids: int, folder: str = "") -> dict[int, Schema]:
        return dict(schemas(KafkaRegistry(f"{self.url}/apis/ccompat/v7/", folder), ids, refused=lambda _: False))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(registry, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(registry, "_known", {})
    made = Server()

    class Answers(Handler):
        def do_GET(self) -> None:
            made.paths.append(self.path)
            made.authorizations.append(self.headers["Authorization"])
            status, said = made.answers.pop(0) if len(made.answers) > 1 else made.answers[0]
            if status == 302:
                self.send_response(302)
                self.send_header("Location", "/elsewhere")
                self.end_headers()
            else:
                self.answer(status, said)

    with answering(Answers) as url:
        made.url = url
        yield made


def test_a_schema_is_asked_for_once(server: Server) -> None:
    server.answers = [(200, {"schema": '"int"'}), (200, {"schema": "{}", "schemaType": "JSON"})]
    assert server.asked(7, 3, 7) == {3: Schema("AVRO", '"int"'), 7: Schema("JSON", "{}")}
    assert server.asked(7) == {7: Schema("JSON", "{}")}
    assert server.paths == ["/apis/ccompat/v7/schemas/ids/3", "/apis/ccompat/v7/schemas/ids/7"]
    assert server.authorizations == [None, None]


def test_one_replica_may_not_know_it_yet(server: Server) -> None:
    """F639: an id that was unknown once would make good records bad ones."""
    server.answers = [(404, {}), (404, {}), (404, {}), (200, {"schema": '"int"'})]
    assert server.asked(1) == {1: Schema("AVRO", '"int"')}
    server.answers = [(404, {"error_code": 40403})]
    server.paths.clear()
    assert server.asked(1, 2) == {1: Schema("AVRO", '"int"')}
    assert len(server.paths) == registry.LOOKS == 4


@pytest.mark.parametrize(
    ("status", "said", "kind", "told"),
    [
        (500, {}, FailureClass.INFRASTRUCTURE, "the registry answered 500 for the schema 1"),
        (302, {}, FailureClass.INFRASTRUCTURE, "the registry answered 302"),
        (401, {}, FailureClass.USER_ERROR, "the registry answered 401: it wants other credentials"),
        (200, ["schema"], FailureClass.USER_ERROR, "what answered is no registry of schemas"),
        (200, {"id": 1}, FailureClass.USER_ERROR, "what answered is no registry of schemas"),
    ],
)
def test_anything_else_is_no_answer(server: Server, status: int, said: object, kind: FailureClass, told: str) -> None:
    """It makes no record a bad one."""
    server.answers = [(status, said)]
    with pytest.raises(RuntimeFailure, match=told) as error:
        server.asked(1)
    assert classify(error.value).kind is kind
    assert server.paths == ["/apis/ccompat/v7/schemas/ids/1"], "a redirect is not followed"


def test_an_answer_has_an_end(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MAX_BYTES", 100)
    server.answers = [(200, {"schema": "x" * 200})]
    with pytest.raises(UserCodeError, match="more than 100 bytes"):
        server.asked(1)


def test_nobody_answers(server: Server) -> None:
    gone = replace(server, url="http://127.0.0.1:1")
    with pytest.raises(RuntimeFailure, match=r"no answer from 127\.0\.0\.1 port 1: Connection refused") as error:
        gone.asked(1)
    assert classify(error.value).kind is FailureClass.INFRASTRUCTURE


def test_the_pod_itself_is_not_asked(server: Server) -> None:
    server.answers = [(200, {"schema": '"int"'})]
    with pytest.raises(UserCodeError, match=r"registry\.url: 127\.0\.0\.1 is a loopback or link-local address"):
        schemas(KafkaRegistry(server.url), [1])
    assert server.paths == []


def test_credentials(server: Server, tmp_path: Path) -> None:
    server.answers = [(200, {"schema": '"int"'})]
    (tmp_path / "password").write_text(f"{WORD}\n")
    with pytest.raises(UserCodeError, match="the Secret has the key password alone") as error:
        server.asked(1, folder=str(tmp_path))
    assert WORD not in str(error.value)
    (tmp_path / "username").write_text("lake")
    server.asked(1, folder=str(tmp_path))
    assert server.authorizations == [f"Basic {base64.b64encode(f'lake:{WORD}'.encode()).decode()}"]
