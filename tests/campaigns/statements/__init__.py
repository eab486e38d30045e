"""What user code may do: the page that is made of what
`tests/tiers/hudi/test_statements.py` has seen.
"""
