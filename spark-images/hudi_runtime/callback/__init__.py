"""Tells a receiver of a table's commits over HTTP (docs/use/callbacks.md): at least once, in order of completion. Run by the agent.

`callback_plan.py` says what is told next and is pure, `callback_http.py` sends one request, `callback.py` keeps the position in etcd.
May use `table` and `process`; never a tower. Invariants: the position moves only when the receiver has answered; only completed commits are told;
a gap is told as one. Nothing else of the agent waits for a receiver.
"""
