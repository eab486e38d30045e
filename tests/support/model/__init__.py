"""The protocol of docs/design/protocol.md as an executable model, searched exhaustively.

Read in this order: `state` (state of the world), `transactions` (the compares of etcd, the same
strings as in `operator/hudi_contract/protocol.json`), `rules` (each rule of the protocol as a
switch, with its invariant), then the actors: `jvm` (session and lock), `writer`, `agent`,
`service`, `operator`, `environment`. `invariants` names I1–I13, `search` visits every state,
`configurations` and `variants` say what is searched. `tests.support.trace` checks logs of real
runs.
"""
