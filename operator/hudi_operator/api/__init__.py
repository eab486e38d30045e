"""The API's objects as typed values.

HudiTable and HudiWriter with the CRDs' defaults, and messages for errors in a spec.

A spec is validated and parsed into frozen dataclasses here. May use hudi_contract. Pure: no clock,
no I/O; a message names field, value and rule. Options that affect the lock, the timeline or failed
writes cannot be set by a user (I8, I9).
"""
