"""Tests of attempts, admission, schedules, overlaps and the status of writers."""
