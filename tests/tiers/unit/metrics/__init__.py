"""Tests of the metrics: declared once, shown as declared."""
