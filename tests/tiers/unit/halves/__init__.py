"""Tests of operator and agent together in one world in memory: the one reads what the
other has written.
"""
