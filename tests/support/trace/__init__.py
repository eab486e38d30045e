"""Checker of protocol logs: replays the log of a real run on the model, and rejects every step that
the protocol forbids.

`conform` is its entry, `events` reads logs, `rules` says what each transaction may do, `state`
keeps the possible states; `emit` and `mutations` make good and damaged traces, to test
the checker itself.
"""
