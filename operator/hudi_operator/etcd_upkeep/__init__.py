"""``python -m hudi_operator.etcd_upkeep``: upkeep of the chart's etcd, by its user root.

`snapshot` takes backups, `defragment` gives space back, `membership` lets members join, `members`
reads their state. `tables` lists whose keys there are, and deletes those of a table that nobody has
any more. `identity` has root's certificate, from files or, by `secret`, from a Secret.
`kubectl hudi etcd` runs it in the pod that has this identity
(:mod:`hudi_operator.etcd_certificates`), the chart's CronJob runs it in a separate pod. A restore
is no part of it: etcd's own ``etcdutl`` makes the files of a member from a snapshot while none runs
(docs/operate/operations.md, Restore etcd).

It uses the adapters and hudi_contract; nothing of the operator uses it. No invariant of the
protocol lives here.
"""
