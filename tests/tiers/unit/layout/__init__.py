"""Tests of the source tree itself: what lies where, and what may import what."""
