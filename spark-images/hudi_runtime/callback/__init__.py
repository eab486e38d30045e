"""Delivers a table's commits to a receiver over HTTP (docs/use/callbacks.md).

At least once, in order of completion. Run by the agent.

`callback_plan.py` selects the next event and is pure, `callback_http.py` sends one request,
`callback.py` keeps the position in etcd. May import `table` and the packages below; never a tower.
Invariants: the position moves only when the receiver has answered; only completed commits are
delivered; a gap is delivered as an event. No other task of the agent waits for a receiver.
"""
