"""Mutations of the commit callback: the content and order of events, their acknowledgement, and the
addresses to which nothing is ever sent.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, a
from tests.campaigns.mutations.mutation import AVAILABILITY, mutation

COURIER, PLAN, HTTP = (
    f"{RUNTIME}/callback/test_callback.py",
    f"{RUNTIME}/callback/test_callback_plan.py",
    f"{RUNTIME}/callback/test_callback_http.py",
)
MOVES = f"{COURIER}::test_the_position_moves_only_when_the_receiver_has_answered"

TELLING = (
    mutation(
        "told-without-an-answer",
        AVAILABILITY,
        "the position of the callback moves although the receiver has not answered 2xx",
        a(
            "callback/callback",
            "            self._failed(error)\n            return False\n",
            "            self._failed(error)\n",
        ),
        MOVES,
        f"{COURIER}::test_a_receiver_that_was_down_while_others_committed",
    ),
    mutation(
        "any-answer-counts",
        AVAILABILITY,
        "an answer that is no 2xx counts as one",
        a("callback/callback_http", "if 200 <= answer.status < 300:", "if answer.status:"),
        MOVES,
        f"{HTTP}::test_anything_else_is_none_and_its_text_is_not_shown",
        f"{HTTP}::test_a_redirect_is_not_followed",
    ),
    mutation(
        "a-pending-instant-is-told",
        AVAILABILITY,
        "a receiver is told of instants that are not completed, and may be rolled back",
        (
            a(
                "callback/callback_plan",
                "if not instant.pending and instant.action in tl.WRITE_ACTIONS",
                "if instant.action in tl.WRITE_ACTIONS",
            ),
            a(
                "callback/callback_plan",
                "if position.completion_time < e.completion <= until)",
                "if position.completion_time < (e.completion or e.instant) <= until)",
            ),
        ),
        f"{COURIER}::test_a_pending_commit_is_never_told_and_one_that_was_rolled_back_neither",
        f"{PLAN}::test_completed_writes_in_order_of_completion_and_nothing_that_is_pending",
    ),
    mutation(
        "told-out-of-order",
        AVAILABILITY,
        "commits are told in order of their requested times, so that one that ends late is left out",
        a("callback/callback_plan", "until), key=lambda e: e.completion)", "until), key=lambda e: e.instant)"),
        f"{COURIER}::test_commits_are_delivered_once_each_in_order_over_restarts",
        f"{PLAN}::test_completed_writes_in_order_of_completion_and_nothing_that_is_pending",
    ),
    mutation(
        "a-listing-is-believed-at-once",
        AVAILABILITY,
        "the position passes a commit that the listing did not show yet",
        a(
            "callback/callback_plan",
            'return max(clock, last.completion if last is not None else "")',
            'return "9" * 17',
        ),
        f"{PLAN}::test_a_commit_that_a_listing_shows_too_early_waits_for_the_next_one",
    ),
    mutation(
        "the-clock-is-read-too-late",
        AVAILABILITY,
        "the clock that bounds what a listing has is read after the listing",
        a(
            "callback/callback",
            "        clock = self._etcd.get(CLOCK)\n        timeline = listed()\n",
            "        timeline = listed()\n        clock = self._etcd.get(CLOCK)\n",
        ),
        f"{COURIER}::test_the_clock_is_read_before_the_listing",
    ),
    mutation(
        "a-gap-is-passed-over",
        AVAILABILITY,
        "commits that were archived undelivered are left out without a word",
        a(
            "callback/callback",
            "self._gap = plan.archived(self._table.archived_instants(), position) if suspect else None",
            "self._gap = None",
        ),
        f"{COURIER}::test_what_was_archived_meanwhile_is_told_as_a_gap_also_by_the_next_agent",
        f"{COURIER}::test_the_same_agent_sees_the_gap_too",
    ),
    mutation(
        "the-position-goes-back",
        AVAILABILITY,
        "an agent that was overtaken takes the position back",
        a(
            "callback/callback",
            "revision = self._etcd.cas(KEY, position.to_json(), self._revision)",
            "revision = self._etcd.put(KEY, position.to_json())",
        ),
        f"{COURIER}::test_two_agents_at_once_leave_nothing_out_and_never_take_the_position_back",
    ),
    mutation(
        "sent-to-this-pod-itself",
        AVAILABILITY,
        "events are sent to loopback, link-local and metadata addresses",
        a("process/addresses", "if any(refused(", "if all(refused("),
        f"{HTTP}::test_one_bad_address_among_good_ones_is_enough",
    ),
)
