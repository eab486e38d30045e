"""Tests on a real API server and a real etcd, without kubelet: `crds` asks the server what it
accepts, `operator` runs the whole operator.
"""
