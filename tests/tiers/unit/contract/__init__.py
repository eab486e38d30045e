"""Tests of what processes agree on: keys, names, the settle record, the rules for
options of Hudi.
"""
