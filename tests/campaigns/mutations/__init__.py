"""Deliberate damage to the product's code: each mutation takes one rule of the protocol out, and
the tests that it names must notice.
"""
