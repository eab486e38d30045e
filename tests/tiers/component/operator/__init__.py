"""The operator as a process between a real API server and a real etcd.

The test plays the kubelet, and mostly the JVM.
"""
