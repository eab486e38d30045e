"""Tests of `hudi_operator.adapters` without a server: how answers, lists and errors of Kubernetes
and etcd are read; and of the work queue.
"""
