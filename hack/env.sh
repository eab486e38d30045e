# shellcheck shell=bash disable=SC2034
# Sourced by every script in hack/ (and by tests/run): where things are kept and which versions are built.
# Set any of these variables beforehand to change them; nothing else needs configuring.

HACK=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REPO=$(dirname "$HACK")

# The one directory everything goes to that is downloaded, built or run; nothing else on the machine is
# written to, except by `hack/setup/deps` (apt packages) and by the package clients' own caches (~/go, ~/.m2, pip).
: "${HUDI_OPERATOR_CACHE:=${HOME:-/root}/.cache/hudi-operator}"
# Name of the embedded cluster: its directory, veth and cgroup are derived from it.
: "${HUDI_OPERATOR_CLUSTER:=hudi}"
export HUDI_OPERATOR_CACHE HUDI_OPERATOR_CLUSTER

CACHE=$HUDI_OPERATOR_CACHE
BIN=$CACHE/bin            # kube, kubectl, etcd, etcdctl, etcdutl, etcd-probe, coredns, pause, helm, versitygw, fake-gcs-server, kube-router, quint
LOGS=$CACHE/log           # output of the builds
IMAGES=$CACHE/images      # buildah's store, the base root file system, and oci/: the images as built
JARS=$CACHE/jars          # Hudi's bundle, S3, GCS, Kafka and Avro jars (hack/jars/fetch-jars)
KAFKA=$CACHE/kafka        # the broker that tests start (hack/jars/fetch-kafka)
HDFS=$CACHE/hdfs          # the HDFS cluster that tests start (hack/jars/fetch-hdfs)
HIVE=$CACHE/hive          # the Hive Metastore that tests start (hack/jars/fetch-hive)
REGISTRY=$CACHE/registry  # the registry of schemas that tests start (hack/jars/fetch-registry)
QUINT=$CACHE/quint        # the simulator of docs/design/spec (hack/quint/fetch-quint)
VENV=$CACHE/venv          # Python for development and tests (hack/setup/venv)
if [ "$HUDI_OPERATOR_CLUSTER" = hudi ]; then CLUSTER=$CACHE/cluster; else CLUSTER=$CACHE/cluster-$HUDI_OPERATOR_CLUSTER; fi
export KUBECONFIG_FILE=$CLUSTER/kubeconfig

# Versions of programs are in hack/build/*/go.mod.
GO_MINIMUM=1.26
KUBERNETES_VERSION=$(awk '$1 == "k8s.io/kubernetes" {print substr($2, 2)}' "$HACK/build/kube/go.mod")
ETCD_VERSION=$(awk '$1 == "go.etcd.io/etcd/server/v3" {print substr($2, 2)}' "$HACK/build/etcd/go.mod")
BASE_IMAGE=localhost/hudi-operator/base # BASE of the Dockerfiles, by its digest; made here, see hack/images/base-image
export SOURCE_DATE_EPOCH=1735689600     # the time of every file in an image, as in etcd-lock's pom.xml: two builds give one digest

STARTED=${EPOCHREALTIME/[.,]/}
# say TEXT...: one progress line on stderr with the seconds since the script started.
say() {
  local t=$(((${EPOCHREALTIME/[.,]/} - STARTED) / 100000))
  printf '[%3d.%d s] %s\n' $((t / 10)) $((t % 10)) "$*" >&2
}
# die TEXT...: the last line of a script that cannot go on.
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}
# hash_of PATH...: one hash over names (relative to repository and cache) and contents of the files in PATH...
hash_of() {
  find "$@" -type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum |
    sed -e "s|  $REPO/|  |" -e "s|  $CACHE/|  |" | sha256sum | cut -c1-16
}
