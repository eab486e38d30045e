# shellcheck shell=bash
# Sourced after env.sh: buildah with a store of its own below the cache, no daemon, and no mounts left on the host.
bh() { unshare --mount buildah --root "$IMAGES/store" --runroot "$IMAGES/run" --storage-driver overlay "$@"; }

# bh_build NAME CONTEXT [buildah options]: build CONTEXT's Dockerfile, reusing every unchanged layer.
# If this machine needs its own CA bundle to reach the package registries (SSL_CERT_FILE is set),
# that one file is bound into the build, with a pip.conf that names it; neither becomes part of the image.
bh_build() {
  local name=$1 context=$2 volumes=() pip=$IMAGES/build-pip.conf
  shift 2
  if [ -n "${SSL_CERT_FILE:-}" ] && [ -f "$SSL_CERT_FILE" ]; then
    printf '[global]\ncert = /run/build-ca.crt\n' >"$pip"
    [ -z "${PIP_INDEX_URL:-}" ] || printf 'index-url = %s\n' "$PIP_INDEX_URL" >>"$pip"
    volumes=(-v "$SSL_CERT_FILE:/run/build-ca.crt:ro" -v "$pip:/etc/pip.conf:ro")
  fi
  # seccomp: the profile forbids setarch -R, without which the class archive is another one in each build.
  bh bud --security-opt seccomp=unconfined --timestamp "$SOURCE_DATE_EPOCH" --ignorefile "$HACK/images/dockerignore" --isolation chroot --network host --pull-never --layers "${volumes[@]}" -t "$name" "$@" "$context"
}
