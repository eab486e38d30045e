"""Long runs: each has a `__main__` or a command of `make`, keeps raw results, continues where it
was cut off, and writes a page.

A campaign may use `tests.support` and other campaigns, never a tier. A short slice of some is part
of a tier.
"""
