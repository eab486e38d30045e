"""Tests of the console: what it passes on and refuses, what its pages say, what its log has."""
