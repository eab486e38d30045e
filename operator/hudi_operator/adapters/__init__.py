"""Adapters: Kubernetes, etcd and clocks behind Protocols; the real ones and in-memory fakes."""
