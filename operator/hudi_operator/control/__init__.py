"""The control loop: take a table from the queue, observe, plan, perform.

Waiting and clocks begin here; everything below is pure.

`observe` reads live through the ports, `executor` performs actions in order and stops at the first
failure, `timers` and `event_limit` run on this process's monotonic clock. May use plan, model, api
and hudi_contract; reaches etcd and Kubernetes only through `model.ports`. Keeps I11 (every read
that a decision depends on is live, etcd after the pods) and I6 (an action whose precondition does
not hold ends the run; the next look decides again).
"""
