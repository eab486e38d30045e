"""Rules of the console: in whose name it asks the API server, and for what
(docs/operate/console.md).
"""

from __future__ import annotations

from tests.campaigns.mutations.mutation import Edit, mutation

_ASKING = "tests/tiers/unit/console/test_asking.py"
_SERVER = "tests/tiers/unit/console/test_server.py"


def c(module: str, old: str, new: str) -> Edit:
    return Edit(f"operator/hudi_console/{module}.py", old, new)


CONSOLE = (
    mutation(
        "a-path-is-made-of-any-name",
        "security",
        "a browser chooses the path that is asked for at the API server",
        c("asking", '    if not _NAME.fullmatch(given) or ".." in given', "    if not given"),
        f"{_ASKING}::test_no_path_is_made_of_a_hostile_name",
        f"{_SERVER}::test_a_hostile_path",
    ),
    mutation(
        "a-namespace-may-be-a-path",
        "security",
        "a browser chooses the path that is asked for at the API server",
        c("asking", "    if not _LABEL.fullmatch(given):", "    if not _LABEL.match(given):"),
        f"{_ASKING}::test_no_path_is_made_of_a_hostile_name",
    ),
    mutation(
        "other-sites-may-ask",
        "security",
        "a page of somebody else makes the console read with the token that a proxy adds",
        c("asking", "    if site not in OWN_SITES:", "    if not site:"),
        f"{_ASKING}::test_pages_of_other_sites_are_not_served",
        f"{_SERVER}::test_a_page_of_another_site_gets_nothing",
    ),
    mutation(
        "a-redirect-takes-the-token-along",
        "security",
        "whoever answers in the API server's place sends the token on",
        c("cluster", "allow_redirects=False", "allow_redirects=True"),
        f"{_SERVER}::test_an_api_server_that_fails_is_no_fault_of_the_user",
    ),
    mutation(
        "a-failure-is-logged-with-its-words",
        "security",
        "the log has the token of a user",
        c(
            "server",
            'LOG.error("%s: %s\\n%s", name, type(error).__name__, places)',
            'LOG.error("%s: %r\\n%s", name, error, places)',
        ),
        f"{_SERVER}::test_no_token_is_logged",
    ),
    mutation(
        "two-tokens-are-one",
        "security",
        "a user's own header goes before the one of the proxy that has signed them in",
        c("asking", 'if len(given) > 1 or scheme.lower() != "bearer"', 'if scheme.lower() != "bearer"'),
        f"{_ASKING}::test_what_is_no_token_is_refused_without_repeating_it",
        f"{_SERVER}::test_without_one_token_nothing_is_asked",
    ),
    mutation(
        "a-watch-lasts-for-ever",
        "security",
        "who has lost a right looks on for as long as the page is open",
        c("cluster", "WATCH_SECONDS = 240\n", "WATCH_SECONDS = 86_400\n"),
        f"{_SERVER}::test_a_watch_is_asked_for_again_before_long",
    ),
    mutation(
        "an-empty-row-is-left-out-by-its-name",
        "F588",
        "one writer named services makes the page of its table fail for everybody",
        Edit(
            "operator/hudi_kubectl/pictures.py",
            "        if kept or always:",
            '        if kept or name not in ("services", "settling"):',
        ),
        "tests/tiers/unit/kubectl/test_lanes.py::test_a_writer_may_have_the_name_of_a_row_of_the_table",
    ),
    mutation(
        "executors-are-listed-as-well",
        "F589",
        "each open page lists every executor of its namespace, again and again",
        c("asking", "hudioperator.io/writer,hudioperator.io/role=driver", "hudioperator.io/writer"),
        f"{_ASKING}::test_a_query_is_ours_alone",
    ),
    mutation(
        "each-change-makes-every-page-anew",
        "F589",
        "a change of any writer of a namespace is sent to all its pages",
        c("server", "if changed.isdisjoint(before | own) and", "if False and"),
        f"{_SERVER}::test_what_changes_beside_a_table_is_not_told_at_once",
    ),
    mutation(
        "one-token-takes-every-page",
        "F590",
        "a user with forty tabs leaves no page to anybody else",
        c("server", "if self._of[whose] >= self._most:", "if False:"),
        f"{_SERVER}::test_one_token_does_not_take_every_stream",
    ),
    mutation(
        "single-answers-are-not-counted",
        "F590",
        "whoever asks often enough at once takes the memory of all",
        c("server", "            with self._answers.taken(token):", "            if token:"),
        f"{_SERVER}::test_single_answers_are_counted_and_lists_are_read_in_turn",
    ),
    mutation(
        "all-lists-are-read-at-once",
        "F590",
        "whoever asks often enough at once takes the memory of all",
        c("cluster", "async with self._lists, self._asked(", "async with self._asked("),
        f"{_SERVER}::test_single_answers_are_counted_and_lists_are_read_in_turn",
    ),
    mutation(
        "long-events-make-the-page-fail",
        "F590",
        "who may write Events makes the page of a table fail",
        c("cluster", "        except TooLong:\n            return None\n", ""),
        f"{_SERVER}::test_long_events_are_left_out_or_cut",
    ),
    mutation(
        "a-token-is-stored",
        "F591",
        "what is forwarded to the same port next reads the token of the user",
        Edit(
            "operator/hudi_console/files/api.js",
            "  set: (value) => { held = value; },",
            "  set: (value) => { held = value; sessionStorage.setItem('token', value); },",
        ),
        f"{_SERVER}::test_a_token_is_stored_nowhere_and_the_page_has_an_origin_of_its_own",
    ),
)
