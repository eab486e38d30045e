"""Tests of the pages: evidence of results, and links."""
