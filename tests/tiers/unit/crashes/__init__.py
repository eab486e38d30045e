"""Tests of the oracle of `tests.campaigns.crashes`: mutants of good runs that it must reject."""
