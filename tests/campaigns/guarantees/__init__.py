"""What several writers of one table are promised, each cell with the test that showed it:
docs/use/guarantees.md.
"""
