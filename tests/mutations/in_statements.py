"""Mutations of what keeps statements and threads of user code from losing rows."""

from __future__ import annotations

from tests.mutations.in_jvm import j, t
from tests.mutations.mutation import mutation

STATEMENTS = (
    mutation(
        "executors-delete-timelines",
        "I8 F33",
        "a process without a session deletes a table's .hoodie",
        j("FolderRules", "} else if (META.equals(path.getName())) {", "} else if (META.equals(path.toString())) {"),
        t("FolderRulesTest.withoutASession"),
    ),
    mutation(
        "writers-delete-folders",
        "I8 F33",
        "a writer, or an executor of it, deletes a partition's folder",
        j("FolderRules", "    if (isWrittenHere(path)) {\n", "    if (path.isRoot()) {\n"),
        t("FolderRulesTest.asAWriter"),
        t("FolderRulesTest.asAnExecutorOfAWriter"),
    ),
)
