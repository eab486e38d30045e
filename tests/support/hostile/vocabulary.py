"""Words of the grammar: ordinary ones first, and what means something to somebody behind the
operator.
"""

from __future__ import annotations

NAMESPACE = "team"
PREFIX = "s3a://lake/team"
ENDPOINT = "http://s3:9000"
OF_OTHERS = "of-others"
"""A Secret, and an account, that no table may use."""
TOKENS = (
    "\n", "\r", "\r\n", "=", ":", "#", "!", "\\", " ", "\t", "\f", "\x00", "\x85", "\u2028", "\u00a0", "$", "$$",
    "$(POD_IP)", "$(AWS_SECRET_ACCESS_KEY)", "${env:SECRET}", "${env.SECRET}", "`id`", "$(id)", "'", '"', "`", ";",
    "|", "&", "%", "%2e%2e", "..", "/../", "/./", "{a,..}", "{", "}", "*", "?", "[", "]", "@", ",", "- ", "---\n",
    "{{x}}", "&a", "*a", "!!python/object:os.system", "\nhoodie.write.lock.provider=x.Y", "\nspark.plugins=",
    "\nspark.driver.extraJavaOptions=-javaagent:/tmp/x.jar", "\n      hostPID: true", "include=/tmp/x",
    "file:///etc/hudi/etcd/tls.key", " -javaagent:/tmp/x.jar", "\u0130", "ſ", "K",
)  # fmt: skip
"""Pieces that mean something to one of the readers behind the operator."""
PATHS = (
    PREFIX + "/in", PREFIX + "/in/*.csv", PREFIX + "/{a,b}/x", "s3a://lake/other", "file:///etc/passwd",
    "s3a://lake/team/../other", "s3a://lake/team/{x,..}/t", "s3a://lake/teams/x", "s3://lake//team/x/",
    "gs://lake/team/x", "hdfs:///x", "/etc/passwd", "local:///x", "s3a://user:password@lake/team/x",
    r"s3a://lake/team/x\[1\].csv", r"s3a://lake/team/.\./other", "abfss://c@a.dfs.core.windows.net/team/../x",
    "S3A://lake/team/x", "jar:file:///x!/", "s3a://lake/team/%2e%2e/x",
)  # fmt: skip
VARIABLES = (
    "APP_MODE", "BASH_ENV", "LD_PRELOAD", "ld_preload", "JAVA_TOOL_OPTIONS", "PYTHONPATH", "PATH", "HOME", "ENV",
    "SHELLOPTS", "GCONV_PATH", "GLIBC_TUNABLES", "SPARK_CONF_DIR", "HUDI_OPERATOR_ROLE", "CLASSPATH", "PS4", "IFS",
    "OPENSSL_CONF", "TMPDIR", "AWS_CONFIG_FILE", "AWS_SECRET_ACCESS_KEY", "POD_IP", "BASH_FUNC_exec%%", "A B", "A=B",
    "é", "KUBECONFIG", "HADOOP_CONF_DIR", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "HTTPS_PROXY", "MODE2",
)  # fmt: skip
JAVA = (
    "-XX:+UseG1GC", "-Xss4m", "-XX:MaxGCPauseMillis=100", "-XX:VMOptionsFile=/tmp/x", "-XX:VMOptionsFile=1",
    "-XX:Flags=1", "-XX:OnError=1", "-XX:OnOutOfMemoryError=kill", "-javaagent:/tmp/x.jar", "-agentpath:/tmp/x.so",
    "-Dfs.s3a.impl=x", "-XX:+UnlockDiagnosticVMOptions", "@/tmp/x", "-cp", "-XX:HeapDumpPath=/tmp/x.hprof",
    "-XX:ErrorFile=/dev/termination-log", "-Xlog:gc*", "-Xlog:gc:file=/tmp/x", "-XX:SharedArchiveFile=x",
    "-Xbootclasspath/a:x", "-XX:CompileCommandFile=x",
)  # fmt: skip
SPARK = (
    "spark.sql.shuffle.partitions", "spark.sql.ansi.enabled", "spark.plugins", "Spark.Plugins",
    "spark.sql.extensions", "spark.jars", "spark.driver.extraClassPath", "spark.hadoop.fs.s3a.impl", "spark.master",
    "spark.executorEnv.X", "spark.eventLog.dir", "spark.redaction.regex", "spark.sql.runSQLOnFiles",
    "spark.kubernetes.driver.pod.name", "spark.sql.files.maxPartitionBytes",
)  # fmt: skip
HUDI = (
    "hoodie.parquet.max.file.size", "hoodie.upsert.shuffle.parallelism", "hoodie.write.lock.provider",
    "Hoodie.Write.Lock.Provider", "hoodie.table.name", "hoodie.write.record.merge.custom.implementation.classes",
    "hoodie.bloom.index.parallelism", "include",
)  # fmt: skip
STORAGE = (
    "fs.s3a.endpoint", "fs.s3a.path.style.access", "fs.s3a.impl", "fs.s3a.endpoint:x", "fs.defaultFS",
    "hudi.operator.guard.path", "fs.s3a.secret.key", "fs.azure.shellkeyprovider.script", "fs.s3a.custom.signers",
    "spark.hadoop.fs.s3a.impl", "FS.S3A.IMPL",
)  # fmt: skip
KAFKA = (
    "client.id", "fetch.min.bytes", "max.poll.records", "sasl.jaas.config", "interceptor.classes", "group.id",
    "ssl.truststore.location", "config.providers", "metric.reporters", "key.deserializer", "bootstrap.servers",
)  # fmt: skip
HOSTS = (
    "orders-db.shop", "203.0.113.7", "[fd00::1]", "db?socketFactory=x&loggerFile=/tmp/x", "db/x?autoDeserialize=true",
    "db:5432", "me:word@db", "a,b", "address=(host=db)(localSocket=/x)", "db%2f..", "db\n", "db#x", "[::1]/x",
)  # fmt: skip
DATABASES = (
    "shop", "s_1$-x", "shop?sslfactory=x", "shop&allowLoadLocalInfile=true", "shop;x", "a/../b", "shop%3Fx", "",
    "shop\n",
)  # fmt: skip
TABLES = ("orders", "sales.orders_2", "a.b.c", 'o" WHERE 1=1; DROP TABLE o', "(SELECT 1)", "orders o", "o`x", "o--")
COLUMNS = ("updated_at", "Id$1", 'a" OR 1=1', "a`b", "a b", "a)", "max(a)")
QUERIES = (
    "SELECT a FROM t", "with x AS (SELECT ';(' AS a) SELECT * FROM x", "SELECT `a` FROM \"t;u\" WHERE b = 'it''s'\n",
    "SELECT 1; DROP TABLE t", "SELECT 1) x, (SELECT 2", "SELECT '\\'; DROP TABLE t; --'", "SELECT $$a$$; DROP TABLE t",
    "SELECT 1 -- x", "SELECT 1 /* x */", "SELECT 1 # x", "DELETE FROM t", "SELECT `;` FROM t", "SELECT `) x, (SELECT `",
    "SELECT 'open", "SELECT E'\\''", "SELECT 'a' 'b", "SELECT\u00a01",
)  # fmt: skip
READER = (
    "header", "nullValue", "sep", "path", "paths", "avroSchemaUrl", "fs.s3a.impl", "fs.s3a.endpoint", "basePath",
    "__globPaths__",
)  # fmt: skip
PREFIXES = ("APP_", "TAILNUM_", "LD_", "L_", "BASH_", "P_", "HUDI_", "AWS_", "JAVA_", "", "APP", "A%%_", "S_")
TAKEN = (
    "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "IFS", "PATH",
    "HOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
    "JAVA_HOME", "CLASSPATH", "GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "TMPDIR", "OPENSSL_CONF", "SPARK_CONF_DIR",
    "SPARK_HOME", "SPARK_CLASSPATH", "SPARK_SUBMIT_OPTS", "HADOOP_CONF_DIR", "HUDI_CONF_DIR", "HUDI_OPERATOR_ROLE",
    "POD_IP", "TZ", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE",
    "AWS_PROFILE", "KUBECONFIG", "PYSPARK_PYTHON",
)  # fmt: skip
"""Variables by which somebody else's code, options or place would come into a process."""
FIELDS = frozenset((
    "path", "name", "as", "prefix", "value", "format", "query", "function", "key", "tableName", "image", "sql",
    "memory", "schema", "protocol",
))  # fmt: skip
"""Names of fields that a token is not put into."""
REGIONS = (
    "eu-central-1",
    "us-gov-west-1",
    "eu-central",
    "EU-CENTRAL-1",
    "eu-central-1.evil.example",
    "eu-central-1\n",
    " eu-central-1",
    "../../../x-1",
)
"""Two that are regions, and others."""
THRIFT = (
    "thrift://metastore.catalogs.svc:9083", "thrift://203.0.113.7:65535", "thrift://m:1", "http://m:9083", "thrift://m",
    "thrift://m:0", "thrift://m:65536", "thrift://LOCALHOST:9083", "thrift://127.1:9083", "thrift://169.254.169.254:80",
    "thrift://me:word@m:9083", "thrift://m:9083,thrift://n:1", "thrift://m:9083\n", "thrift://metadata:80",
    "thrift://0:1",
)  # fmt: skip
URLS = (
    "https://hooks.example.com/commits?table=flights", "http://receiver.team.svc:8080/commits",
    "https://[fd00::1]:8443/", "https://user:password@hooks.example.com/", "http://hooks.example.com/",
    "https://169.254.169.254/latest",
    "https://localhost/", "https://127.1/", "https://hooks.example.com:99999/", "https://hooks.example.com:0/",
    "ftp://hooks.example.com/", "file:///etc/hudi/etcd/token", "https://hooks.example.com#@169.254.169.254/",
    "https://hooks.example.com\\@127.0.0.1/", "https://hooks.example.com/\r\nX: y", "https://", "https:///x",
    "http://a.b.svc@127.0.0.1/", "http://169.254.169.254/?x.y.svc/", "https://hooks.example.com/%0d%0aX:%20y",
    "HTTPS://hooks.example.com/", "http://a.b.svc.evil.com/", "https://[::1]/", "https://[::ffff:169.254.169.254]/",
)  # fmt: skip
REGISTRIES = (
    "https://registry.example.com", "http://apicurio.kafka.svc:8080/apis/ccompat/v7", "https://[fd00::1]:8081/", *URLS,
)  # fmt: skip
PROGRAMS = (
    "local:///opt/app/main.py", "local:///opt/a/../../tmp/x.py", "local:///../x.py", "local:///opt/app/main.jar",
    "file:///opt/app/main.py", "s3a://lake/team/main.py", "/opt/app/main.py", "local:///opt/app/x.py --conf x.py",
    "local://host/x.py", "local:///opt/app/..py", "local:///opt/..",
)  # fmt: skip
ARTIFACTS = (
    "local:///opt/app/a", "s3a://lake/team/jobs/b", "s3://lake/team/c", "s3a://lake/other/d", "gs://lake/team/e",
    "local:///opt/../x", "s3a://lake/team/x,local:///etc/hudi/y", "s3a://me:word@lake/team/f", "file:///x", "/opt/x",
    "https://evil.example/x", "s3a://lake/team//x", "local:///etc/hudi/job/x\nspark.plugins=y", "s3a://lake/team/*",
)  # fmt: skip
"""Files without their ending; the first three may be named."""
PACKAGES = (
    "com.example:words:1.0", "org.x_y:a-b:2.1.3-rc1", "a:b:latest", "a:b:[1,2)", "a:b", "a:b:1,c:d:2", "a:b:1\nx",
    "a:b:1;https://evil.example/", "../a:b:1",
)  # fmt: skip
MIRROR = "https://nexus.example.com/repository/maven-public/"
CLASSES = ("com.example.Load", "Main$", "com.example.Load --conf spark.plugins=x", "a..b", "../a", "a/b", "1a")
MODULES = ("jobs.load", "load", "jobs-load", "os;x", ".load")
SECRETS = ("creds", "keys", OF_OTHERS, "hudi-operator-etcd", "load-load-uid-1-spark-key", "keys,creds", "../keys")
ACCOUNTS = ("lake", "team-a", OF_OTHERS, "lake\nspark.plugins", "system:masters")
IMAGES = ("registry/spark:1@sha256:0", "x:1", "evil/spark:1", "registry/../evil", "registry/x y", "registry/x\n")
CRONS = ("0 3 * * *", "*/5 * * * *", "* * * * * *", "@daily", "0 0 30 2 *", "x y z a b")
ZONES = ("Etc/UTC", "Europe/Berlin", "../../etc/passwd", "Etc/../UTC", "localtime", "posixrules")
PATTERNS = ("2026-.*", "[a-z]+", "(", "a,b", "x=y;z", "(?{code})")
"""Regular expressions of partitions."""
