"""What the operator knows: frozen facts of one look, proofs of death, classes of ended attempts, conditions, configuration, ports.

May use api and hudi_contract. Pure: functions of their arguments; what the outside must offer stands in `ports` as Protocols. Keeps I11: a fact
that could not be read is unknown, never empty, and only what `proof` lists proves a death (I1).
"""
