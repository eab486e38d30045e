"""Tests of the acceptance cases of `tests.campaigns.faults`, and of the parts that a
cell stands on.
"""
