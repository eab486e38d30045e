"""Tests of the planners: on single views, and through whole lives of writers in the simulated world
(`tests.support.world`).
"""
