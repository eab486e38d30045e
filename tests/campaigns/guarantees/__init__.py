"""Guarantees for several writers of one table, each cell with the test that showed it:
docs/use/guarantees.md.
"""
