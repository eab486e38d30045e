"""Tests of look and roll back, sweep, and settling."""
