# shellcheck shell=bash
# Sourced: certificates with nothing but openssl, written to the current directory. Elliptic-curve keys in PKCS#8,
# the one format that Go, Python and Java's netty all read. For development only: the CA's key lies beside them.

# new_key NAME
new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key" 2>/dev/null && chmod 600 "$1.key"; }

# new_ca NAME COMMON_NAME
new_ca() {
  new_key "$1"
  openssl req -x509 -new -key "$1.key" -subj "/CN=$2" -days 3650 -out "$1.crt" \
    -addext basicConstraints=critical,CA:true -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature 2>/dev/null
}

# new_cert CA NAME SUBJECT USAGE [SUBJECT_ALTERNATIVE_NAMES]: USAGE is clientAuth, serverAuth or both with a comma
new_cert() {
  local ca=$1 name=$2 extensions
  extensions="basicConstraints=CA:false
keyUsage=critical,digitalSignature
extendedKeyUsage=$4
${5:+subjectAltName=$5}"
  new_key "$name"
  openssl req -new -key "$name.key" -subj "$3" -out "$name.csr" 2>/dev/null
  openssl x509 -req -in "$name.csr" -CA "$ca.crt" -CAkey "$ca.key" -CAcreateserial -days 3650 \
    -extfile <(printf '%s\n' "$extensions") -out "$name.crt" 2>/dev/null
  rm -f "$name.csr"
}
