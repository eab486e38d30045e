"""Which read a batch is compared with (hudi_runtime/read/reads.py)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from hudi_runtime.read import reads as module
from hudi_runtime.read.reads import Reads
from hudi_runtime.read.update import Base


def in_a_thread(call: Callable[[], object]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def completion(base: Base | None) -> str | None:
    return base.completion if base else None


def test_an_ident_that_is_used_again_is_another_thread() -> None:
    """F443: A reads at 5 and writes; B, which often gets its ident, writes rows of 1."""
    for _ in range(20):
        reads, found, names = Reads(), list[str | None](), set[str]()

        def one(reads: Reads = reads, names: set[str] = names) -> None:
            reads.add(Base("5", "0"))
            assert completion(reads.of_batch()) == "5"
            names.add(reads.thread)

        def other(reads: Reads = reads, names: set[str] = names, found: list[str | None] = found) -> None:
            found.append(completion(reads.of_batch()))
            names.add(reads.thread)

        reads.add(Base("1", "0"))
        in_a_thread(one)
        in_a_thread(other)
        assert len(names) == 2
        assert found == ["1"]


def test_a_thread_that_begins_late_may_write_what_was_read_before() -> None:
    reads, found = Reads(), list[str | None]()
    reads.add(Base("1", "0"))
    in_a_thread(lambda: found.append(completion(reads.of_batch())))
    in_a_thread(lambda: found.append(completion(reads.of_batch())))
    assert found == ["1", "1"]


def test_workers_of_a_pool_write_what_was_read_last() -> None:
    """F444: one thread reads, others write; the reader never asks for a batch itself."""
    reads = Reads()
    with ThreadPoolExecutor(2) as pool:
        for time in ("1", "2", "3"):
            reads.add(Base(time, "0"))
            both = threading.Barrier(2)

            def write(both: threading.Barrier = both) -> str | None:
                both.wait(60)
                return completion(reads.of_batch())

            assert [found.result() for found in [pool.submit(write), pool.submit(write)]] == [time, time]


def test_of_many_reads_the_oldest_count_as_one(monkeypatch: object) -> None:
    reads = Reads()
    for number in range(module.MOST_READS + 50):
        reads.add(Base(f"{number:05}", "0"))
    assert len(reads._reads) == module.MOST_READS
    assert completion(reads.of_batch()) == "00000"
