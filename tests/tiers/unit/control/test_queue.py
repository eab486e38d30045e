"""The work queue in virtual time."""

from __future__ import annotations

import asyncio

from hudi_operator.control.queue import MIN_INTERVAL_SECONDS, WorkQueue

LOOP = asyncio.new_event_loop()
A, B = ("ns", "a"), ("ns", "b")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def take(queue: WorkQueue) -> tuple[str, str] | None:
    async def soon() -> tuple[str, str] | None:
        try:
            return await asyncio.wait_for(queue.get(), timeout=0.01)
        except TimeoutError:
            return None

    return LOOP.run_until_complete(soon())


def test_equal_requests_are_merged_and_the_earliest_counts() -> None:
    clock = Clock()
    queue = WorkQueue(clock=clock)
    queue.add(A, 50.0)
    queue.add(A)
    queue.add(A, 10.0)
    assert take(queue) == A
    queue.done(A, again=None)
    clock.now += 100
    assert take(queue) is None


def test_a_table_is_never_handed_out_twice_at_once() -> None:
    clock = Clock()
    queue = WorkQueue(clock=clock)
    queue.add(A)
    assert take(queue) == A
    queue.add(A)
    queue.add(B)
    assert take(queue) == B
    assert take(queue) is None
    queue.done(A, again=None)
    assert take(queue) is None, "not before the smallest interval"
    clock.now += MIN_INTERVAL_SECONDS
    assert take(queue) == A, "the request made meanwhile is not lost"


def test_a_table_comes_again_when_it_asked_for_it() -> None:
    clock = Clock()
    queue = WorkQueue(clock=clock)
    queue.add(A)
    take(queue)
    queue.done(A, again=5.0)
    clock.now += 4.9
    assert take(queue) is None
    clock.now += 0.2
    assert len(queue) == 1
    assert take(queue) == A


def test_failures_wait_ever_longer_up_to_a_limit_until_one_succeeds() -> None:
    queue = WorkQueue(clock=Clock())
    delays = [queue.failed(A) for _ in range(12)]
    assert delays[0] < 1.0
    assert delays[-1] >= 40
    assert max(delays) <= 80
    queue.succeeded(A)
    assert queue.failed(A) < 1.0


def test_after_a_failure_events_do_not_make_a_hot_loop() -> None:
    clock = Clock()
    queue = WorkQueue(clock=clock)
    queue.add(A)
    take(queue)
    queue.add(A)
    for _ in range(6):
        delay = queue.failed(A)
    queue.done(A, again=delay)
    queue.add(A)
    clock.now += 4.9
    assert take(queue) is None
    clock.now += 0.2
    assert take(queue) == A, "but a person who has mended it need not wait for the whole back-off"


def _served(queue: WorkQueue, clock: Clock, looks: int, *, seconds: float = 0.0125) -> list[tuple[str, str]]:
    """What one worker serves, each look of which takes its time and asks for another one."""
    served = []
    for _ in range(looks):
        key = take(queue)
        assert key is not None
        served.append(key)
        clock.now += seconds
        queue.done(key, again=0.0)
    return served


def test_namespaces_have_turns() -> None:
    """F276: one team's tables, however many and busy, are one namespace's turn."""
    clock = Clock()
    queue = WorkQueue(clock=clock)
    for n in range(500):
        queue.add(("busy", str(n)))
    assert {key[0] for key in _served(queue, clock, 40)} == {"busy"}
    for namespace in ("a", "b"):
        queue.add((namespace, "t"))
    assert [key[0] for key in _served(queue, clock, 4)].count("busy") == 2
    shares = [key[0] for key in _served(queue, clock, 300)]
    # Each may come again after MIN_INTERVAL_SECONDS: 16 looks later.
    assert {name: shares.count(name) // 5 for name in "ab"} == {"a": 3, "b": 3}


def test_within_a_namespace_the_longest_wait_counts() -> None:
    clock = Clock()
    queue = WorkQueue(clock=clock)
    for n in range(5):
        queue.add(("busy", str(n)))
        clock.now += 0.001
    queue.add(("a", "t"))
    assert [key[1] for key in _served(queue, clock, 6)] == ["0", "t", "1", "2", "3", "4"]
    assert len(queue) == 0


def test_a_key_that_is_ready_is_neither_lost_nor_doubled() -> None:
    clock = Clock()
    queue = WorkQueue(clock=clock)
    queue.add(A)
    queue.add(B)
    assert take(queue) == A
    queue.add(B)
    queue.add(B, 7.0)
    assert len(queue) == 1
    assert take(queue) == B
    assert take(queue) is None
