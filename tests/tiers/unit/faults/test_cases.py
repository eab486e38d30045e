"""The list of acceptance cases names tests that exist.

The proxy of the fault runs does what it says.
"""

from __future__ import annotations

import http.client
import http.server
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.campaigns.faults import proven, table
from tests.campaigns.faults.cases import CASES, Case, numbers_of
from tests.support import ROOT
from tests.support.evidence import catalog
from tests.support.harness import s3proxy


def scenarios() -> set[str]:
    text = (ROOT / "tests/campaigns/faults/scenarios.py").read_text()
    return set(re.findall(r'Scenario\(\s*"([a-z-]+)"', text))


def test_forty_cases_in_order() -> None:
    assert [case.number for case in CASES] == list(range(1, 41))
    assert all(case.tests for case in CASES), "also of what is new: a case without a test was said not to be offered"


def test_every_case_says_which_invariants_it_is_about() -> None:
    stated = set(re.findall(r"\bI\d+\b", (ROOT / "docs/design/protocol.md").read_text()))
    for case in CASES:
        named = re.findall(r"\bI\d+\b", case.about)
        assert set(named) <= stated
        assert named or case.about in ("availability", "isolation"), case.number
    assert {name for case in CASES for name in re.findall(r"\bI\d+\b", case.about)} >= {f"I{n}" for n in range(1, 12)}


def test_every_named_test_exists() -> None:
    missing = []
    for case in CASES:
        for test in case.tests:
            place, _, name = test.partition("::")
            if place == "faults":
                found = name in scenarios()
            else:
                path = ROOT / place
                found = path.exists() and f" {name}(" in path.read_text()
            if not found:
                missing.append(f"{case.number}: {test}")
    assert not missing


def test_a_fault_is_of_the_cases_that_name_it() -> None:
    """Its row and the rows of the cases cannot say different things."""
    assert {name: numbers_of(name) for name in ("inside-the-drain", "quorum-lost", "empty-completed-file")} == {
        "inside-the-drain": "3, 8",
        "quorum-lost": "15",
        "empty-completed-file": "–",
    }
    assert {numbers_of(name) for name in scenarios()} >= {"5", "9", "2, 27", "–"}


def test_every_case_is_proven_by_a_mutation() -> None:
    """A test that nothing is known to make fail shows nothing."""
    assert [case.number for case in CASES if not proven.mutations_of(case)] == []


def test_what_a_case_is_proven_by() -> None:
    case = Case(
        1,
        "f",
        "e",
        "I1",
        ("faults::paused-writer", "tests/tiers/unit/plan/gate/test_gate.py::test_a_gate_from_another_cluster_freezes"),
    )
    bad = {("paused-writer", "stock"): {"verdict": "corrupt"}, ("paused-writer", "ours"): {"verdict": "corrupt"}}
    cells = proven.failed_cells(case, ("stock", "lease", "ours"), lambda fault, setup: bad.get((fault, setup)))
    assert (cells, proven.mutations_of(case)) == (["paused-writer/stock"], ["another-etcd-is-trusted"])
    assert proven.words(cells, ["a", "b", "c", "d", "e"], 2) == (
        "corrupt: `paused-writer/stock`; mutations: `a`, `b`, `c`, `d` and 1 more; 2 listed, not judged"
    )
    assert proven.words([], [], 0) == "–"
    rows = [(case, cells, ["a"]), (Case(2, "f", "e", "I2", ("x",)), [], []), (Case(3, "f", "e", "I3"), [], [])]
    assert proven.words([], ["a", "b"], 0, 1) == "mutations: `a`, `b` (1 of them of earlier code)"
    assert proven.counted(rows, lambda mutation: False).startswith(
        "2 of 40 cases have tests (none: 3); another lock fails in a cell above: 1, one of their tests has caught a "
        "mutation: 1, "
    )
    assert proven.counted(rows, lambda mutation: False).endswith("mutation: 1, neither: 2")
    assert proven.counted(rows, lambda mutation: True).endswith(
        "mutation: 1 (1 of them by outcomes of earlier code alone), neither: 2"
    )


def test_an_outcome_is_of_earlier_code_when_its_key_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    one = next(one for one in proven.MUTATIONS if one.id == "another-etcd-is-trusted")
    now = proven.own_key(one, proven.tracked())
    for key, earlier in ((now, False), ("0" * 24, True)):
        monkeypatch.setattr(proven, "stored", lambda of, key=key: {"outcome": "caught", "key": key})
        assert proven.of_earlier_code(one.id) is earlier


def test_a_case_says_which_of_its_tests_have_no_result_or_a_bad_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is missing is hidden by a dash."""
    file = "tests/tiers/e2e/test_pod_executors.py"
    first, second = (test.name for test in catalog.tests(file))
    case = Case(12, "f", "e", "I5", (f"{file}::{first}", f"{file}::{second}"))
    run = {"commit": "abc", "at": "2030-01-01T00:00Z", "tests": 1}
    stored: dict[str, Any] = {}
    assert table._open(case, stored) == f"no result noted: `{first}`, `{second}`"
    stored[file] = {first: {**run, "outcome": "failed"}, second: {**run, "outcome": "passed"}}
    assert table._open(case, stored) == f"**failed**: `{first}`"
    stored[file][first]["outcome"] = "passed"
    assert table._open(case, stored) == "–"
    monkeypatch.setattr(catalog, "ids", lambda file: (f"{first}[a]", f"{first}[b]", second))
    stored[file] = {f"{first}[a]": stored[file][first], second: stored[file][second]}
    assert table._open(case, stored) == f"no result noted: `{first}[b]`"


class Store(http.server.BaseHTTPRequestHandler):
    puts: list[str]

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.puts.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def proxy() -> Iterator[s3proxy.Proxy]:
    Store.puts = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = s3proxy.Proxy("127.0.0.1", ("127.0.0.1", server.server_address[1]))
    yield found
    found.stop()
    server.shutdown()
    server.server_close()


TIMELINE = "/lake/t/.hoodie/timeline/20260101000000100_20260101000000200.commit"


def put(proxy: s3proxy.Proxy, path: str, *, timeout: float = 5) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=timeout)
    connection.request("PUT", path, body=b"x")
    return connection.getresponse().status


def test_a_held_request_is_delivered_although_its_sender_is_gone(proxy: s3proxy.Proxy) -> None:
    held = proxy.hold_next(s3proxy.completed)
    assert put(proxy, "/lake/t/p/x.parquet") == 200
    with pytest.raises(TimeoutError):
        put(proxy, TIMELINE, timeout=0.3)
    assert held.arrived.wait(5)
    assert Store.puts == ["/lake/t/p/x.parquet"]
    held.deliver.set()
    assert held.delivered.wait(5)
    assert Store.puts[-1] == TIMELINE
    assert " 200 " in held.answer
    assert put(proxy, TIMELINE) == 200, "one only"


def test_of_a_held_answer_the_request_has_arrived(proxy: s3proxy.Proxy) -> None:
    held = proxy.hold_answer(s3proxy.completed)
    with pytest.raises(TimeoutError):
        put(proxy, TIMELINE, timeout=0.3)
    assert held.arrived.wait(5)
    assert Store.puts == [TIMELINE]
    held.deliver.set()
    assert put(proxy, TIMELINE) == 200, "one only"


def test_refused_requests_do_not_reach_the_store(proxy: s3proxy.Proxy) -> None:
    refused = proxy.refuse(s3proxy.completed, times=2)
    assert [put(proxy, TIMELINE) for _ in range(3)] == [503, 503, 200]
    assert len(refused.lines) == 2
    assert Store.puts == [TIMELINE]
    assert len(proxy.lines) == 3


def test_kinds_of_requests() -> None:
    inside = TIMELINE.replace("/t/", "/t/.hoodie/metadata/")
    assert s3proxy.completed(f"PUT {TIMELINE} HTTP/1.1")
    assert not s3proxy.completed(f"PUT {inside} HTTP/1.1")
    assert s3proxy.completed_in_metadata(f"PUT {inside} HTTP/1.1")
    assert s3proxy.begun_in_metadata(
        "PUT /lake/t/.hoodie/metadata/.hoodie/timeline/20260101000000100.deltacommit.inflight HTTP/1.1"
    )
    assert not s3proxy.begun_in_metadata("PUT /lake/t/.hoodie/timeline/20260101000000100.deltacommit.inflight HTTP/1.1")
    assert s3proxy.data_file("PUT /lake/t/p/x_0-1-1_20260101000000100.parquet HTTP/1.1")
    assert not s3proxy.data_file("PUT /lake/t/.hoodie/.temp/20260101000000100/p/x.parquet.marker.CREATE HTTP/1.1")
    assert s3proxy.listing("GET /lake/?list-type=2&prefix=t HTTP/1.1")
    assert not s3proxy.listing("GET /lake/t/x HTTP/1.1")
    assert s3proxy.deletion("DELETE /lake/t/x HTTP/1.1")
    assert s3proxy.deletion("POST /lake/?delete HTTP/1.1")
    assert not s3proxy.deletion("POST /lake/t/x?uploads HTTP/1.1")
