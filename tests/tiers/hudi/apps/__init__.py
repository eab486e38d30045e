"""Programs and functions that tests of this tier hand to a writer as user code.

They run in the writer's process, not in the test's.
"""
