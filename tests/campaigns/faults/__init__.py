"""Faults of storage and processes, put to stock Hudi, to ours in LeaseOnly and to ours
(`make faults`); and the forty acceptance cases with their tests.
"""
