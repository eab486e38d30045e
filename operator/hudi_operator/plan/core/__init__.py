"""Shared parts of the planners: the view of a table, the actions, and partial plans.

`view` organizes the facts and decides nothing; the attempt of an incarnation is taken from etcd and
status, not from a pod's own labels. `ownership` recognizes pods by their role and executors by
their owner. `actions` are effects with their preconditions, `partial_plan` is what a planner
returns, and `checks` are chains of named checks. Four modules decide for all planners: `launch`,
whether a pod may start now; `spark_keys`, which pod still needs a key; `credentials`, whether pods
follow changes of theirs; `trial`, whether a HudiTable has yet to show that it reaches its path. May
use manifests, model, api and hudi_contract.
"""
