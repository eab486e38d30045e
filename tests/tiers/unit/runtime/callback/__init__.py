"""Tests of callbacks: plan, HTTP, receiver."""
