"""The API's objects as typed values: HudiTable and HudiWriter with the CRDs' defaults, and what is wrong with a spec in words.

A spec is checked and becomes frozen dataclasses here. May use hudi_contract. Pure: no clock, no I/O; a message names field, value and rule. Options
that decide about the lock, the timeline or failed writes cannot be set by a user (I8, I9).
"""
