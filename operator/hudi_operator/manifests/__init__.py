"""Builders of Kubernetes manifests and configuration files: pure functions from model to dict or text."""
