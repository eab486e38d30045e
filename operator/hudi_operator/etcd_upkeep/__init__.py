"""Upkeep of etcd by its user root: ``python -m hudi_operator.etcd_upkeep``.

Backups, defragmentation, and a look at the members. `kubectl hudi etcd` runs it in the pod that has
the identity of root (:mod:`hudi_operator.etcd_certificates`), the chart's CronJob in one of its
own. A restore is no part of it: etcd's own ``etcdutl`` makes the files of a member from a snapshot
while none runs (docs/operate/operations.md, Restore etcd).
"""
