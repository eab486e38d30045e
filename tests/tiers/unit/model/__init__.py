"""Tests of the operator's types and pure rules: specs, options, keys, records, proofs,
classification.
"""
