"""Page on the statements of user code, made from the results of
`tests/tiers/hudi/test_statements.py`.
"""
