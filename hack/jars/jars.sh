# shellcheck shell=bash
# Sourced after env.sh: jars from Maven Central, each checked against the SHA-256 that is kept beside the POM that lists it.

# fetch NAME POM DIRECTORY SIZE: copy the jars that POM lists to DIRECTORY, unless that was done; prints the directory.
# They must be exactly those of checksums.sha256 beside POM. JARS_PIN=1 writes that file anew: look at what changes in it.
fetch() {
  local name=$1 pom=$2 directory=$3 size=$4 sums key
  sums=$(dirname "$pom")/checksums.sha256
  key=$(hash_of "$pom" "$sums")
  if [ "$(cat "$directory/.key" 2>/dev/null)" != "$key" ]; then
    say "$name: resolving with Maven (about $size)"
    rm -rf "$directory.new"
    mvn -q -B --strict-checksums -f "$pom" package -Djars.directory="$directory.new" >&2
    if [ -n "${JARS_PIN:-}" ]; then
      (cd "$directory.new" && LC_ALL=C sha256sum -- *.jar) >"$sums"
      key=$(hash_of "$pom" "$sums")
    fi
    check_jars "$directory.new" "$sums"
    echo "$key" >"$directory.new/.key"
    rm -rf "$directory" "$(dirname "$pom")/target"
    mv "$directory.new" "$directory"
  fi
  echo "$directory"
}

# fetch_archive NAME POM DIRECTORY SIZE: as fetch, for the one .tar.gz that POM copies; DIRECTORY has what is in it.
fetch_archive() {
  local name=$1 pom=$2 directory=$3 size=$4 sums key
  sums=$(dirname "$pom")/checksums.sha256
  key=$(hash_of "$pom" "$sums")
  if [ "$(cat "$directory/.key" 2>/dev/null)" != "$key" ]; then
    say "$name: resolving with Maven (about $size)"
    rm -rf "$directory.new"
    mvn -q -B --strict-checksums -f "$pom" package -Djars.directory="$directory.new" >&2
    if [ -n "${JARS_PIN:-}" ]; then
      (cd "$directory.new" && LC_ALL=C sha256sum -- *.tar.gz) >"$sums"
      key=$(hash_of "$pom" "$sums")
    fi
    (cd "$directory.new" && sha256sum --check --strict --quiet "$sums" >&2) ||
      die "$directory.new: the archive is missing or is not the one that $sums has; see above"
    tar -xzf "$directory.new"/*.tar.gz -C "$directory.new" --no-same-owner
    rm -f "$directory.new"/*.tar.gz
    echo "$key" >"$directory.new/.key"
    rm -rf "$directory" "$(dirname "$pom")/target"
    mv "$directory.new" "$directory"
  fi
  echo "$directory"
}

# check_jars DIRECTORY SUMS: its jars are those that SUMS lists, with these contents, and no others.
check_jars() {
  local unlisted
  (cd "$1" && sha256sum --check --strict --quiet "$2" >&2) ||
    die "$1: a jar is missing or is not the one that $2 has; see above"
  unlisted=$(comm -23 <(cd "$1" && printf '%s\n' *.jar | LC_ALL=C sort) <(awk '{print $2}' "$2" | LC_ALL=C sort))
  [ -z "$unlisted" ] || die "$1: not in $2: $(echo "$unlisted" | tr '\n' ' ')"
}

# check_repository SUMS: what of SUMS (paths below Maven's local repository: dependencies of a build, plugins, compilers) is there is what SUMS has.
check_repository() {
  local repository=${MAVEN_LOCAL_REPOSITORY:-$HOME/.m2/repository}
  (cd "$repository" && sha256sum --check --strict --quiet --ignore-missing "$1" >&2) ||
    die "$repository: a file is not the one that $1 has; see above"
}
