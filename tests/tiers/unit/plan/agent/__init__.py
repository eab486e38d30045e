"""Tests of agents and their pods: which agent serves a table, and what it is asked to do."""
