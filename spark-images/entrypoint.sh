#!/bin/bash
# Entry point of every pod that runs Spark; the first argument is the role.
set -euo pipefail

case "${1:-}" in
writer) exec tini -- python3 -m hudi_runtime.writer "${@:2}" ;;
agent) exec tini -- python3 -m hudi_runtime.agent "${@:2}" ;;
audit) exec tini -- python3 -m hudi_runtime.audit "${@:2}" ;;
executor)
  # Spark's own kubernetes/dockerfiles/spark/entrypoint.sh does this; the pyspark package leaves that file out.
  options=()
  for ((i = 0; ; i++)); do
    name=SPARK_JAVA_OPT_$i
    [ -n "${!name+set}" ] || break
    options+=("${!name}")
  done
  classpath="${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}${SPARK_CONF_DIR:-/opt/spark/conf}:$SPARK_HOME/jars/*"
  # Spark reads the key of its connections from a file only where it knows its master to be Kubernetes,
  # and does not tell an executor before the first connection.
  options+=(-Dspark.master=k8s://https://kubernetes.default.svc)
  exec tini -- "$JAVA_HOME/bin/java" "${options[@]}" -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
    -cp "$classpath" org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
  ;;
"") echo "usage: writer | agent | executor | audit PATH | COMMAND..." >&2; exit 2 ;;
*) exec tini -- "$@" ;;
esac
