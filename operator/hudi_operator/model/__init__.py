"""The operator's data: frozen facts of one look, and what follows from them.

These are proofs of death, classes of ended attempts, conditions, configuration, ports.

May use api and hudi_contract. Pure: functions of their arguments; `ports` defines the interfaces of
external systems as Protocols. Keeps I11: a fact that could not be read is unknown, never empty, and
only the proofs in `proof` prove a death (I1).
"""
