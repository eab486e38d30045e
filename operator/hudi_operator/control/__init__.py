"""The control loop: take a table from the queue, observe, plan, perform.

Waiting and clocks begin here; everything below is pure.

`observe` reads live through the ports, `executor` performs actions in order and stops at the first
failure, `timers` and `event_limit` run on this process's monotonic clock. A look may also be a
glance: objects from `memory`, etcd live. May use plan, manifests, model, api and hudi_contract;
reaches etcd and Kubernetes only through `model.ports`. Keeps I11 (a glance decides only that there
is nothing to do now, or that a status is written which no decision is made from (`telling`); every
other decision follows from a live look, which reads etcd after the pods) and I6 (an action whose
precondition does not hold ends the run; the next look decides again).
"""
