"""The demo: RFC-22's own example (live ingestion, encryption, backfill) on a real cluster, with a
conflict and a killed writer.
"""
