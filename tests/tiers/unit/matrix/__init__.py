"""Tests of the cells of RFC-22's test plan, and of their page."""
