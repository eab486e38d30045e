# The operator: Python only, no JVM; runs with a read-only root file system (writes to /tmp, nowhere else).
#   docker build -t localhost/hudi-operator/operator:dev .          or, without docker: hack/images/build-images operator
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}
RUN useradd --uid 65532 --user-group --home-dir /tmp --no-create-home --shell /usr/sbin/nologin hudi-operator
# PROTOCOL_BUFFERS_…: etcd3's generated stubs are older than protobuf's C++ runtime accepts.
ENV PYTHONPATH=/app PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python
COPY operator/requirements.txt /app/requirements.txt
RUN pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore -r /app/requirements.txt
COPY operator/hudi_contract /app/hudi_contract
COPY operator/hudi_operator /app/hudi_operator
RUN python -m compileall -q /app/hudi_contract /app/hudi_operator
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["python", "-m", "hudi_operator"]
