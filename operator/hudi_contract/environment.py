"""Names of the inputs that the operator gives to a driver or an agent.

Environment variables, files, keys of Secrets, classes of Spark's configuration.

The Java module has the same variables (`contract/Environment.java`); both are compared with
`protocol.json`.
"""

from typing import Final

ETCD_ENDPOINTS: Final = "HUDI_OPERATOR_ETCD_ENDPOINTS"
"""Addresses of etcd, comma separated."""
ETCD_PREFIX: Final = "HUDI_OPERATOR_ETCD_PREFIX"
"""Prefix of all keys in etcd."""
ETCD_CA: Final = "HUDI_OPERATOR_ETCD_CA"
"""File with the certificate authority of etcd or its gateway."""
ETCD_TOKEN: Final = "HUDI_OPERATOR_ETCD_TOKEN"  # noqa: S105
"""File with the token that the pod shows to the gateway."""
ETCD_CERT: Final = "HUDI_OPERATOR_ETCD_CERT"
"""File with a client certificate for etcd; not in pods of tables."""
ETCD_KEY: Final = "HUDI_OPERATOR_ETCD_KEY"
"""File with the key of that certificate."""
TABLE_ID: Final = "HUDI_OPERATOR_TABLE_ID"
"""Id of the driver's table."""
TABLE_PATH: Final = "HUDI_OPERATOR_TABLE_PATH"
"""Canonical base path of the driver's table."""
ATTEMPT: Final = "HUDI_OPERATOR_ATTEMPT"
"""Id of the attempt."""
ROLE: Final = "HUDI_OPERATOR_ROLE"
"""Role of the process, one of `words.Role`."""
PRIORITY: Final = "HUDI_OPERATOR_PRIORITY"
"""Priority of the writer in the queue for the lock."""
STOP_GRACE_SECONDS: Final = "HUDI_OPERATOR_STOP_GRACE_SECONDS"
"""Seconds between SIGTERM and SIGKILL."""
S3_CREDENTIALS: Final = "HUDI_OPERATOR_S3_CREDENTIALS"
"""Folder of the Secret with the S3 keys."""
PROGRAM: Final = "HUDI_OPERATOR_PROGRAM"
"""`true` when the process runs code of a user; set by the runtime itself."""
JOB: Final = "HUDI_OPERATOR_JOB"
"""Another file than the mounted one with the job; tests set it."""
TERMINATION_MESSAGE: Final = "HUDI_OPERATOR_TERMINATION_LOG"
"""Another file than the kubelet's for the termination message; tests set it."""
AGENT_THREADS: Final = "HUDI_OPERATOR_AGENT_THREADS"
"""Number of threads of an agent; tests set it."""
POD_NAME: Final = "POD_NAME"
"""Name of the pod."""
POD_NAMESPACE: Final = "POD_NAMESPACE"
"""Namespace of the pod."""
POD_UID: Final = "POD_UID"
"""Uid of the pod."""
NODE_NAME: Final = "NODE_NAME"
"""Node of the pod."""

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
