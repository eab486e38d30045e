"""Pages made of what the tiers say: the last run of each group of tests, and which run
shows which claim.
"""
