"""The planners: they turn the facts of one look into a list of actions.

Nothing here acts, waits, or reads a clock.

The packages form a column, and each uses only those below it: core, then fencing and requests, then
gate and agent, then writers, then `deletion`, `table_status`, `table_events` and `forecast` (which
`kubectl hudi plan` asks), and on top `table`, which assembles the plan of one table. May use
manifests, model, api and hudi_contract. Every rule of the protocol that the operator carries out is
decided here, on facts that were read live (I11), and each planner can be repeated at any step (I6).
"""
