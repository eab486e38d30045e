# shellcheck shell=bash disable=SC2034
# Sourced after env.sh: names, addresses and directories of the embedded cluster; used by cluster, node, preflight.

NODE=hudi-node
# First three octets of the networks of pods, of the node and of Services; change them when one is in use here.
: "${HUDI_OPERATOR_NETWORKS:=10.244.0 10.245.0 10.96.0}"
read -r POD_PREFIX NODE_PREFIX SERVICE_PREFIX <<<"$HUDI_OPERATOR_NETWORKS"
POD_NETWORK=$POD_PREFIX.0/24 SERVICE_NETWORK=$SERVICE_PREFIX.0/24 NODE_NETWORK=$NODE_PREFIX.0/30
HOST_ADDRESS=$NODE_PREFIX.1 NODE_ADDRESS=$NODE_PREFIX.2 SERVICE_ADDRESS=$SERVICE_PREFIX.1
API_URL=https://$NODE_ADDRESS:6443
VETH=hudi-${HUDI_OPERATOR_CLUSTER:0:10}
export HUDI_OPERATOR_NETWORKS SERVICE_ADDRESS

RUN=$CLUSTER/run    # this run of the cluster: process, certificates, etcd's data; removed by `down`
NODE_LOGS=$CLUSTER/log # one file per process, of the last run
DISK=$CLUSTER/disk  # containerd's images and containers (kept by `down`), pods' directories, volumes
VOLUMES=24

# The cgroup of everything that runs in the cluster, in each hierarchy: one with v2, one per controller with v1.
CGROUP=hudi-cluster-$HUDI_OPERATOR_CLUSTER
if [ "$(stat -f -c %T /sys/fs/cgroup 2>/dev/null)" = cgroup2fs ]; then
  CGROUP_VERSION=2 CGROUP_ROOTS=(/sys/fs/cgroup)
else
  CGROUP_VERSION=1
  mapfile -t CGROUP_ROOTS < <(awk '$3 ~ /^cgroup2?$/ {print $2}' /proc/mounts)
fi

start_time() { awk '{sub(/.*\) /, ""); print $20}' "/proc/$1/stat" 2>/dev/null; }
# launcher: the process id of the cluster's `unshare`, when it is this boot's and still the same process.
launcher() {
  local boot pid started
  [ -s "$RUN/instance" ] && read -r boot pid started <"$RUN/instance" || return 1
  [ "$boot" = "$(cat /proc/sys/kernel/random/boot_id)" ] && [ "$(start_time "$pid")" = "$started" ] && echo "$pid"
}
# node_init: the process id, in this namespace, of the node's first process.
node_init() {
  local pid child
  pid=$(launcher) || return 1
  child=$(cut -d' ' -f1 "/proc/$pid/task/$pid/children" 2>/dev/null)
  [ -n "$child" ] && [ "$(readlink "/proc/$child/ns/pid")" != "$(readlink "/proc/$pid/ns/pid")" ] && echo "$child"
}
in_node() { nsenter --target "$(node_init)" --mount --pid --net --uts -- "$@"; }
containers() { in_node ctr --namespace k8s.io "$@"; }
kubectl() { "$BIN/kubectl" --kubeconfig "$KUBECONFIG_FILE" "$@"; }
