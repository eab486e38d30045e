"""Tests of the checker of histories: anomalies made by hand that it must find, and its page."""
