"""Classification of failures and redaction of secrets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hudi_contract.outcomes import EXIT_CODES, FailureClass
from hudi_runtime.process import errors
from hudi_runtime.process.errors import JavaCause, classify_causes, redact
from tests.support.world.thrown import MOVED, Thrown

HUDI = "org.apache.hudi.exception."


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        (
            [("x.HoodieException", "wrapped"), ("x.HoodieException", "[HUDIOP-FENCED] this incarnation was fenced")],
            FailureClass.FENCED,
        ),
        (
            [(HUDI + "HoodieLockException", "Unable to acquire the lock. … [HUDIOP-LOCK-TIMEOUT] waited 660 s")],
            FailureClass.LOCK_TIMEOUT,
        ),
        ([(HUDI + "HoodieWriteConflictException", "Write conflict: instant 1 and 2")], FailureClass.WRITE_CONFLICT),
        (
            [
                ("org.apache.spark.SparkException", "Job aborted"),
                (HUDI + "HoodieEarlyConflictDetectionException", "early"),
            ],
            FailureClass.WRITE_CONFLICT,
        ),
        (
            [("java.util.ConcurrentModificationException", "Cannot resolve conflicts for overlapping writes")],
            FailureClass.WRITE_CONFLICT,
        ),
        (
            [(HUDI + "HoodieException", "Heartbeat for instant 2026 has expired, last heartbeat 0")],
            FailureClass.HEARTBEAT_LOST,
        ),
        (
            [("java.io.IOException", "x"), ("com.amazonaws.services.s3.model.AmazonS3Exception", "403")],
            FailureClass.STORAGE_UNREACHABLE,
        ),
        ([("java.nio.file.AccessDeniedException", "s3a://lake/x")], FailureClass.STORAGE_UNREACHABLE),
        ([("org.apache.spark.sql.AnalysisException", "[UNRESOLVED_COLUMN]")], FailureClass.USER_ERROR),
        (
            [(HUDI + "HoodieIOException", "x"), ("java.io.IOException", "[HUDIOP-NOT-OWNER] create of …")],
            FailureClass.USER_ERROR,
        ),
        ([(HUDI + "HoodieException", "[HUDIOP-PROGRESS-MOVED] instant 5")], FailureClass.INFRASTRUCTURE),
        ([(HUDI + "HoodieUpsertException", "x"), ("java.lang.OutOfMemoryError", "heap")], FailureClass.INFRASTRUCTURE),
        (
            [(HUDI + "HoodieSchemaEvolutionConflictException", "Detected incompatible concurrent schema evolution")],
            FailureClass.WRITE_CONFLICT,
        ),
        (
            [(HUDI + "HoodieWriteConflictException", "[HUDIOP-SCHEMA-MOVED] instant 5 has changed")],
            FailureClass.WRITE_CONFLICT,
        ),
        (
            [(HUDI + "HoodieException", "x"), (HUDI + "SchemaBackwardsCompatibilityException", "y")],
            FailureClass.SCHEMA_MISMATCH,
        ),
        ([(HUDI + "MissingSchemaFieldException", "y")], FailureClass.SCHEMA_MISMATCH),
        ([(HUDI + "HoodieException", "[HUDIOP-CLOCK-BEHIND] the wall clock of host h")], FailureClass.CLOCK_SKEW),
        ([(HUDI + "HoodieIOException", "[HUDIOP-CLOCK-NOT-PAST] instant 5 is not past")], FailureClass.CLOCK_SKEW),
        (
            [
                (HUDI + "HoodieIOException", "Failed to create file s3a://lake/t/.hoodie/timeline/5.commit.requested"),
                ("io.hudioperator.contract.TimelineRefusedException", "[HUDIOP-CLOCK-AHEAD] the wall clock of host h"),
            ],
            FailureClass.CLOCK_SKEW,
        ),
        (
            [(HUDI + "HoodieException", "[HUDIOP-HUDI-VERSION] the table is pinned to Hudi 1.2.0")],
            FailureClass.HUDI_VERSION_MISMATCH,
        ),
        (
            [
                ("x.HoodieException", "x"),
                ("java.lang.RuntimeException", "[HUDIOP-BAD-RECORD] topic t, partition 0, offset 2: …"),
            ],
            FailureClass.BAD_DATA,
        ),
        (
            [
                ("org.apache.spark.SparkException", "Malformed records are detected in record parsing."),
                ("java.io.EOFException", ""),
            ],
            FailureClass.BAD_DATA,
        ),
        (
            [
                (
                    "java.lang.IllegalStateException",
                    "Some data may have been lost because they are not available in Kafka any more",
                )
            ],
            FailureClass.INFRASTRUCTURE,
        ),
        (
            [
                ("x.HoodieException", "x"),
                ("java.lang.RuntimeException", "[HUDIOP-BAD-DATA] column p of record id='k' is …"),
            ],
            FailureClass.BAD_DATA,
        ),
        (
            [
                (
                    "java.lang.IllegalArgumentException",
                    'Partition path "s3a://lake/b" does not belong to base-path "s3a://lake/t"',
                )
            ],
            FailureClass.BAD_DATA,
        ),
        ([], FailureClass.INFRASTRUCTURE),
    ],
)
def test_classes(chain: list[tuple[str, str]], expected: FailureClass) -> None:
    assert classify_causes([JavaCause(*cause) for cause in chain]) is expected


GCS = "com.google.cloud.hadoop.repackaged.gcs.com.google.api.client."
JSON = GCS + "googleapis.json.GoogleJsonResponseException"
GET = "GET http://127.0.0.1:33529/storage/v1/b/bucket/o/a?fields=bucket,name,timeCreated"


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        (
            [
                ("java.io.IOException", f"Error accessing gs://bucket/a. reason=401 Unauthorized\n{GET}"),
                (JSON, f"401 Unauthorized\n{GET}"),
            ],
            FailureClass.STORAGE_UNREACHABLE,
        ),
        (
            [
                ("java.io.IOException", f"Error accessing gs://bucket/a. reason=403 Forbidden\n{GET}"),
                (JSON, f"403 Forbidden\n{GET}"),
            ],
            FailureClass.STORAGE_UNREACHABLE,
        ),
        (
            [("java.io.IOException", "Error getting 'gs://bucket/a' object"), (JSON, "null")],
            FailureClass.STORAGE_UNREACHABLE,
        ),
        (
            [
                ("java.io.IOException", f"Upload failed for 'gs://bucket/a/b'. details={JSON}: 404 Not Found"),
                (
                    JSON,
                    (
                        "404 Not Found\n"
                        "POST http://127.0.0.1:44477/upload/storage/v1/b/bucket/o?ifGenerationMatch=0&name=a/b&"
                        "uploadType=resumable"
                    ),
                ),
            ],
            FailureClass.STORAGE_UNREACHABLE,
        ),
        (
            [
                ("java.io.IOException", f"Error accessing gs://bucket/a. reason=412 Precondition Failed\n{GET}"),
                (JSON, f"412 Precondition Failed\n{GET}"),
            ],
            FailureClass.STORAGE_UNREACHABLE,
        ),
        # A missing file says nothing about the store, as with S3.
        (
            [
                (
                    "java.io.FileNotFoundException",
                    "Item not found: 'gs://bucket/a'. Note, it is possible that the live version is",
                )
            ],
            FailureClass.INFRASTRUCTURE,
        ),
        # What the project's own code has said goes before the store's words.
        (
            [("java.io.IOException", "[HUDIOP-FENCED] incarnation x is fenced"), (JSON, f"403 Forbidden\n{GET}")],
            FailureClass.FENCED,
        ),
    ],
)
def test_classes_of_google_cloud_storage(chain: list[tuple[str, str]], expected: FailureClass) -> None:
    """Chains of gcs-connector hadoop3-2.2.26 on a server that answers 401, 403, 404
    and 412; shortened.
    """
    assert classify_causes([JavaCause(*cause) for cause in chain]) is expected


def test_a_conflict_of_columns_is_none_of_file_groups() -> None:
    assert errors.concerns_schema([JavaCause(HUDI + "HoodieSchemaEvolutionConflictException", "x")])
    assert errors.concerns_schema([JavaCause(HUDI + "HoodieWriteConflictException", "[HUDIOP-SCHEMA-MOVED] instant 5")])
    assert not errors.concerns_schema(
        [JavaCause(HUDI + "HoodieWriteConflictException", "Write conflict: instant 1 and 2")]
    )


def test_a_write_that_stopped_at_a_marker_says_at_whose() -> None:
    """What EarlyConflictDetection.java says is understood, as a cause and inside of
    Spark's own text.
    """
    source = (
        Path(__file__).resolve().parents[5]
        / "spark-images/etcd-lock/src/main/java/io/hudioperator/EarlyConflictDetection.java"
    ).read_text()
    parts = re.search(r"HoodieEarlyConflictDetectionException\(\s*(\".*?)\);", source, re.S)
    assert parts is not None
    words = re.sub(
        r'"| \+ ',
        "",
        re.sub(
            r'" \+ (\w+) \+ "|" \+ (\w+)$',
            lambda m: {"instantTime": "17", "other": "16", "group": "p/f-0"}[m[1] or m[2]],
            " ".join(parts[1].split()),
        ),
    )
    for cause in (
        JavaCause(HUDI + "HoodieEarlyConflictDetectionException", words),
        JavaCause("org.apache.spark.SparkException", f"Job aborted: {words}\n at x"),
    ):
        assert errors.early_conflict([cause]) == ("17", "16", "p/f-0")
        assert classify_causes([cause]) is FailureClass.WRITE_CONFLICT
    assert errors.early_conflict([JavaCause("x", "Write conflict: instant 1 and 2")]) is None


def test_every_class_has_an_exit_code() -> None:
    assert set(EXIT_CODES) == set(FailureClass)
    assert {EXIT_CODES[kind] for kind in FailureClass} == {10, 11, 12, 13, 14, 15, 16}


def test_python_error_without_a_class_is_infrastructure() -> None:
    failure = errors.classify(ValueError("boom\nsecond line"))
    assert failure.kind is FailureClass.INFRASTRUCTURE
    assert failure.message == "ValueError: boom"
    assert failure.exit_code == 11


def test_user_code_is_to_blame_unless_something_below_failed() -> None:
    assert isinstance(errors.user_error(KeyError("x"), "f"), errors.UserCodeError)
    assert isinstance(errors.user_error(ConnectionRefusedError(), "f"), ConnectionRefusedError), (
        "the JVM is gone: not the user's fault"
    )


def test_a_program_is_not_to_blame_for_a_clean_or_another_writer() -> None:
    """F488: what is refused because of them is repeated."""
    found = errors.user_error(MOVED, "main.py")
    assert isinstance(found, errors.RuntimeFailure)
    assert found.failure is FailureClass.WRITE_CONFLICT
    assert str(found).startswith("main.py: [HUDIOP-SNAPSHOT-MOVED] clean 17")


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("s3a://lake/t/p=a/5cbbd5b2-7f5f-4fd5-b4a0-0a1b2c3d4e5f-0_0-12-34_20261129021500123.parquet", "Infrastructure"),
        ("s3a://lake/t/.00000003-7f5f-4fd5-b4a0-0a1b2c3d4e5f_20261129021500123.log.1_0-1-2", "Infrastructure"),
        ("s3a://landing/sales-2026-11-29.csv", "UserError"),
    ],
)
def test_a_program_is_not_to_blame_for_a_file_that_was_cleaned(file: str, kind: str) -> None:
    """F494: its rows were listed before a clean; the next attempt lists them anew."""
    of_a_task = f"Job aborted due to stage failure:\njava.io.FileNotFoundException: No such file: {file}\n\tat x"
    for thrown in (
        Thrown("org.apache.spark.SparkException", of_a_task),
        Thrown("org.apache.spark.SparkFileNotFoundException", f"File {file} does not exist."),
    ):
        found = errors.user_error(thrown, "main.py")
        assert isinstance(found, errors.RuntimeFailure)
        assert found.failure == kind


def test_a_program_is_not_to_blame_for_executors_that_were_lost() -> None:
    """A node is gone, or memory is too little: another attempt may help."""
    lost = (
        "Job aborted due to stage failure: Task 0 in stage 2.0 failed 4 times, most recent failure: Lost task 0.3 in "
        "stage 2.0 (TID 9) (10.0.0.7 executor 4): ExecutorLostFailure (executor 4 exited caused by one of the running "
        "tasks) Reason: The executor with id 4 exited with exit code 137(SIGKILL, possible container OOM)."
    )
    found = errors.user_error(Thrown("org.apache.spark.SparkException", lost), "main.py")
    assert isinstance(found, errors.RuntimeFailure)
    assert found.failure is FailureClass.INFRASTRUCTURE
    assert str(found).startswith("main.py: SparkException: Job aborted")


class Refused(Exception):
    """As py4j raises what a JVM has thrown: it is the throwable as well."""

    def __init__(
        self,
        what: str,
        name: str = "io.hudioperator.contract.TimelineRefusedException",
        message: str = "[HUDIOP-CLOCK-AHEAD] the wall clock of host h",
    ) -> None:
        super().__init__(what)
        self.java_exception = self
        self.name, self.message = name, message

    def getClass(self) -> Refused:
        return self

    def getName(self) -> str:
        return self.name

    def getMessage(self) -> str:
        return self.message

    def getCause(self) -> None:
        return None


def test_a_plan_is_no_message() -> None:
    """F476: it has the texts of our own checks, with their codes."""
    spark = "org.apache.spark.sql"
    unknown = "[UNRESOLVED_COLUMN] no column `nothing`; line 1 pos 7;\n'Project\n+- raise_error([HUDIOP-BAD-DATA] id)"
    for name, message, told in (
        ("catalyst.ExtendedAnalysisException", unknown, "[UNRESOLVED_COLUMN] no column `nothing`; line 1 pos 7"),
        ("catalyst.parser.ParseException", "\n[PARSE_SYNTAX_ERROR] at 'x'", "[PARSE_SYNTAX_ERROR] at 'x'"),
    ):
        found = errors.user_error(Refused("o1.sql", f"{spark}.{name}", message), "transform.sql")
        assert isinstance(found, errors.RuntimeFailure)
        assert (found.failure, str(found)) == (
            FailureClass.USER_ERROR,
            f"transform.sql: {name.rpartition('.')[2]}: {told}",
        )


def test_a_program_is_not_to_blame_for_its_hosts_clock() -> None:
    """F382: what is lost to a clock counts for no limit of retries."""
    refused = Refused("o1.save")
    found = errors.user_error(refused, "main.py")
    assert isinstance(found, errors.RuntimeFailure)
    assert found.failure is FailureClass.CLOCK_SKEW
    assert "host h" in str(found)


@pytest.mark.parametrize(
    "text",
    [
        "Access key AKIAIOSFODNN7EXAMPLE was refused",
        "fs.s3a.secret.key=wJalrXUtnFEMI/K7MDENG and more",
        "password: hunter22",
        '{"secretAccessKey": "hunter22"}',
        "s3a://hunter22:hunter22@bucket/x",
        "GET /x?X-Amz-Signature=hunter22&y=1",
        "Authorization: Bearer hunter22",
        "-----BEGIN PRIVATE KEY-----\nhunter22\n-----END PRIVATE KEY-----",
    ],
)
def test_redaction_of_what_looks_secret(text: str) -> None:
    result = redact(text)
    assert "<redacted>" in result
    assert not any(secret in result for secret in ("hunter22", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI"))


def test_redaction_of_values_that_were_cut() -> None:
    """F493: a check of rows cuts a value where it is computed, before anybody knows secrets."""
    token, other = "s3ss10n-" * 20, "0ther-" * 20
    said = f"column v is '{token[:80]}…', w is 'Bearer {other[:70]}…', x is 'plain…', y is '{token}' …"
    found = redact(said, secrets=[token, other])
    assert found == "column v is '<redacted>…', w is 'Bearer <redacted>…', x is 'plain…', y is '<redacted>' …"
    assert redact(f"'{token[:80]}'", secrets=[other]) == f"'{token[:80]}'"


def test_redaction_of_known_values() -> None:
    environ = {"AWS_SECRET_ACCESS_KEY": "s3cr3tvalue", "PATH": "/bin", "HUDI_OPERATOR_TOKEN_FILE": "/etc/token"}
    secrets = errors.environment_secrets(environ)
    assert secrets == ("s3cr3tvalue",)
    assert "s3cr3tvalue" not in redact("signed with s3cr3tvalue", secrets=secrets)


def test_keys_in_files_are_known_values_as_they_are_now(tmp_path: Path) -> None:
    environ = {"HUDI_OPERATOR_S3_CREDENTIALS": str(tmp_path)}
    assert errors.environment_secrets(environ) == ()
    for secret in ("first-key", "second-key"):
        (tmp_path / "secretAccessKey").write_text(f"{secret}\n")
        assert errors.environment_secrets(environ) == (secret,)


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("GCP_JSON", '{"type": "service_account", "private_key": "-----BEGIN\\nMIIEvQ\\n", "id": "nobody"}', "MIIEvQ"),
        ("AWS_SECRET_ACCESS_KEY", "/wJalrXUtnFEMI/K7MDENG", "/wJalrXUtnFEMI/K7MDENG"),
        ("DB_PWD", "hunter22", "hunter22"),
        ("API_KEY", "abcdef0123", "abcdef0123"),
        ("SIGNING_PEM", "first line\nQUJDREVGR0hJSktMTU5P", "QUJDREVGR0hJSktMTU5P"),
        ("APP_ANYTHING", "from-a-secret", "from-a-secret"),
    ],
)
def test_values_are_hidden_by_name(name: str, value: str, hidden: str) -> None:
    """F134: whole, by line and within JSON; all that come from Secrets, whatever their names."""
    secrets = errors.environment_secrets({name: value, "HUDI_OPERATOR_SECRET_PREFIXES": "APP_,MORE_", "HOME": "/tmp"})
    assert hidden not in redact(f"could not sign with {hidden}", secrets=secrets)
    assert value not in redact(f"could not sign with {value}", secrets=secrets)
    assert redact("the folder /tmp is full", secrets=secrets) == "the folder /tmp is full"


FILES = {
    "credentials": "[default]\naws_access_key_id = mounted-id\naws_secret_access_key = mounted+secret/1\n",
    "user": "mounted-user\n",
    "key.json": '{"private_key": "-----BEGIN\\nmountedMIIE\\n"}',
    "settings.yaml": "store:\n  password: 'mounted pass'\n",
}
"""A Secret as `Files`."""


@pytest.mark.parametrize("shown", ["mounted-user", "mounted+secret/1", "mountedMIIE", "mounted pass", "mounted-id"])
def test_files_of_mounted_secrets_are_hidden(tmp_path: Path, shown: str) -> None:
    """F192: what code reads from them may stand in the exception that ends it."""
    data = tmp_path / "lake" / "..2026"
    data.mkdir(parents=True)
    for name, text in FILES.items():
        (data / name).write_text(text)
    (data / "binary").write_bytes(b"\xff\xfe\x00")
    for name in (*FILES, "binary"):  # as the kubelet mounts a Secret
        (tmp_path / "lake" / name).symlink_to(f"..2026/{name}")
    environ = {"HUDI_OPERATOR_SECRET_FOLDERS": f"{tmp_path}/lake,{tmp_path}/missing"}
    secrets = errors.environment_secrets(environ)
    assert shown not in redact(f"the store refuses ({shown})", secrets=secrets)
    assert redact("the store refuses", secrets=secrets) == "the store refuses"


def test_files_of_mounted_secrets_are_hidden_as_they_are_now(tmp_path: Path) -> None:
    environ = {"HUDI_OPERATOR_SECRET_FOLDERS": str(tmp_path)}
    for value in ("first-value", "second-value"):
        (tmp_path / "any").write_text(value)
        assert errors.environment_secrets(environ) == (value,)


def test_places_of_secrets_are_shown() -> None:
    environ = {
        "AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/token",
        "HUDI_OPERATOR_ETCD_KEY": "/etc/hudi/etcd/tls.key",
        "TZ": "UTC",
    }
    assert errors.environment_secrets(environ) == ()


def test_equal_failures_give_equal_messages() -> None:
    text = (
        "denied (Service: Amazon S3; Status Code: 403; Error Code: X; Request ID: AB1; S3 Extended Request ID: "
        "cD+/2=; Proxy: null), X"
    )
    assert redact(text) == "denied (Service: Amazon S3; Status Code: 403; Error Code: X), X"


def test_ordinary_text_stays() -> None:
    text = "instant 20260101000000001 of s3a://lake/flights conflicts in month=1/fg-1"
    assert redact(text) == text


def test_a_message_of_a_record_is_one_short_line_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_PASSWORD", "s3cr3t-of-the-store")
    text = f"the store refused s3cr3t-of-the-store {'x' * 1000}\n  at line 2"
    for told in (text, RuntimeError(text), errors.UserCodeError(text)):
        found = errors.record_message(told)
        assert "the store refused <redacted>" in found
        assert len(found) == errors.MESSAGE_LIMIT
        assert "\n" not in found
    assert errors.record_message("short") == "short"


def test_messages_of_records_are_made_in_one_place() -> None:
    """Each other place could forget the limit or the secrets."""
    runtime = Path(errors.__file__).parents[1]
    named = {path.name for path in runtime.rglob("*.py") if "MESSAGE_LIMIT" in path.read_text(encoding="utf-8")}
    assert named == {"errors.py"}
