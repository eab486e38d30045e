"""Tests of what `tests.campaigns.kills` keeps of a round, and of its page."""
