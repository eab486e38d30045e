"""Tests of the judge of `tests.campaigns.chaos`: what a run must find, and what its page says."""
