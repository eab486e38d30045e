# The operator: Python only, no JVM; runs with a read-only root file system (writes to /tmp, nowhere else).
#   docker build --build-arg BASE=python@sha256:… -t localhost/hudi-operator/operator:dev .   or, without docker: hack/images/build-images operator
# BASE: Python 3.11 on Debian 12, by digest (NAME@sha256:…), because a tag means another image tomorrow. There is no default: take
# the digest of python:3.11-slim-bookworm from your registry; hack/images/build-images gives the base that it makes of Debian packages.
ARG BASE
FROM ${BASE}
ARG BASE
RUN echo "$BASE" | grep -qE '@sha256:[0-9a-f]{64}$' || { echo "BASE=$BASE: name the base image by digest, NAME@sha256:…" >&2; exit 1; }
# SOURCE_DATE_EPOCH: the day of the last change of the password is not today's.
RUN SOURCE_DATE_EPOCH=0 useradd --no-log-init --uid 65532 --user-group --home-dir /tmp --no-create-home --shell /usr/sbin/nologin hudi-operator
# PROTOCOL_BUFFERS_…: etcd3's generated stubs are older than protobuf's C++ runtime accepts.
ENV PYTHONPATH=/app PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python
COPY operator/requirements.txt /app/requirements.txt
# No build isolation: a source distribution is built by the base image's setuptools, not by one that pip would fetch without a hash.
# Compiled by hash of the source, not by its time, so that two builds give the same bytes
# (some packages bring templates that do not compile).
RUN pip install --no-cache-dir --no-compile --no-build-isolation --disable-pip-version-check --root-user-action=ignore --require-hashes -r /app/requirements.txt \
 && { python -m compileall -qq --invalidation-mode checked-hash /usr/local/lib/python3.11 || :; }
COPY operator/hudi_contract /app/hudi_contract
COPY operator/hudi_operator /app/hudi_operator
RUN python -m compileall -q --invalidation-mode checked-hash /app/hudi_contract /app/hudi_operator
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["python", "-m", "hudi_operator"]
