package io.hudioperator.contract;

/** Environment variables of a driver or an agent, with the names of {@code protocol.json}. */
public final class Environment {
    /** Addresses of etcd, comma separated. */
    public static final String ETCD_ENDPOINTS = "HUDI_OPERATOR_ETCD_ENDPOINTS";

    /** Prefix of all keys in etcd. */
    public static final String ETCD_PREFIX = "HUDI_OPERATOR_ETCD_PREFIX";

    /** File with the certificate authority of etcd or its gateway. */
    public static final String ETCD_CA = "HUDI_OPERATOR_ETCD_CA";

    /** File with the token that the pod shows to the gateway. */
    public static final String ETCD_TOKEN = "HUDI_OPERATOR_ETCD_TOKEN";

    /** File with a client certificate for etcd; not in pods of tables. */
    public static final String ETCD_CERT = "HUDI_OPERATOR_ETCD_CERT";

    /** File with the key of that certificate. */
    public static final String ETCD_KEY = "HUDI_OPERATOR_ETCD_KEY";

    /** Id of the driver's table. */
    public static final String TABLE_ID = "HUDI_OPERATOR_TABLE_ID";

    /** Canonical base path of the driver's table. */
    public static final String TABLE_PATH = "HUDI_OPERATOR_TABLE_PATH";

    /** Id of the attempt. */
    public static final String ATTEMPT = "HUDI_OPERATOR_ATTEMPT";

    /** Role of the process, one of {@link Words.Role}. */
    public static final String ROLE = "HUDI_OPERATOR_ROLE";

    /** Priority of the writer in the queue for the lock. */
    public static final String PRIORITY = "HUDI_OPERATOR_PRIORITY";

    /** Folder of the Secret with the S3 keys. */
    public static final String S3_CREDENTIALS = "HUDI_OPERATOR_S3_CREDENTIALS";

    /** {@code true} when the process runs code of a user; set by the runtime itself. */
    public static final String PROGRAM = "HUDI_OPERATOR_PROGRAM";

    /** Another file than the mounted one with the job; tests set it. */
    public static final String JOB = "HUDI_OPERATOR_JOB";

    /** Name of the pod. */
    public static final String POD_NAME = "POD_NAME";

    /** Namespace of the pod. */
    public static final String POD_NAMESPACE = "POD_NAMESPACE";

    /** Uid of the pod. */
    public static final String POD_UID = "POD_UID";

    /** Node of the pod. */
    public static final String NODE_NAME = "NODE_NAME";

    private Environment() {}
}
