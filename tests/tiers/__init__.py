"""The tests, one folder for each tier: `unit`, `model`, `component`, `hudi`, `e2e`.

The Java tier lies beside its sources.

What is real in each tier: docs/design/testing.md. A file here holds tests or fixtures; what two
files need lies in `tests.support`.
"""
