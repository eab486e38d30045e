"""Tests of the mutations: each still has its place in the code, and names tests that exist."""
