"""Kills of writers on a real cluster, many of them: phase times and rows."""
