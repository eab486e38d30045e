"""Mutations of keys: those of Spark's connections, and those of the storage."""

from __future__ import annotations

from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import mutation

MANIFESTS, LOOP = "tests/tiers/unit/manifests/test_manifests.py", "tests/tiers/unit/control/test_loop.py"
OWN_AGENTS = "tests/tiers/unit/plan/agent/test_own_agents.py"
ROTATED = "tests/tiers/hudi/test_credentials.py::test_a_rotated_key_reaches_writers_and_agents_that_run"

KEYS = (
    mutation(
        "a-driver-serves-whoever-connects",
        "F150",
        "Spark's connections are not authenticated",
        o("manifests/spark_conf", '"spark.authenticate": "true"', '"spark.authenticate": "false"'),
        "tests/tiers/hudi/test_wire.py::test_who_does_not_have_the_key_is_refused",
    ),
    mutation(
        "the-key-is-no-file",
        "F150",
        "Spark makes the key itself and gives it to executors in their environment",
        o("manifests/spark_conf", '"spark.authenticate.secret.file":', '"spark.authenticate.secret.none":'),
        f"{MANIFESTS}::test_every_driver_authenticates_and_encrypts",
    ),
    mutation(
        "a-key-is-made-once",
        "F150",
        "an operator that dies after it has made a pod leaves the pod without its key for ever",
        o("plan/core/spark_keys", 'if pod.phase != "Pending"', 'if pod.phase != "Running"'),
        f"{OWN_AGENTS}::test_a_pod_that_may_have_executors_gets_a_key_of_its_own_before_it_starts",
    ),
    mutation(
        "keys-are-read-once",
        "F151",
        "a process keeps the S3 keys of its first request",
        j("S3Credentials", "if (known == null || System.nanoTime()", "if (known == null && System.nanoTime()"),
        t("S3CredentialsTest.changedFilesAreReadAgain"),
        ROTATED,
    ),
    mutation(
        "two-keys-are-mixed",
        "F151",
        "the key's id comes from one version of the Secret, and the key from another one",
        j("S3Credentials", "Files.exists(link) ? link.toRealPath() : folder;", "Files.exists(link) ? link : folder;"),
        t("S3CredentialsTest.keysOfTwoVersionsAreNeverMixed"),
    ),
    mutation(
        "credentials-in-the-environment-are-kept-back",
        "F151",
        "nobody is told that a rotated Secret does not reach pods that run",
        o("plan/core/credentials", '"CredentialsRenewed", not fixed,', '"CredentialsRenewed", True,'),
        "tests/tiers/unit/plan/test_table_plan.py::test_credentials_that_cannot_change_are_told",
    ),
)
