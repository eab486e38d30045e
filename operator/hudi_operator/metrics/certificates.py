"""Ends of certificates, read at each scrape from files that a renewal replaces."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from cryptography import x509

from hudi_operator.model.config import OperatorConfig


def files(config: OperatorConfig) -> dict[str, str]:
    """File of each certificate of this configuration."""
    found = {
        "etcd-client": config.etcd.cert_file,
        "etcd-authority": config.etcd.ca_file,
        "gateway-authority": config.pod_etcd.ca_file,
        "metrics-server": config.metrics.cert_file,
    }
    return {name: file for name, file in found.items() if file}


def expirations(certificates: Mapping[str, str]) -> dict[str, float]:
    """Unix time by certificate; of a file with several the one that ends last.

    A bundle has the old authority and its successor while one replaces the other.
    """
    found = {}
    for name, file in certificates.items():
        with contextlib.suppress(OSError, ValueError):
            loaded = x509.load_pem_x509_certificates(Path(file).read_bytes())
            own = loaded[:1] if name in ("etcd-client", "metrics-server") else loaded
            found[name] = max(certificate.not_valid_after_utc.timestamp() for certificate in own)
    return found
