"""Tests that start nothing: planners, builders, parsers, classification, and the pure parts of
runtime and campaigns.

A folder stands for a package of the product, or for a campaign whose judge is tested here.
"""
