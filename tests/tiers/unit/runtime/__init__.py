"""Tests of the runtime without Spark: positions, plans of settling and
services, callbacks, errors.
"""
