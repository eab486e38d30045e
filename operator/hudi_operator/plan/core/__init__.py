"""What all planners share: the view of one table, the vocabulary of actions, and partial plans.

`view` puts the facts in order and decides nothing; which attempt an incarnation belongs to comes from etcd and status, not from a pod's own labels.
`actions` are effects with their preconditions. May use model, api and hudi_contract.
"""
