"""What all planners share: the view of one table, the vocabulary of actions, and partial plans.

`view` organizes the facts and decides nothing; the attempt of an incarnation is taken from etcd and
status, not from a pod's own labels. `actions` are effects with their preconditions. May use model,
api and hudi_contract.
"""
