"""Tests with real Spark, Hudi, etcd and the Java module in local processes.

The test plays the operator (`tests.support.harness.local`).
"""
