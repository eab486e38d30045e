"""The second specification of the protocol, docs/design/spec, simulated by Quint: the protocol
holds, each design that lacks a rule fails, and its words are those of the contract.
"""
