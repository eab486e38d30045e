"""The control plane of hudi-operator: Kubernetes operator for Apache Hudi tables with several concurrent writers."""

__version__ = "0.1.0"
