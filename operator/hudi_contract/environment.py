"""Names of the inputs that the operator gives to a driver or an agent for Python code.

Environment variables, files, keys of Secrets, classes of Spark's configuration. Names that only the
Java module reads are in `hudi_operator.manifests`.
"""

from typing import Final

ETCD_ENDPOINTS: Final = "HUDI_OPERATOR_ETCD_ENDPOINTS"
"""Addresses of etcd, comma separated."""
STOP_GRACE_SECONDS: Final = "HUDI_OPERATOR_STOP_GRACE_SECONDS"
"""Seconds between SIGTERM and SIGKILL."""
S3_CREDENTIALS: Final = "HUDI_OPERATOR_S3_CREDENTIALS"
"""Folder of the Secret with the S3 keys."""
S3_KEYS: Final = ("accessKeyId", "secretAccessKey", "sessionToken")
"""Keys of that Secret, and files of its folder."""

JOB_DIR: Final = "/etc/hudi/job"
JOB_FILE: Final = "job.json"
TERMINATION_LOG: Final = "/dev/termination-log"
CALLBACK_DIR: Final = "/etc/hudi/callback"
"""Folder of the Secret of `spec.commitCallback`."""
CALLBACK_KEYS: Final = ("bearerToken", "headers", "ca.crt")
"""Keys of that Secret, each a file of the folder, that are mounted into the pod. ``token`` is not
one of them: a Secret with a service account token is not for callbacks.
"""

GUARD: Final = "io.hudioperator.GuardedFileSystem"
"""The file system of each scheme in which a table may be stored."""
