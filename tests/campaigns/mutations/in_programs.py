"""Mutations of programs with a main class, and of what user code brings along."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import SECURITY, mutation

_HUDI = "tests/tiers/hudi/test_jvm_programs.py"
_RULES = "tests/tiers/unit/plan/writers/test_source_tables.py"

PROGRAMS = (
    mutation(
        "threads-of-a-program-commit-on",
        "F626",
        "what a program has left running begins a write after its commits were counted",
        a("writer/attempt", "                self._session.program_ended()\n", "                pass\n"),
        f"{_HUDI}::test_threads_that_go_on_end_with_main",
    ),
    mutation(
        "threads-of-a-program-take-the-lock",
        "F626",
        "what a program has left running has the lock when its session would leave",
        j("OwnInstants", "if (over && pending.isEmpty()) {", "if (false) {"),
        t("AcquireTest.whatAnEndedProgramHasLeftRunningTakesNoLock"),
        f"{_HUDI}::test_threads_that_go_on_end_with_main",
    ),
    mutation(
        "threads-of-a-program-wait-on",
        "F626",
        "what waited for the lock when its program ended waits for minutes, and has it in the end",
        j("Session", "        instants.requireLockNeeded();\n        liveness.durations", "        liveness.durations"),
        t("AcquireTest.whatAnEndedProgramHasLeftWaitingWaitsNoLonger"),
    ),
    mutation(
        "only-what-is-named-is-counted",
        "F626",
        "commits of a program that passes no metadata are in no status",
        a("writer/application", "instant.requested in completed or "),
        f"{_HUDI}::test_a_module_of_a_wheel",
        "tests/tiers/unit/runtime/writer/test_application.py::test_its_own_commits_since_it_began_are_counted",
    ),
    mutation(
        "the-last-exit-counts",
        "F627",
        "a program asks for an exit code after its end, and its attempt has that one",
        j(
            "Program",
            "if (program.exitCode == null && program.over.getCount() > 0) {",
            "if (program.failure == null) {",
        ),
        t("ProgramLoaderTest.anExitEndsTheProgramAndNotTheJvm"),
    ),
    mutation(
        "a-jar-with-another-hudi",
        SECURITY,
        "classes of another release of Hudi are loaded beside those that the guard was tested with",
        j("Artifacts", 'path.startsWith(prefix) && path.endsWith(".class")', "path.equals(prefix)"),
        t("ProgramLoaderTest.aJarWithClassesOfTheImageIsRefused"),
        f"{_HUDI}::test_what_cannot_be_loaded_is_told_before_anything_is_written",
    ),
    mutation(
        "jars-of-other-namespaces",
        SECURITY,
        "a program loads jars that are not below a prefix of its namespace",
        o("plan/writers/source_tables", "        or _deps_problem(view, writer)\n"),
        f"{_RULES}::test_what_code_brings_along_is_held_to_the_same_rules",
        "tests/tiers/unit/api/test_hostile_specs.py::test_an_attack",
    ),
)
