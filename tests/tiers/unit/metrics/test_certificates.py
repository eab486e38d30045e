"""Until when certificates are valid, as the files say now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hudi_operator.adapters import authority
from hudi_operator.adapters.authority import Request
from hudi_operator.metrics import certificates
from hudi_operator.metrics.meter import Metrics
from hudi_operator.model.config import EtcdConfig, MetricsConfig, OperatorConfig, PodEtcdConfig

NOW = datetime.now(tz=UTC).replace(microsecond=0)


def test_the_end_is_that_of_the_file_as_it_is_at_the_scrape(tmp_path: Path) -> None:
    old, new = (authority.make_authority(name, seconds=seconds, now=NOW) for name, seconds in (("a", 500), ("b", 900)))
    ca, own = tmp_path / "ca.crt", tmp_path / "tls.crt"
    ca.write_bytes(old.certificate)
    own.write_bytes(authority.issue(old, Request("x", 100), now=NOW).certificate + old.certificate)
    config = OperatorConfig(
        spark_image="spark:1",
        etcd=EtcdConfig(ca_file=str(ca), cert_file=str(own)),
        pod_etcd=PodEtcdConfig(ca_file=str(tmp_path / "absent")),
        metrics=MetricsConfig(),
    )
    metrics = Metrics()
    metrics.certificates(certificates.files(config))

    def ends(name: str) -> float | None:
        found = metrics.registry.get_sample_value(
            "hudi_operator_certificate_expiration_timestamp_seconds", {"certificate": name}
        )
        return None if found is None else round(found - NOW.timestamp())

    assert (ends("etcd-authority"), ends("etcd-client")) == (500, 100), "of a chain the first one is the certificate"
    assert ends("gateway-authority") is None
    ca.write_bytes(old.certificate + new.certificate)
    own.write_bytes(authority.issue(new, Request("x", 200), now=NOW).certificate)
    assert (ends("etcd-authority"), ends("etcd-client")) == (900, 200), "renewed without a restart"
    own.write_text("being written")
    assert ends("etcd-client") is None
    metrics.certificate_shown("etcd-server", (NOW + timedelta(seconds=50)).timestamp())
    assert ends("etcd-server") == 50
    metrics.certificate_shown("etcd-server", 0)
    assert ends("etcd-server") is None
